"""The native tokenizer gives the ids of `tokenizers`, and decoding gives back the bytes."""

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
from cppmill_core import Tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as HuggingFace

PATTERN = "cpp-words-1"
CONTROL = ["<PAD>", "<UNK>", "<BOS>", "<EOS>", "<FIM_PREFIX>", "<CODE_START>"]
RESERVED = [f"<RESERVED_{id_}>" for id_ in range(6, 10)]
VOCAB_SIZE = 4000
FRAGMENTS = [
    *["int", " main", "()", " {\n    ", "std::", "0xFF", "1'0", '"', "\\n"],
    *["é", "名", "<EOS>", "<RESERVED_7>", "_", "\t"],
]


def train(texts: list[str]) -> HuggingFace:
    """Train a byte-level BPE of the shape that the encoder takes."""
    tokenizer = HuggingFace(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(cppmill_core.PATTERNS[PATTERN]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=CONTROL + RESERVED,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def write_manifest(directory: Path, **changes: object) -> None:
    """Write the manifest of the tokenizer.json in `directory`."""
    content = (directory / "tokenizer.json").read_bytes()
    manifest = {
        "format": "cppmill-tokenizer-1",
        "vocab_size": len(json.loads(content)["model"]["vocab"]),
        "files": {"tokenizer.json": hashlib.sha256(content).hexdigest()},
        "tokens": [{"id": id_, "token": name, "strength": "control"} for id_, name in enumerate(CONTROL)],
        "reserved": [[6, 9]],
    }
    (directory / "manifest.json").write_text(json.dumps(manifest | changes, sort_keys=True))


@pytest.fixture(scope="session")
def directory(headers: list[bytes], prepared: Callable[..., Path]) -> Path:
    """A tokenizer directory that Hugging Face trained on some of the headers."""

    def make(folder: Path) -> None:
        content = json.loads(train([content.decode("utf-8", "ignore") for content in headers[::2]]).to_str())
        content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] not in RESERVED]
        (folder / "tokenizer.json").write_text(json.dumps(content))
        write_manifest(folder)

    return prepared("native-hugging-face-words", make)


@pytest.fixture(scope="session")
def hugging_face(directory: Path) -> HuggingFace:
    """The directory as `tokenizers` loads it, with control tokens in text as ordinary text."""
    tokenizer = HuggingFace.from_file(str(directory / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.fixture(scope="session")
def tokenizer(directory: Path) -> Tokenizer:
    """The directory as the native core loads it."""
    return Tokenizer.from_dir(directory)


def ids_of(tokenizer: Tokenizer, text: bytes | str) -> list[int]:
    """Return the ids of a text as Python numbers."""
    ids: list[Any] = tokenizer.encode(text).to_pylist()
    return ids


def test_ids_of_real_files_are_those_of_hugging_face_and_decode_to_the_bytes(
    tokenizer: Tokenizer, hugging_face: HuggingFace, headers: list[bytes]
) -> None:
    texts = [content for content in headers if content.decode("utf-8", "ignore").encode() == content]
    assert len(texts) > 60
    expected = [encoding.ids for encoding in hugging_face.encode_batch_fast([text.decode() for text in texts])]
    assert tokenizer.encode_batch(pa.array(texts, pa.binary())).to_pylist() == expected
    assert tokenizer.decode_batch(tokenizer.encode_batch(headers)).to_pylist() == headers


@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(codec="utf-8"))), max_size=30))
@settings(max_examples=200, deadline=None)
def test_ids_of_text_are_those_of_hugging_face(
    tokenizer: Tokenizer, hugging_face: HuggingFace, fragments: list[str]
) -> None:
    text = "".join(fragments)
    ids = ids_of(tokenizer, text)
    assert ids == hugging_face.encode(text).ids == ids_of(tokenizer, text.encode())


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_decode_to_themselves_and_runs_are_encoded_alone(
    tokenizer: Tokenizer, hugging_face: HuggingFace, data: bytes
) -> None:
    ids = tokenizer.encode(data)
    assert tokenizer.decode(ids) == tokenizer.decode(ids_of(tokenizer, data)) == data
    expected: list[int | None] = []
    for kind, run in runs(data):
        expected += hugging_face.encode(run.decode()).ids if kind else [single_byte(hugging_face, run)]
    assert ids_of(tokenizer, data) == expected


def runs(data: bytes) -> Iterator[tuple[bool, bytes]]:
    """Yield the maximal valid UTF-8 runs of `data` (true) and the invalid bytes between them (false)."""
    while data:
        try:
            end = len(data.decode()) and len(data)
        except UnicodeDecodeError as error:
            end = error.start
        if end:
            yield True, data[:end]
        data = data[end:]
        if data:
            invalid = invalid_length(data)
            yield from ((False, data[i : i + 1]) for i in range(invalid))
            data = data[invalid:]


def invalid_length(data: bytes) -> int:
    """Return how many bytes at the start of `data` are invalid together."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.end - error.start
    return 0


def single_byte(hugging_face: HuggingFace, byte: bytes) -> int | None:
    """Return the id of a byte's own token."""
    char = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(byte.decode("latin-1"))
    if byte[0] < 0x80:
        return hugging_face.token_to_id(char[0][0])
    printable = 0xA1 <= byte[0] != 0xAD
    others = [b for b in range(256) if not (0x21 <= b <= 0x7E or 0xA1 <= b != 0xAD)]
    return hugging_face.token_to_id(chr(byte[0] if printable else 0x100 + others.index(byte[0])))


@pytest.mark.parametrize("unit", [" ", "9", "a", "ab", "\n", "(", "\\n", "é", "名", "aaaab", "x = y + 1; ", "\t \v"])
@pytest.mark.parametrize("repeats", [1, 47, 48, 49, 97, 3000])
def test_ids_of_long_words_are_those_of_hugging_face(
    tokenizer: Tokenizer, hugging_face: HuggingFace, unit: str, repeats: int
) -> None:
    text = unit * repeats + "x"
    assert ids_of(tokenizer, text) == hugging_face.encode(text).ids


@pytest.mark.parametrize("unit", [b" ", b"7", b"a", b"abc", b"\n", b"_", b"\xc3\xa9", b"\xff", b"Ab1_"])
def test_one_long_word_is_encoded_whole(tokenizer: Tokenizer, unit: bytes) -> None:
    """Encoding in quadratic time would take an hour; the benchmark of hard inputs measures how long it takes."""
    data = unit * (1_600_000 // len(unit))
    ids = tokenizer.encode(data)
    assert tokenizer.decode(ids) == data
    assert tokenizer.count(data) == len(ids)


def test_threads_and_array_types_do_not_change_the_ids(tokenizer: Tokenizer, headers: list[bytes]) -> None:
    rng = random.Random(5)
    documents = [b"", *headers, b""] * 2
    rng.shuffle(documents)
    expected = tokenizer.encode_batch(documents)
    assert expected.type == pa.list_(pa.uint16())
    assert sum(map(len, documents)) > 1_500_000
    for threads in (2, 3, 7):
        assert tokenizer.encode_batch(pa.array(documents, pa.large_binary()), threads).equals(expected)
    ascii_texts = [document for document in documents if document.isascii()]
    ids = tokenizer.encode_batch(ascii_texts)
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary_view()):
        assert tokenizer.encode_batch(pa.array(ascii_texts, kind)).equals(ids)
    assert tokenizer.encode_batch([text.decode() for text in ascii_texts]).equals(ids)
    array = pa.array(documents)
    assert tokenizer.encode_batch(array.slice(10, 50)).equals(expected.slice(10, 50))
    assert tokenizer.decode_batch(expected.slice(10, 50)).to_pylist() == documents[10:60]
    assert tokenizer.encode_batch([]).to_pylist() == []


@pytest.mark.parametrize(("bos", "eos"), [(None, None), (2, None), (None, 3), (2, 3)])
def test_markers_surround_every_text_and_are_left_out_again(
    tokenizer: Tokenizer, headers: list[bytes], bos: int | None, eos: int | None
) -> None:
    documents = [b"", *headers[:20], b"", b"<BOS>\xff"]
    before, after = ([] if marker is None else [marker] for marker in (bos, eos))
    plain = tokenizer.encode_batch(documents)
    for threads in (1, 3):
        around = tokenizer.encode_batch(documents, threads, bos=bos, eos=eos)
        assert around.to_pylist() == [[*before, *ids, *after] for ids in plain.to_pylist()]
        assert tokenizer.decode_batch(around, threads, bos=bos, eos=eos).to_pylist() == documents
        digests = tokenizer.digest_batch(around, threads, bos=bos, eos=eos)
        assert digests["num_bytes"].to_pylist() == [len(document) for document in documents]
        assert digests["sha256"].to_pylist() == [hashlib.sha256(document).hexdigest() for document in documents]
        part = around.slice(3, 9)
        assert tokenizer.decode_batch(part, threads, bos=bos, eos=eos).to_pylist() == documents[3:12]
        wide = around.cast(pa.large_list(pa.int64()))
        assert tokenizer.decode_batch(wide, threads, bos=bos, eos=eos).to_pylist() == documents


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([2, 64, 4], "row 1: it has id 4 where EOS .3. must be"),
        ([9, 64, 3], "row 1: it has id 9 where BOS .2. must be"),
        ([2], "row 1: 1 ids are fewer than its BOS and EOS"),
        ([], "row 1: 0 ids are fewer than its BOS and EOS"),
        ([2, 3, 64, 3], "row 1: token id 3 at 0 is .<EOS>"),
    ],
)
def test_a_list_without_its_markers_is_refused(tokenizer: Tokenizer, ids: list[int], message: str) -> None:
    lists = pa.array([[2, 3], ids], pa.list_(pa.uint16()))
    for call in (tokenizer.decode_batch, tokenizer.digest_batch):
        with pytest.raises(cppmill_core.InvalidInputError, match=message):
            call(lists, bos=2, eos=3)


def test_a_marker_beyond_the_vocabulary_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=f"id {VOCAB_SIZE} .*size {VOCAB_SIZE}"):
        tokenizer.encode_batch([b"a"], eos=VOCAB_SIZE)


def test_the_characters_of_control_tokens_are_text_and_are_counted(tokenizer: Tokenizer) -> None:
    text = b"<EOS><EOS <FIM_PREFIX>><RESERVED_6>"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert min(ids_of(tokenizer, text)) >= len(CONTROL) + len(RESERVED)
    assert tokenizer.count_control(pa.array([text, b"<PAD><EOS>"])) == {"<PAD>": 1, "<EOS>": 2, "<FIM_PREFIX>": 1}
    assert tokenizer.count_control([b"no", "control"]) == {}


def test_control_and_reserved_ids_are_refused_by_name_unless_skipped(tokenizer: Tokenizer) -> None:
    ids = [3, *ids_of(tokenizer, "int x;"), 7]
    assert tokenizer.decode(ids, skip_control=True) == b"int x;"
    lists = pa.array([[], ids], pa.list_(pa.uint16()))
    assert tokenizer.decode_batch(lists, skip_control=True).to_pylist() == [b"", b"int x;"]
    with pytest.raises(cppmill_core.InvalidInputError, match="id 3 at 0 is .<EOS>"):
        tokenizer.decode(ids)
    with pytest.raises(cppmill_core.InvalidInputError, match="row 1: token id 3"):
        tokenizer.decode_batch(lists)
    with pytest.raises(cppmill_core.InvalidInputError, match=f"id {VOCAB_SIZE} .*size {VOCAB_SIZE}"):
        tokenizer.decode(pa.array([VOCAB_SIZE], pa.int64()), skip_control=True)
    with pytest.raises(cppmill_core.InvalidInputError, match="null at row 1"):
        tokenizer.encode_batch(pa.array([b"a", None]))


def test_properties_are_those_of_the_directory(
    tokenizer: Tokenizer, hugging_face: HuggingFace, directory: Path
) -> None:
    assert tokenizer.vocab_size == hugging_face.get_vocab_size() == VOCAB_SIZE
    assert tokenizer.digest == hashlib.sha256((directory / "manifest.json").read_bytes()).hexdigest()
    assert tokenizer.pattern == PATTERN
    assert [tokenizer.token_bytes(id_) for id_ in range(10)] == [None] * 10
    for id_ in range(10, VOCAB_SIZE):
        text = tokenizer.token_bytes(id_)
        assert text
        assert tokenizer.decode([id_]) == text
    with pytest.raises(cppmill_core.InvalidInputError):
        tokenizer.token_bytes(VOCAB_SIZE)


def change(path: list[str | int], value: object) -> Callable[[dict[str, Any]], None]:
    """Return a function that sets one value of a tokenizer.json."""

    def apply(content: dict[str, Any]) -> None:
        place: Any = content
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return apply


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change(["pre_tokenizer", "pretokenizers", 0, "pattern", "Regex"], r"\w+"), "cpp-words-1"),
        (change(["pre_tokenizer", "pretokenizers", 1, "add_prefix_space"], True), "add_prefix_space"),
        (change(["normalizer"], {"type": "NFC"}), "normalizer"),
        (change(["model", "dropout"], 0.1), "dropout"),
        (change(["model", "byte_fallback"], True), "byte_fallback"),
        (change(["added_tokens", 2, "special"], False), "<BOS>"),
        (change(["model", "merges", 5], ["<EOS>Ā", "q"]), "merge 5"),
        (change(["model", "merges", 5], ["<EOS>", "q"]), "<EOS>"),
    ],
)
def test_a_tokenizer_that_the_encoder_cannot_follow_is_refused(
    directory: Path, tmp_path: Path, edit: Callable[[dict[str, Any]], None], message: str
) -> None:
    content = json.loads((directory / "tokenizer.json").read_text())
    edit(content)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    write_manifest(tmp_path)
    with pytest.raises(cppmill_core.CoreError, match=message):
        Tokenizer.from_dir(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": {"tokenizer.json": "0" * 64}}, "manifest.json says 0000"),
        ({"files": {}}, "no digest of tokenizer.json"),
        ({"files": {"tokenizer.json": "", "../x": ""}}, "plain file name|manifest.json says"),
        ({"vocab_size": VOCAB_SIZE + 1}, f"{VOCAB_SIZE} tokens.*{VOCAB_SIZE + 1}"),
        ({"tokens": [{"id": 20, "token": "<EOT>", "strength": "control"}]}, "<EOT>"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(
    directory: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    (tmp_path / "tokenizer.json").write_bytes((directory / "tokenizer.json").read_bytes())
    write_manifest(tmp_path, **changes)
    with pytest.raises(cppmill_core.CoreError, match=message):
        Tokenizer.from_dir(tmp_path)


def test_a_missing_file_is_an_os_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"manifest\.json"):
        Tokenizer.from_dir(tmp_path)
