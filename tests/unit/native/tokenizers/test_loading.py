"""Loading tokenizer directories of any kind, and refusing invalid ones."""

import errno
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import cppmill_core
import pytest
from cppmill_core import AnyTokenizer, Tokenizer, load_tokenizer
from cppmill_core.manifests import read_manifest


def test_a_directory_without_a_kind_is_run_by_the_native_core(directory: Path, tokenizer: Tokenizer) -> None:
    loaded: AnyTokenizer = load_tokenizer(directory, tokenizer.digest)
    assert isinstance(loaded, Tokenizer)
    assert loaded.digest == tokenizer.digest


def test_another_digest_is_refused(directory: Path) -> None:
    with pytest.raises(cppmill_core.CorruptDataError, match="this is the tokenizer"):
        load_tokenizer(directory, "0" * 64)


@pytest.mark.parametrize("load", [load_tokenizer, Tokenizer.from_dir])
def test_an_unknown_kind_is_refused_by_name(
    directory: Path, tmp_path: Path, load: Callable[[Path], AnyTokenizer]
) -> None:
    manifest = json.loads((directory / "manifest.json").read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "kind": "wordpiece"}))
    with pytest.raises(cppmill_core.InvalidInputError, match="kind .wordpiece"):
        load(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{", ""])
def test_an_invalid_manifest_is_refused_by_its_path(content: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(cppmill_core.CorruptDataError, match=r"manifest\.json"):
        load_tokenizer(tmp_path)


def test_a_folder_without_a_manifest_says_what_to_pass(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="give the folder `tokenizer`"):
        load_tokenizer(tmp_path)


def test_a_directory_that_lacks_a_file_of_its_manifest_is_damaged(directory: Path, tmp_path: Path) -> None:
    copy, name = shutil.copytree(directory, tmp_path / "copy"), "tokenizer.json"
    (copy / name).unlink()
    for load in (load_tokenizer, Tokenizer.from_dir, lambda place: read_manifest(place, None)):
        with pytest.raises(cppmill_core.CorruptDataError, match=rf"{name}: there is no such file, and manifest\.json"):
            load(copy)
    (copy / name).mkdir()
    with pytest.raises(cppmill_core.CorruptDataError, match=rf"{name}: there is no such file, and manifest\.json"):
        load_tokenizer(copy)


def test_a_manifest_that_is_no_regular_file_is_not_read(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    (copy / "manifest.json").unlink()
    (copy / "manifest.json").symlink_to("/dev/null")
    for load in (load_tokenizer, Tokenizer.from_dir):
        with pytest.raises(OSError, match=r"manifest\.json: no regular file"):
            load(copy)


@pytest.mark.parametrize("reserved", [[[0, 2**62]], [[5, 4]], [[7, 7], [7, 7]]])
def test_reserved_ranges_out_of_place_are_not_walked_through(reserved: object, directory: Path, tmp_path: Path) -> None:
    manifest = json.loads((directory / "manifest.json").read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "files": {}, "reserved": reserved}))
    with pytest.raises(cppmill_core.CorruptDataError, match="the reserved range .* is out of place"):
        read_manifest(tmp_path, None)


def test_more_ids_than_the_encoder_knows_are_refused_before_memory_is_taken(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    manifest = json.loads((copy / "manifest.json").read_bytes())
    rules = json.loads((copy / "tokenizer.json").read_bytes())
    rules["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False}
    (copy / "tokenizer.json").write_text(json.dumps(rules))
    digest = hashlib.sha256((copy / "tokenizer.json").read_bytes()).hexdigest()
    adopted = {"kind": "hugging-face", "vocab_size": 2**32 - 1, "files": {"tokenizer.json": digest}}
    (copy / "manifest.json").write_text(json.dumps({**manifest, **adopted}))
    with pytest.raises(cppmill_core.InvalidInputError, match="4294967295 ids .*: the encoder knows up to 2097151"):
        Tokenizer.from_dir(copy)


def test_a_file_that_the_system_refuses_has_its_number_and_its_name(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    refused = copy / "tokenizer.json"
    refused.unlink()
    refused.symlink_to("/proc/self/mem")  # nothing is mapped where it begins
    with pytest.raises(OSError, match="Input/output error") as raised:
        load_tokenizer(copy)
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, str(refused))
