"""What a trial keeps counts only if it is whole, and of what is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.trial.kept import CELL, FLOPS, keep, read_kept
from schemas.digests import canonical_json
from transforms.storage.folder import OutputFolder

POINT = {"step": 2, "tokens": 128, "bytes": 344, "flops": 9, "bits_per_byte": 4.5}


@pytest.fixture
def out(tmp_path: Path) -> OutputFolder:
    return OutputFolder(tmp_path)


def kept_file(out: OutputFolder, name: str) -> Path:
    return Path(out.where(f".cache/trial/{name}.json"))


@pytest.mark.parametrize(("value", "form"), [([POINT, {**POINT, "bits_per_byte": 4.0}], CELL), (2.5e9, FLOPS)])
def test_what_was_kept_is_found_by_its_key_alone(out: OutputFolder, value: Any, form: Any) -> None:
    keep(out, "a-0", "key", value)
    assert read_kept(out, "a-0", "key", form) == value
    assert read_kept(out, "a-0", "other", form) is None
    assert read_kept(out, "a-1", "key", form) is None


def test_no_bit_of_it_can_change(out: OutputFolder) -> None:
    keep(out, "a-0", "key", [POINT])
    whole = kept_file(out, "a-0").read_bytes()
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        kept_file(out, "a-0").write_bytes(changed)
        assert read_kept(out, "a-0", "key", CELL) is None, bytes(changed)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"key":"key","value":1e400}', b"[" * 100_000])
def test_what_is_no_record_is_nothing(out: OutputFolder, data: bytes) -> None:
    keep(out, "work", "key", 1)
    kept_file(out, "work").write_bytes(data)
    assert read_kept(out, "work", "key", FLOPS) is None


def test_what_has_no_digest_is_nothing(out: OutputFolder) -> None:
    keep(out, "work", "key", 1)
    kept = json.loads(kept_file(out, "work").read_bytes())
    del kept["digest"]
    kept_file(out, "work").write_bytes(canonical_json(kept))
    assert read_kept(out, "work", "key", FLOPS) is None


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ({}, CELL),
        ([{}], CELL),
        ([{**POINT, "bits_per_byte": "4"}], CELL),
        ([{**POINT, "bytes": 1.5}], CELL),
        ("1", FLOPS),
        ([1], FLOPS),
        (True, FLOPS),
        (None, FLOPS),
    ],
)
def test_what_has_another_form_is_nothing(out: OutputFolder, value: Any, form: Any) -> None:
    keep(out, "a-0", "key", value)
    assert read_kept(out, "a-0", "key", form) is None
