"""Files that were agreed on with others and are used as they are: `sha256sum -c tests/data/unchanged.sha256`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

FOLDERS = ("checks", "corpus", "tests/data/reference")
OURS = {"checks/check_exclusion.py"}


@pytest.fixture(scope="module")
def recorded(repository: Path) -> dict[str, str]:
    """Recorded SHA-256 by the file's path."""
    lines = (repository / "tests/data/unchanged.sha256").read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def test_each_file_is_the_one_agreed_on(recorded: dict[str, str], repository: Path) -> None:
    files = (file for name in FOLDERS for file in (repository / name).rglob("*") if file.is_file())
    found = {file.relative_to(repository).as_posix(): file for file in files if "__pycache__" not in file.parts}
    assert found.keys() - recorded.keys() == OURS
    agreed = {name: found[name] for name in found.keys() - OURS}
    assert {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in agreed.items()} == recorded
