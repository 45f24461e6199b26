"""The tokenizer as a library: files, parts with control tokens, offsets, pickles, and directories that are refused."""

import hashlib
import itertools
import json
import pickle
import shutil
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pytest
from cppmill_core import Control, InvalidInputError, Tokenizer
from hypothesis import given
from hypothesis import strategies as st

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"


@pytest.fixture
def copy(directory: Path, tmp_path: Path) -> Path:
    """A copy of the directory that a test may change."""
    return Path(shutil.copytree(directory, tmp_path / "copy"))


@pytest.fixture
def files(tmp_path: Path, headers: list[bytes]) -> list[Path]:
    """Files with real C++, an empty one and one that is not UTF-8."""
    folder = tmp_path / "files"
    folder.mkdir()
    paths = [folder / f"{number}.h" for number in range(60)]
    for path, content in zip(paths, [b"", b"\xff\xfe", *headers], strict=False):
        path.write_bytes(content)
    return paths


def test_files_have_the_ids_of_their_bytes_whatever_the_threads(tokenizer: Tokenizer, files: list[Path]) -> None:
    expected = tokenizer.encode_batch([path.read_bytes() for path in files])
    for threads in (1, 2, 3):
        assert tokenizer.encode_files(files, threads=threads).equals(expected)
    assert tokenizer.encode_files([str(path) for path in files[:2]]).equals(expected[:2])
    assert tokenizer.encode_files([]).to_pylist() == []


def test_a_path_that_is_not_a_file_is_named(tokenizer: Tokenizer, files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*missing\.h'$"):
        tokenizer.encode_files([*files, tmp_path / "missing.h"], threads=2)
    with pytest.raises(OSError, match="files: is a folder"):
        tokenizer.encode_files([tmp_path / "files"])
    with pytest.raises(OSError, match="/dev/zero: is no regular file"):
        tokenizer.encode_files(["/dev/zero"])
    sparse = tmp_path / "sparse.h"
    with sparse.open("wb") as stream:
        stream.truncate(1 << 32)
    with pytest.raises(InvalidInputError, match=r"sparse\.h: a file of 4294967296 bytes is too long"):
        tokenizer.encode_files([sparse])


def test_parts_are_control_ids_and_texts_encoded_alone(tokenizer: Tokenizer) -> None:
    prefix, suffix = (tokenizer.control_id(name) for name in ("<FIM_PREFIX>", "FIM_SUFFIX"))
    ids = tokenizer.encode_parts([Control("FIM_PREFIX"), b"int x\xff", "é", Control("<FIM_SUFFIX>"), "", b"<EOS>"])
    texts = [tokenizer.encode(text).to_pylist() for text in (b"int x\xff", "é", b"<EOS>")]
    assert ids.to_pylist() == [prefix, *texts[0], *texts[1], suffix, *texts[2]]
    assert ids.type == tokenizer.encode(b"").type
    assert tokenizer.encode_parts([]).equals(tokenizer.encode(b""))
    assert tokenizer.decode(ids, skip_control=True) == b"int x\xff\xc3\xa9<EOS>"


def test_a_control_token_that_there_is_not_is_refused_with_similar_names(tokenizer: Tokenizer) -> None:
    with pytest.raises(InvalidInputError, match=r'"fim_prefix" is no control token .* similar are <FIM_PREFIX>, <FIM_'):
        tokenizer.encode_parts([Control("fim_prefix")])
    with pytest.raises(InvalidInputError, match="<EOS>"):
        tokenizer.control_id("<EOT>")
    with pytest.raises(InvalidInputError, match="RESERVED_7"):
        tokenizer.encode_parts([Control("RESERVED_7")])
    with pytest.raises(TypeError):
        tokenizer.encode_parts([b"int", 5])  # type: ignore[list-item]


def test_control_is_a_value() -> None:
    one, same, other = Control("EOS"), Control("<EOS>"), Control("BOS")
    assert one == same != other
    assert len({one, same, other}) == 2
    assert (repr(same), one.name) == ("Control('EOS')", "EOS")
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(AttributeError):
        one.name = "BOS"  # type: ignore[misc]


@given(st.lists(st.one_of(st.binary(max_size=20), st.text(max_size=20), st.just(Control("EOS"))), max_size=6))
def test_offsets_cut_the_text_into_the_bytes_of_its_tokens(
    tokenizer: Tokenizer, parts: list[Control | bytes | str]
) -> None:
    ids = tokenizer.encode_parts(parts)
    offsets = tokenizer.byte_offsets(ids)
    text = tokenizer.decode(ids, skip_control=True)
    pieces = [text[start:end] for start, end in itertools.pairwise(offsets.to_pylist())]
    assert pieces == [tokenizer.token_bytes(id_) or b"" for id_ in ids.to_pylist()]
    assert (offsets.type, offsets[0].as_py(), offsets[-1].as_py()) == (pa.int64(), 0, len(text))
    assert tokenizer.byte_offsets(ids.to_pylist()).equals(offsets)


def test_offsets_of_lists_are_those_of_each(tokenizer: Tokenizer, headers: list[bytes]) -> None:
    lists = tokenizer.encode_batch([b"", *headers[:20]])
    offsets = tokenizer.byte_offsets(lists)
    assert offsets.type == pa.list_(pa.int64())
    assert offsets.to_pylist() == [tokenizer.byte_offsets(row.values).to_pylist() for row in lists]
    assert tokenizer.byte_offsets(lists.slice(3, 5)).equals(offsets.slice(3, 5))
    with pytest.raises(InvalidInputError, match=r"row 1: token id \d+ is not below .* \(at 1\)"):
        tokenizer.byte_offsets(pa.array([[1], [1, tokenizer.vocab_size]]))


def test_a_pickle_is_the_path_and_holds_only_the_same_tokenizer(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy.parent)
    tokenizer = Tokenizer.from_dir(copy.name)
    pickled = pickle.dumps(tokenizer)
    assert len(pickled) < 1000
    monkeypatch.chdir("/")
    again = pickle.loads(pickled)
    assert (again.digest, again.encode(b"int x;")) == (tokenizer.digest, tokenizer.encode(b"int x;"))
    (copy / "manifest.json").write_text((copy / "manifest.json").read_text() + "\n")
    with pytest.raises(cppmill_core.CorruptDataError, match=f"not {tokenizer.digest}"):
        pickle.loads(pickled)
    with pytest.raises(cppmill_core.CorruptDataError, match="not 0000"):
        Tokenizer.from_dir(copy, digest="0000")


@pytest.mark.parametrize("regex", [GPT2, CL100K])
def test_another_pattern_is_refused_by_name(copy: Path, regex: str) -> None:
    content = json.loads((copy / "tokenizer.json").read_text())
    content["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = regex
    written = json.dumps(content)
    (copy / "tokenizer.json").write_text(written)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["files"]["tokenizer.json"] = hashlib.sha256(written.encode()).hexdigest()
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        InvalidInputError, match=r"no pre-token pattern .*p\{L\}.*this version knows cpp-words-1, cpp-lines-1"
    ):
        Tokenizer.from_dir(copy)


def test_a_newer_format_and_a_missing_one_are_refused(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"format": "cppmill-tokenizer-2", "vocab_size": "new"}))
    with pytest.raises(InvalidInputError, match='"cppmill-tokenizer-2", and this version knows "cppmill-tokenizer-1"'):
        Tokenizer.from_dir(copy)
    del manifest["format"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(cppmill_core.CorruptDataError, match="missing field `format`"):
        Tokenizer.from_dir(copy)


def test_a_folder_without_a_manifest_is_named_with_the_remedy(copy: Path, tmp_path: Path) -> None:
    (copy / "manifest.json").unlink()
    with pytest.raises(
        OSError, match=r"copy: there is no manifest\.json: it has a tokenizer\.json, but other programs"
    ):
        Tokenizer.from_dir(copy)
    (tmp_path / "tokenizer").mkdir()
    with pytest.raises(OSError, match="give the folder `tokenizer` in it"):
        Tokenizer.from_dir(tmp_path)
    with pytest.raises(OSError, match="missing"):
        Tokenizer.from_dir(tmp_path / "missing")


def test_a_chunked_column_is_encoded_as_its_texts(tokenizer: Tokenizer) -> None:
    chunks = pa.chunked_array([[b"int x;", b""], [], [b"\xff"]], pa.binary())
    texts = [b"int x;", b"", b"\xff"]
    assert tokenizer.encode_batch(chunks, 2).equals(tokenizer.encode_batch(texts))
    assert tokenizer.count_batch(chunks).equals(tokenizer.count_batch(texts))


@pytest.mark.parametrize("call", ["encode_batch", "encode_files", "count_batch", "decode_batch", "digest_batch"])
def test_no_threads_are_refused(tokenizer: Tokenizer, call: str) -> None:
    nothing = pa.array([], pa.list_(pa.uint16())) if call in ("decode_batch", "digest_batch") else []
    with pytest.raises(InvalidInputError, match="threads must be 1 or more"):
        getattr(tokenizer, call)(nothing, threads=0)


@pytest.mark.parametrize(
    ("call", "argument", "error", "message"),
    [
        ("encode", None, TypeError, "a text must be bytes or str, not NoneType"),
        ("encode", "\ud800", InvalidInputError, "lone surrogates"),
        ("encode_batch", [b"a", 1], TypeError, "a text must be bytes or str, not int"),
        ("encode_batch", b"ab", TypeError, "documents must be an Arrow array .* or a list .*, not bytes"),
        ("decode", [-1], InvalidInputError, "-1 is no token id"),
        ("decode", [2**32], InvalidInputError, "4294967296 is no token id"),
        ("decode", b"ab", TypeError, "ids must be an Arrow array of integers or a list of int, not bytes"),
        ("byte_offsets", [-4], InvalidInputError, "-4 is no token id"),
        ("byte_offsets", pa.Array.from_buffers(pa.null(), 2**40, [None]), InvalidInputError, "no nulls|not Null"),
        ("decode_batch", [[66]], TypeError, "ids must be an Arrow list array .*, not list"),
    ],
)
def test_an_argument_of_another_kind_is_named(
    tokenizer: Tokenizer, call: str, argument: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        getattr(tokenizer, call)(argument)


@pytest.mark.parametrize("setting", ["truncation", "padding"])
def test_a_setting_that_changes_lengths_is_refused_by_name(copy: Path, setting: str) -> None:
    tokenizer_json = copy / "tokenizer.json"
    content = json.loads(tokenizer_json.read_bytes()) | {setting: {"max_length": 5}}
    tokenizer_json.write_text(json.dumps(content))
    manifest = json.loads((copy / "manifest.json").read_bytes())
    manifest["files"]["tokenizer.json"] = hashlib.sha256(tokenizer_json.read_bytes()).hexdigest()
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidInputError, match=f"`{setting}` is"):
        Tokenizer.from_dir(copy)


@pytest.mark.parametrize("offsets", [[0, 1 << 20, 3], [0, 3, 1, 3]])
def test_arrays_whose_offsets_lead_out_of_their_data_are_refused(tokenizer: Tokenizer, offsets: list[int]) -> None:
    buffers = [None, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(b"abc")]
    texts = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    for documents in (texts, pa.chunked_array([texts])):
        for call in (tokenizer.encode_batch, tokenizer.count_batch):
            with pytest.raises(InvalidInputError, match="malformed Arrow data: .*offset"):
                call(documents)
