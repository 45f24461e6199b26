"""SentencePiece models: ids, losslessness, and the models that are refused."""

import hashlib
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pytest
from cppmill_core import AnyTokenizer, load_tokenizer
from cppmill_core.adoption import find_source
from cppmill_core.segments import MAX_SEGMENT_BYTES, invalid_bytes
from cppmill_core.sentencepiece import lossy_properties
from cppmill_core.sentencepiece.proto import Model, ModelType, PieceType, read_model, rewrite_pieces
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer

from schemas.options import BuildOptions
from tokenizer_build.sentencepiece import build_sentencepiece

KINDS = ["sentencepiece-bpe", "sentencepiece-unigram"]
VOCABULARY = Path(__file__).parents[4] / "configs" / "vocab"
VOCAB_SIZE = 4096
SPACE = "\u2581".encode()
HOSTILE = [
    b"",
    bytes(range(256)),
    bytes(range(255, -1, -1)),
    b"\t\t\r\n \t\x0b\x0c\x00\x00 \x00",
    b"\xef\xbb\xbfint x;\r\n",
    b"<BOS><EOS><UNK><0x41><RESERVED_48>",
    "\u2585 \ufffd\u2047 \ufdd0\ufdd1".encode(),
    SPACE,
    b"a" + SPACE + SPACE + b" b",
    SPACE[:2],
    SPACE[1:] + SPACE[:1],
    b"\xf0" + SPACE,
    b"\xed\xa0\x80",
    b" " * 1000,
    b"x" * (2 * MAX_SEGMENT_BYTES + 1),
    "\u00e9".encode() * MAX_SEGMENT_BYTES,
]


@pytest.fixture(scope="module")
def words(headers: list[bytes]) -> list[pa.RecordBatch]:
    counter = cppmill_core.WordCounter("cpp-words-1")
    counter.add(pa.record_batch({"content": pa.array(headers[::2], pa.binary())}))
    return counter.finish().read_all().to_batches()


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, words: list[pa.RecordBatch], prepared: Callable[..., Path]) -> Path:
    options = BuildOptions(kind=request.param, vocab_size=VOCAB_SIZE)
    arguments: dict[str, Any] = {"vocabulary_dir": VOCABULARY, "options": options, "pattern": "cpp-words-1"}
    return prepared(f"native-{request.param}", lambda folder: build_sentencepiece(words, **arguments, out=folder))


def plain(document: bytes) -> bool:
    try:
        return SPACE not in document and bool(document.decode())
    except UnicodeDecodeError:
        return False


def test_text_has_the_ids_that_the_package_gives_it(pieces: AnyTokenizer, processor: Any, headers: list[bytes]) -> None:
    texts = [header for header in headers if plain(header)]
    found: list[Any] = pieces.encode_batch(texts).to_pylist()
    assert len(texts) > 60
    if processor.get_score(VOCAB_SIZE - 1) == int(processor.get_score(VOCAB_SIZE - 1)):  # BPE: scores are ranks
        assert found == processor.encode(texts)
        return
    scores = [processor.get_score(id_) for id_ in range(VOCAB_SIZE)]
    for ours, theirs in zip(found, processor.encode(texts), strict=True):  # theirs adds them up as float32
        assert sum(scores[id_] for id_ in ours) >= sum(scores[id_] for id_ in theirs) - 1e-3


def test_headers_and_hostile_bytes_come_back(pieces: AnyTokenizer, headers: list[bytes]) -> None:
    documents = [*HOSTILE, *headers]
    bos, eos = pieces.control_id("<BOS>"), pieces.control_id("EOS")
    ids = pieces.encode_batch(pa.array(documents, pa.binary()), bos=bos, eos=eos)
    assert ids.type.value_type == pa.uint16()
    assert pieces.decode_batch(ids, 2, bos=bos, eos=eos).to_pylist() == documents
    assert pieces.decode_batch(ids, skip_control=True).to_pylist() == documents


@given(data=st.one_of(st.binary(), st.text().map(str.encode), st.text("\u2581 \t\n\r<BOS>a").map(str.encode)))
def test_any_bytes_come_back(pieces: AnyTokenizer, data: bytes) -> None:
    assert pieces.decode(pieces.encode(data)) == data


def test_ids_do_not_depend_on_threads_or_neighbours(pieces: AnyTokenizer, headers: list[bytes]) -> None:
    documents = [*HOSTILE, *headers[:20]]
    together = pieces.encode_batch(documents)
    assert pieces.encode_batch(documents, 3).equals(together)
    assert [pieces.encode(document).to_pylist() for document in documents] == together.to_pylist()


def test_a_slice_and_chunks_are_encoded_as_their_rows(pieces: AnyTokenizer) -> None:
    array = pa.array(HOSTILE, pa.binary())
    expected = pieces.encode_batch(HOSTILE).to_pylist()
    assert pieces.encode_batch(array.slice(3, 5)).to_pylist() == expected[3:8]
    assert pieces.encode_batch(pa.chunked_array([array.slice(0, 4), array.slice(4)])).to_pylist() == expected


def test_digests_are_those_of_the_bytes(pieces: AnyTokenizer) -> None:
    found = pieces.digest_batch(pieces.encode_batch(HOSTILE), 2).to_pylist()
    assert found == [{"num_bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()} for text in HOSTILE]


def test_control_text_is_text_and_is_counted(pieces: AnyTokenizer) -> None:
    text = b"<EOS><BOS><EOS>"
    controls = {pieces.control_id(name) for name in ("BOS", "EOS")}
    assert not controls & set(pieces.encode(text).to_pylist())
    assert pieces.count_control([text, b"\xff<EO"]) == {"<BOS>": 1, "<EOS>": 2}
    assert pieces.count_control([b"\xff<EO"]) == {}


def test_ids_without_text_are_refused_by_row(pieces: AnyTokenizer) -> None:
    lists = pa.array([[400], [401, 3]], pa.list_(pa.uint16()))
    refusals: list[tuple[str, Callable[[], object]]] = [
        (r"row 1: id 3 \(<EOS>\) has no text", lambda: pieces.decode_batch(lists)),
        ("row 0: it does not begin with the id 2", lambda: pieces.decode_batch(lists, bos=2)),
        ("row 0: it does not end with the id 3", lambda: pieces.digest_batch(lists, eos=3)),
        ("row 0: token id 4096 is not below the vocabulary size 4096", lambda: pieces.decode([VOCAB_SIZE])),
        ("token id -1 is not below", lambda: pieces.token_bytes(-1)),
        ("no control token 'EOF'; there are <EOS>", lambda: pieces.control_id("EOF")),
        ("row 1: null", lambda: pieces.encode_batch(pa.array([b"a", None], pa.binary()))),
        ("a binary or string array is needed", lambda: pieces.encode_batch(pa.array([1]))),
        ("token id 4096 is not below", lambda: pieces.encode_batch([b"a"], bos=VOCAB_SIZE)),
    ]
    for said, call in refusals:
        with pytest.raises(cppmill_core.InvalidInputError, match=said):
            call()


def test_one_id_is_not_both_ends_of_a_document(pieces: AnyTokenizer) -> None:
    one = pa.array([[2]], pa.list_(pa.uint16()))
    with pytest.raises(cppmill_core.InvalidInputError, match="does not end with"):
        pieces.decode_batch(one, bos=2, eos=2)


def test_every_id_has_its_bytes(pieces: AnyTokenizer) -> None:
    assert [pieces.token_bytes(id_) for id_ in range(64)] == [None] * 64
    assert [pieces.token_bytes(id_) for id_ in range(64, 320)] == [bytes([byte]) for byte in range(256)]
    tokens = [pieces.token_bytes(id_) for id_ in range(320, VOCAB_SIZE)]
    assert all(tokens) and len(set(tokens)) == len(tokens)
    assert {b" const", b"\n    "} <= set(tokens)


def test_it_is_pickled_as_path_and_digest(pieces: AnyTokenizer) -> None:
    copy = pickle.loads(pickle.dumps(pieces))
    assert copy.digest == pieces.digest
    assert copy.encode(b"int x;").equals(pieces.encode(b"int x;"))


def test_a_changed_model_and_another_digest_are_refused(folder: Path, tmp_path: Path) -> None:
    for name in ("manifest.json", "tokenizer.model"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(cppmill_core.CorruptDataError, match="this is the tokenizer"):
        load_tokenizer(tmp_path, "0" * 64)
    (tmp_path / "tokenizer.model").write_bytes((folder / "tokenizer.model").read_bytes() + b"\0")
    with pytest.raises(cppmill_core.CorruptDataError, match=r"tokenizer\.model: SHA-256 is"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_manifest_without_the_digest_of_its_model_is_refused(folder: Path, tmp_path: Path, is_there: bool) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "files": {}}))
    if is_there:
        (tmp_path / "tokenizer.model").write_bytes((folder / "tokenizer.model").read_bytes())
    with pytest.raises(cppmill_core.CorruptDataError, match=r"it has no digest of tokenizer\.model"):
        load_tokenizer(tmp_path)


def test_a_model_that_the_library_refuses_is_named(folder: Path, tmp_path: Path) -> None:
    """Byte pieces are there, and the model says that they are not used: only the library looks at this."""
    data = (folder / "tokenizer.model").read_bytes()
    assert data.count(b"\x98\x02\x01") == 1  # TrainerSpec.byte_fallback
    (tmp_path / "a.model").write_bytes(data.replace(b"\x98\x02\x01", b"\x98\x02\x00"))
    with pytest.raises(cppmill_core.CorruptDataError, match=r"a\.model: not a SentencePiece model that sentencepiece"):
        find_source(tmp_path / "a.model", allow_lossy=True)


def train(path: Path, **options: Any) -> Path:
    """Train a model of a few words with settings of its own."""
    SentencePieceTrainer.train(
        sentence_iterator=iter(["int main", "return x", "int x"] * 9),
        model_prefix=str(path / "other"),
        minloglevel=2,
        hard_vocab_limit=False,
        **{"vocab_size": 300, "byte_fallback": True, "normalization_rule_name": "identity", **options},
    )
    return path / "other.model"


LOSSLESS = {"add_dummy_prefix": False, "remove_extra_whitespaces": False}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"byte_fallback": False, "vocab_size": 20}, "byte_fallback = false"),
        ({"normalization_rule_name": "nmt_nfkc"}, "normalization_rule_name = nmt_nfkc"),
        ({"add_dummy_prefix": True}, "add_dummy_prefix = true"),
        ({"remove_extra_whitespaces": True}, "remove_extra_whitespaces = true"),
        ({"model_type": "word"}, "its model type is word"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_property_that_loses_text_is_named(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    model = read_model(train(tmp_path, **{**LOSSLESS, **changed}).read_bytes(), where="other.model")
    (found,) = lossy_properties(model)
    assert said in found


def test_a_model_without_such_a_property_is_lossless(tmp_path: Path) -> None:
    model = read_model(train(tmp_path, **LOSSLESS).read_bytes(), where="other.model")
    assert (model.type, model.byte_fallback, lossy_properties(model)) == (ModelType.UNIGRAM, True, [])


NOT_A_BYTE = b"\x0a\x0a\x0a\x06<0xg1>\x18\x06"
"""A piece of the type of bytes."""


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x0a\xff", b"{}", b"\x12\x00", b"\x0a\x03\x0a\x01\xff", NOT_A_BYTE])
def test_a_file_that_is_not_a_model_is_refused_by_its_name(data: bytes) -> None:
    with pytest.raises(cppmill_core.CorruptDataError, match="other: not a SentencePiece model"):
        read_model(data, where="other")


OF_ANOTHER_WIRE_TYPE = {
    "the type of a piece": b"\x0a\x06\x0a\x01a\x1a\x013",
    "the text of a piece": b"\x0a\x08\x0a\x01a\x0dzzzz",
    "a normaliser's flag": b"\x0a\x03\x0a\x01a\x1a\x04\x18\x01\x1a\x00",
    "a trainer's flag": b"\x0a\x03\x0a\x01a\x12\x04\x9a\x02\x01x",
    "a message": b"\x0a\x03\x0a\x01a\x18\x01",
}
"""Fields that protobuf leaves out, and so the `sentencepiece` package too."""


@pytest.mark.parametrize("name", OF_ANOTHER_WIRE_TYPE)
def test_a_field_of_another_wire_type_is_refused(name: str) -> None:
    with pytest.raises(cppmill_core.CorruptDataError, match="wire type"):
        read_model(OF_ANOTHER_WIRE_TYPE[name], where="other")


def test_rewriting_with_the_same_pieces_keeps_every_byte(folder: Path) -> None:
    data = (folder / "tokenizer.model").read_bytes()
    assert rewrite_pieces(data, lambda _, piece: piece) == data


def test_rewriting_changes_text_and_type_alone(folder: Path) -> None:
    data = (folder / "tokenizer.model").read_bytes()
    before = read_model(data, where="")
    changed = replace(before.pieces[400], text="other", type=PieceType.UNUSED)
    after = read_model(rewrite_pieces(data, lambda id_, piece: changed if id_ == 400 else piece), where="")
    assert after == replace(before, pieces=(*before.pieces[:400], changed, *before.pieces[401:]))
    assert isinstance(after, Model)


def escaped_bytes(document: bytes) -> list[int]:
    """Return the offsets of the bytes that Python escapes when it decodes."""
    found, at = [], 0
    for character in document.decode(errors="surrogateescape"):
        is_escape = 0xDC80 <= ord(character) <= 0xDCFF
        found += [at] if is_escape else []
        at += 1 if is_escape else len(character.encode())
    return found


def test_invalid_bytes_are_those_that_python_cannot_decode() -> None:
    starts = np.cumsum([0, *map(len, HOSTILE)])
    text = np.frombuffer(b"".join(HOSTILE), np.uint8)
    expected = [
        start + at for start, document in zip(starts[:-1], HOSTILE, strict=True) for at in escaped_bytes(document)
    ]
    assert invalid_bytes(text, pa.array(HOSTILE, pa.binary()), starts).tolist() == expected
    assert len(expected) > 256
