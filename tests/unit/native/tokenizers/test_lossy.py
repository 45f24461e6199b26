"""SentencePiece models that lose text: ids and texts are those of the package, for whole documents."""

import io
import pickle
from pathlib import Path
from typing import Any

import pytest
from cppmill_core import AnyTokenizer, CorruptDataError, InvalidInputError, load_tokenizer
from cppmill_core.adoption import find_source, write_directory
from cppmill_core.segments import MAX_SEGMENT_BYTES
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer

MODELS: dict[str, dict[str, Any]] = {
    "bpe, bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 500},
    "unigram, unknown": {"model_type": "unigram", "vocab_size": 200, "unk_surface": " ? "},
    "words": {"model_type": "word", "vocab_size": 200},
    "a space behind": {"model_type": "bpe", "vocab_size": 200, "treat_whitespace_as_suffix": True},
    "no space": {"model_type": "bpe", "vocab_size": 200, "add_dummy_prefix": False},
}
TEXTS = [
    b"",
    b" ",
    b"int x;",
    b"  int   x ; ",
    b"int x;\nint y;\n",
    "\u4e16\u754c int \u2047 x".encode(),
    "\ufb01x \u2581 \uff21".encode(),
    b"\xff\xfe int",
    b"<unk><s></s>",
    b"int x; " * (MAX_SEGMENT_BYTES // 4),
]


@pytest.fixture(scope="module", params=MODELS)
def folder(request: pytest.FixtureRequest, headers: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(headers[0].decode().splitlines()),
        model_writer=written,
        hard_vocab_limit=False,
        minloglevel=2,
        **MODELS[request.param],
    )
    folder: Path = tmp_path_factory.mktemp("lossy")
    (folder / "given.model").write_bytes(written.getvalue())
    (folder / "tokenizer").mkdir()
    write_directory(find_source(folder / "given.model", allow_lossy=True), folder / "tokenizer")
    return folder / "tokenizer"


def decoded(processor: Any, ids: list[int]) -> bytes:
    text: str = processor.decode(ids)
    return text.encode()


def test_ids_and_texts_are_those_of_the_package(pieces: AnyTokenizer, processor: Any, headers: list[bytes]) -> None:
    texts = [*TEXTS, *headers[:20]]
    ids = pieces.encode_batch(texts, 2)
    assert ids.to_pylist() == [processor.encode(text) for text in texts]
    assert pieces.decode_batch(ids, 2).to_pylist() == [decoded(processor, one) for one in ids.to_pylist()]
    assert pieces.is_lossy and pickle.loads(pickle.dumps(pieces)).is_lossy


@settings(max_examples=40)
@given(text=st.text(st.sampled_from("int x\n\t\u3000\ufb01\u2581\u4e16;"), max_size=12), ends=st.booleans())
def test_a_short_text_too(pieces: AnyTokenizer, processor: Any, text: str, ends: bool) -> None:
    bos, eos = (1, 2) if ends else (None, None)
    ids = pieces.encode_batch([text, "x", text], bos=bos, eos=eos)
    (back, _, again) = pieces.decode_batch(ids, bos=bos, eos=eos).to_pylist()
    assert back == again == decoded(processor, processor.encode(text))


def test_a_manifest_must_say_what_is_lost(folder: Path, tmp_path: Path) -> None:
    manifest = (folder / "manifest.json").read_bytes()
    (tmp_path / "tokenizer.model").write_bytes((folder / "tokenizer.model").read_bytes())
    start, end = manifest.index(b'"lossy":['), manifest.index(b"]", manifest.index(b'"lossy":[')) + 2
    for said, error in (
        (manifest[:start] + manifest[end:], InvalidInputError),
        (manifest.replace(b"it ", b"nothing ", 1), CorruptDataError),
    ):
        (tmp_path / "manifest.json").write_bytes(said)
        with pytest.raises(error, match="its manifest says|--allow-lossy"):
            load_tokenizer(tmp_path)
