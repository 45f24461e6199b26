"""Files that were agreed on with others and are used as they are."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

SHA256 = {
    "checks/check_run.py": "f38ace9765a2fc076b1d73575fc88f2d720886b07f20abbee37f7f1f04c4f184",
    "checks/hostile_corpus.py": "fa27e07320b26b52f2a0ee6acb4c965ee013db6607b404a2a5059d820563056c",
    "corpus/dev.list": "906cd3d79f9351e5f027678a3e26c1334de0b57bf19e8621c52a1cb30a819fb5",
    "corpus/get_corpus.sh": "18ec427c825652ac4480383873c879b8c390945608255626793abd5f9a3556cf",
    "corpus/get_pypi_corpus.sh": "669af7612c0acfce95ed4cb070387f203efd79229e7f63859e7a8a8e83ffc42a",
    "corpus/pypi.list": "b28e2f2c874d82a2b0490677e8056e8564ec8a0ffe34c340b2ee5091d2ba56eb",
    "corpus/train-quick.list": "fcfbc4b0c9e0cff9787418b0f593c2dc9b9f53971e820cabc3a67eb89a5c2bee",
    "corpus/train.list": "24247419c11a2ffa8eddaeb062d117ed214c10cbb4d69399d1bbad1a144021fa",
    "tests/data/reference/megacpp_v3_fixed_tokens.json": "e5aa60004255cde822819322a6f010891be880d04682a44bc12b1e7c0ebc42d0",
    "tests/data/reference/vocab_candidates.json": "3246e0c85b79a9fc3a29864ec6b4f1179dbe7968ca66b21ff1a8cd3dcaef5442",
}


@pytest.mark.parametrize("name", SHA256)
def test_the_file_is_the_one_agreed_on(name: str, repository: Path) -> None:
    assert hashlib.sha256((repository / name).read_bytes()).hexdigest() == SHA256[name]


def test_every_file_beside_them_is_listed(repository: Path) -> None:
    folders = ("checks", "corpus", "tests/data/reference")
    found = [file for name in folders for file in (repository / name).rglob("*") if file.is_file()]
    names = {file.relative_to(repository).as_posix() for file in found if "__pycache__" not in file.parts}
    assert names == set(SHA256)
