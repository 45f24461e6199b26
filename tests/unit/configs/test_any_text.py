"""A run file or platforms of any text, or with any value in any place, are taken or refused; nothing else happens."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.own_platforms import add_platforms
from configs.runs import load_run_config
from configs.tables import TABLES
from schemas.errors import ConfigError
from tests.fuzzing import CHANGES, damage, examples

pytestmark = pytest.mark.fuzz

KEYS = [(table, key) for table, options in TABLES.items() for key in options.model_fields]
SCALARS = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9)
PLATFORMS = b"""\
categories = ["board"]
[os.zenos]
id = 113
identifiers = ["__ZENOS__", "zen_*"]
[board.devkit]
id = 120
paths = ["devkit", ".dk"]
includes = ["devkit/*", "<dk.h>"]
sequences = ["dk_open(@number"]
"""
VALUES = SCALARS | st.lists(SCALARS, max_size=3)


def load(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.toml"
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            load_run_config(file=file, flags={"--out": f"{folder}/out"})
        except ConfigError as error:
            assert str(error)


@settings(max_examples=examples(60))
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    load(text)


@given(st.sampled_from(KEYS), VALUES)
def test_any_value_of_an_option_is_taken_or_refused(key: tuple[str, str], value: Any) -> None:
    load(f"[{key[0]}]\n{key[1]} = {json.dumps(value)}\n")


@given(CHANGES)
def test_damaged_platforms_are_taken_or_refused(changes: list[tuple[float, bytes, int]]) -> None:
    try:
        add_platforms(damage(PLATFORMS, changes), where="mine.toml")
    except ConfigError as error:
        assert str(error).startswith("mine.toml")
