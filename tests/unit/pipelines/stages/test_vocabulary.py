"""A vocabulary of one's own in a folder and on object stores, and the release that travels with a tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from configs import VOCABULARY
from pipelines.stages.vocabulary import find_revision, local_vocabulary, vocabulary_key
from schemas.errors import ConfigError
from schemas.places import is_remote
from tokenizer_build.lock import vocabulary_digest
from tokenizer_build.own import init_vocabulary
from tokenizer_build.vocabulary import read_vocabulary
from transforms.storage.folder import OutputFolder


def test_it_is_read_where_it_is_or_from_a_copy_of_what_a_url_names(out: OutputFolder, tmp_path: Path) -> None:
    if is_remote(out.root):
        with pytest.raises(ConfigError, match="there is no ids.lock"):
            local_vocabulary(out.root)
    init_vocabulary(VOCABULARY, tmp_path / "own")
    for path in (tmp_path / "own").rglob("*"):
        if path.is_file():
            out.publish_bytes(path.relative_to(tmp_path / "own").as_posix(), path.read_bytes())
    folder = local_vocabulary(out.root if is_remote(out.root) else Path(out.root))
    assert vocabulary_key(folder, is_own=True) == vocabulary_key(tmp_path / "own", is_own=True)
    assert vocabulary_digest(read_vocabulary(folder)) == vocabulary_digest(read_vocabulary(VOCABULARY))
    assert local_vocabulary(None) == VOCABULARY


def test_a_release_is_kept_in_out_once_it_was_found(tmp_path: Path) -> None:
    out, folder, elsewhere = OutputFolder(tmp_path / "out"), tmp_path / "own", tmp_path / "elsewhere"
    for vocabulary in (folder, elsewhere):
        init_vocabulary(VOCABULARY, vocabulary)
    digest = "d" * 64
    assert find_revision(out, digest, folder) == "unreleased"
    assert list(out.files()) == []
    (folder / "releases.lock").write_text(f"1.0\t{digest}\n2.0\t{'e' * 64}\n")
    assert find_revision(out, digest, folder) == "1.0"
    assert find_revision(out, digest, elsewhere) == "1.0"
    assert find_revision(out, "f" * 64, elsewhere) == "unreleased"
    assert sorted(out.files()) == ["tokenizer/ids.lock", "tokenizer/releases.lock"]
