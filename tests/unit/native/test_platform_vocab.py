"""The platform vocabulary in the native core's package, and files that are none."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import cppmill_core
import pytest

VOCAB: dict[str, Any] = json.loads(
    resources.files("cppmill_core.platforms").joinpath("platform_vocab.json").read_bytes()
)


def test_the_package_has_the_vocabulary_and_gives_it() -> None:
    vocab = cppmill_core.platform_vocab()
    assert {**vars(vocab), "labels": None} == {**VOCAB, "labels": None}
    assert list(vocab.labels) == list(range(1, 113))
    assert vocab.labels[45] == ("gpu", "cuda")


@pytest.mark.parametrize(
    "change",
    [
        {"size": "many"},
        {"size": 112},
        {"categories": {"os": {"windows": 1, "linux": 1}}},
        {"categories": {"os": {"windows": 0}}},
        {"categories": {"os": ["windows"]}},
        {"categories": None},
    ],
)
def test_a_file_that_is_no_vocabulary_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "platform_vocab.json"
    file.write_text(json.dumps({**VOCAB, **change}))
    with pytest.raises(cppmill_core.CorruptDataError, match=r"platform_vocab\.json: not a platform vocabulary"):
        cppmill_core.platform_vocab(file)


def test_what_is_no_json_is_named_and_a_missing_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "platform_vocab.json"
    file.write_bytes(b"\xff")
    with pytest.raises(cppmill_core.CorruptDataError, match=r"platform_vocab\.json: not a platform vocabulary"):
        cppmill_core.platform_vocab(file)
    with pytest.raises(FileNotFoundError):
        cppmill_core.platform_vocab(tmp_path / "none.json")
