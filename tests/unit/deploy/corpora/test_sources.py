"""The training corpora: the lock names every package, pins what is fetched, and refuses what is another version."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.corpora import sources
from deploy.corpora.__main__ import main, released
from deploy.corpora.sources import DEBIAN, LOCK, PYPI, Package, differences, fetch, read_lock, write_lock
from schemas.digests import sha256_file
from schemas.errors import ConfigError, IntegrityError

# Each writes what it was asked for, as the real ones do, and the versions of the day where none are pinned.
SCRIPT = """#!/usr/bin/env bash
set -euo pipefail
folder=$2; mkdir -p "$folder"
printf 'package\\tversion\\tarchive_bytes\\tfiles\\tbytes\\tseconds\\n' > "$folder/MANIFEST.tsv"
"""
DEBIAN_SCRIPT = """sed 's/=/ /' "$3" | while read -r name version; do
  printf '%s\\t%s\\t9\\t2\\t30\\t1\\n' "$name" "${version:-9.9}" >> "$folder/MANIFEST.tsv"; done
"""
PYPI_SCRIPT = """shift 4
for name in "$@"; do name=${name%%:*}; version=$(sed -n "s/^$name==//p" "$PIP_CONSTRAINT")
  printf 'pypi-%s\\t%s\\t9\\t2\\t30\\t1\\n' "$name" "${version:-9.9}" >> "$folder/MANIFEST.tsv"; done
"""


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with lists of three packages, scripts that only write manifests, and a lock."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "train.list").write_text("# two\nfmtlib # small\nre2\n")
    (corpus / "pypi.list").write_text("# one\nlightgbm:sdist\n")
    for name, script in (("get_corpus.sh", DEBIAN_SCRIPT), ("get_pypi_corpus.sh", PYPI_SCRIPT)):
        (corpus / name).write_text(SCRIPT + script)
        (corpus / name).chmod(0o755)
    rows = ("TRAIN\tfmtlib\t1.0-2", "TRAIN\tre2\t2.0", "PYPI\tpypi-lightgbm\t4.7.0")
    (corpus / "sources.lock").write_text("# a moment\n" + "".join(f"{row}\t2\t30\n" for row in rows))
    monkeypatch.setattr(sources, "REPOSITORY", tmp_path)
    return corpus / "sources.lock"


def test_the_lock_has_every_package_of_the_lists(repository: Path) -> None:
    locked = read_lock()
    for corpus, name in ((DEBIAN, "train.list"), (PYPI, "pypi.list")):
        lines = (repository / "corpus" / name).read_text().splitlines()
        words = {line.partition("#")[0].strip().partition(":")[0] for line in lines} - {""}
        assert {package.removeprefix("pypi-") for package in locked[corpus]} == words
    assert sum(p.num_bytes for packages in locked.values() for p in packages.values()) > 4.5e9


def test_what_the_lock_names_is_what_is_fetched(lists: Path, tmp_path: Path) -> None:
    fetch(tmp_path / "out", lock=lists)
    found = {corpus: sources.read_manifest(tmp_path / "out" / corpus) for corpus in (DEBIAN, PYPI)}
    assert found == read_lock(lists)


def test_another_version_is_refused_unless_the_latest_are_asked_for(lists: Path, tmp_path: Path) -> None:
    script = lists.parent / "get_corpus.sh"
    script.write_text(script.read_text().replace("${version:-9.9}", "9.9"))
    expected = r"TRAIN: fmtlib: 9.9, 2 files, 30 bytes; the lock has 1.0-2, 2 files, 30 bytes\n.*re2.*\n.*LATEST=1"
    with pytest.raises(IntegrityError, match=expected):
        fetch(tmp_path / "out", lock=lists)
    fetch(tmp_path / "latest", is_latest=True, lock=lists)
    latest = sources.read_manifest(tmp_path / "latest" / PYPI)
    assert latest == {"pypi-lightgbm": Package("9.9", 2, 30)}


def test_a_package_that_did_not_come_is_named(lists: Path, tmp_path: Path) -> None:
    script = lists.parent / "get_corpus.sh"
    script.write_text(script.read_text().replace("sed ", "grep -v re2 <(sed ").replace('"$3" |', '"$3") |'))
    with pytest.raises(IntegrityError, match=r"^TRAIN: re2 2.0: missing\n"):
        fetch(tmp_path / "out", lock=lists)


def test_a_script_that_fails_is_an_error(lists: Path, tmp_path: Path) -> None:
    (lists.parent / "get_corpus.sh").write_text("#!/usr/bin/env bash\nexit 3\n")
    with pytest.raises(ConfigError, match="exit code 3"):
        fetch(tmp_path / "out", lock=lists)


def test_differences_are_empty_for_what_is_the_same_and_name_what_is_new() -> None:
    package = Package("1", 2, 3)
    assert list(differences({"a": package}, {"a": package})) == []
    assert list(differences({}, {"a": package})) == ["a 1: not in the lock"]


def test_a_lock_that_is_written_again_is_the_same(lists: Path, tmp_path: Path) -> None:
    fetch(tmp_path / "out", lock=lists)
    write_lock(tmp_path / "out", "20261123T131000Z", tmp_path / "again.lock")
    assert read_lock(tmp_path / "again.lock") == read_lock(lists)
    assert LOCK.read_text().splitlines()[0].startswith((tmp_path / "again.lock").read_text().splitlines()[0][:60])


def test_a_tokenizer_is_named_by_its_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    digest = sha256_file(tmp_path / "manifest.json")
    assert released(tmp_path, tmp_path).endswith(f"tokenizer {digest}, not a release of the vocabulary")
    (tmp_path / "releases.lock").write_text(f"7\t{digest}\n")
    assert released(tmp_path, tmp_path).endswith("release 7 of the vocabulary")
    assert main(["released", str(tmp_path)]) == 0
    assert "not a release" in capsys.readouterr().out
