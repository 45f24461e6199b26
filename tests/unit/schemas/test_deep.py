"""What is nested deeper than Python reads is damage like any other."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from cppmill_core import CorruptDataError
from cppmill_core.loading import open_any

from configs.mixtures import read_mixture
from schemas.digests import parse_json, parse_toml
from schemas.errors import ConfigError, IntegrityError
from schemas.units import UnitReceipt
from transforms.records.trials import is_trial
from transforms.storage.folder import OutputFolder

DEEP = 100_000


@pytest.mark.parametrize("text", ["[" * DEEP, '{"a":' * DEEP])
def test_deep_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(text)


def test_json_numbers_of_thousands_of_digits_are_said_without_advice_for_programmers() -> None:
    with pytest.raises(ValueError, match="^a number has thousands of digits$"):
        parse_json("[" + "9" * 6000 + "]")


def test_deep_toml_is_not_toml() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="nested too deeply"):
        parse_toml("a=" + "[" * DEEP)


def test_deep_files_are_damage_that_is_named(tmp_path: Path) -> None:
    deep = b"[" * DEEP
    for name in ("manifest.json", "receipt.json", "mixture.toml"):
        (tmp_path / name).write_bytes(b"a=" + deep if name == "mixture.toml" else deep)
    with pytest.raises(IntegrityError, match="unit.json: not a unit receipt"):
        UnitReceipt.from_bytes(deep, where="unit.json")
    with pytest.raises(CorruptDataError, match=r"manifest\.json"):
        open_any(tmp_path)
    with pytest.raises(ConfigError, match="nested too deeply"):
        read_mixture(tmp_path / "mixture.toml")
    assert not is_trial(OutputFolder(tmp_path))


@pytest.mark.parametrize("number", ["9" * 5000, f"0x{'f' * 5000}", str(1 << 63), f"[[{-(1 << 63) - 1}]]"])
def test_whole_numbers_of_more_than_64_bits_are_not_toml(number: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        parse_toml(f"[table]\nkey = {number}")
    largest = (1 << 63) - 1
    assert parse_toml(f"key = [{largest}, {-largest - 1}]") == {"key": [largest, -largest - 1]}


def test_a_key_of_many_dots_is_not_toml() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="nested too deeply"):
        parse_toml(f"{'.'.join(['a'] * 5000)} = 1")
