"""Loading tokenizer directories of any kind, and refusing invalid ones."""

import json
from pathlib import Path

import cppmill_core
import pytest
from cppmill_core import AnyTokenizer, Tokenizer, load_tokenizer


def test_a_directory_without_a_kind_is_run_by_the_native_core(directory: Path, tokenizer: Tokenizer) -> None:
    loaded: AnyTokenizer = load_tokenizer(directory, tokenizer.digest)
    assert isinstance(loaded, Tokenizer)
    assert loaded.digest == tokenizer.digest


def test_another_digest_is_refused(directory: Path) -> None:
    with pytest.raises(cppmill_core.CorruptDataError, match="this is the tokenizer"):
        load_tokenizer(directory, "0" * 64)


def test_an_unknown_kind_is_refused_by_name(directory: Path, tmp_path: Path) -> None:
    manifest = json.loads((directory / "manifest.json").read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "kind": "wordpiece"}))
    with pytest.raises(cppmill_core.InvalidInputError, match="'wordpiece'"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{", ""])
def test_an_invalid_manifest_is_refused_by_its_path(content: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(cppmill_core.CorruptDataError, match=r"manifest\.json"):
        load_tokenizer(tmp_path)


def test_a_folder_without_a_manifest_says_what_to_pass(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="give the folder `tokenizer`"):
        load_tokenizer(tmp_path)
