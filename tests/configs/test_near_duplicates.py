"""What the filter of near-duplicates needs is told before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from configs import near_duplicates
from configs.runs import load_run_config
from schemas.errors import ConfigError


def refused(tmp_path: Path, text: str, **flags: str) -> str:
    file = tmp_path / "run.toml"
    file.write_text(f"[ingest]\n{text}\n")
    with pytest.raises(ConfigError) as error:
        load_run_config(file=file, flags={"--out": str(tmp_path / "out"), **flags})
    return str(error.value)


def test_it_is_for_distinct_documents_alone(tmp_path: Path) -> None:
    text = "near_duplicate_similarity = 0.8\ndrop_duplicates = false"
    assert "near_duplicate_similarity = 0.8: near-duplicates are found among distinct" in refused(tmp_path, text)


def test_a_library_that_is_missing_is_named_with_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_run_config(flags={"--out": str(tmp_path), "--near-duplicate-similarity": "0.8"})
    monkeypatch.setattr(near_duplicates, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"^--near-duplicate-similarity 0.8: it needs rensa: pip install 'cppmill\["):
        load_run_config(flags={"--out": str(tmp_path), "--near-duplicate-similarity": "0.8"})
    load_run_config(flags={"--out": str(tmp_path)})


def test_a_number_of_permutations_that_is_not_offered_is_refused(tmp_path: Path) -> None:
    assert "it takes one of 64, 128, 256, 512, 1024" in refused(tmp_path, "near_duplicate_permutations = 100")
