"""The bands of the ids of a tokenizer directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cppmill_core

from tokenizer_build.build import BuildSummary
from tokenizer_build.compare.id_bands import read_bands


def test_bands_are_those_of_the_manifest(small_tokenizer: Path) -> None:
    manifest = json.loads((small_tokenizer / "manifest.json").read_bytes())
    bands = read_bands(small_tokenizer)
    assert bands is not None
    assert len(bands) == manifest["vocab_size"]
    assert all(bands[row["id"]] == row["band"] for row in manifest["tokens"])
    reserved = {number for first, last in manifest["reserved"] for number in range(first, last + 1)}
    assert {number for number, band in enumerate(bands) if band == "reserved"} == reserved
    assert bands.count("learned") == len(bands) - len(manifest["tokens"]) - len(reserved)
    assert read_bands(small_tokenizer / "tokenizer.json") is None


def test_superwords_are_a_band_of_their_own(build: Callable[..., BuildSummary], lenient: Any, tmp_path: Path) -> None:
    options = lenient.model_copy(update={"superwords_after": 0.95, "max_superword_words": 4, "max_superword_bytes": 24})
    summary = build(tmp_path / "tokenizer", options=options)
    bands = read_bands(tmp_path / "tokenizer")
    assert bands is not None
    assert bands.count("superwords") == summary.superwords > 500
    made = cppmill_core.Tokenizer.from_dir(tmp_path / "tokenizer")
    spelled = [made.token_bytes(number) or b"" for number, band in enumerate(bands) if band == "superwords"]
    assert sum(len(cppmill_core.split("cpp-words-1", token)) > 1 for token in spelled) > 0.5 * len(spelled)
