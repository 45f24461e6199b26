"""The words of a problem."""

from __future__ import annotations

import pytest

from configs.problems import describe_allowed, nearest, show
from configs.tables import KEYS, TABLES


@pytest.mark.parametrize(
    ("name", "expected"),
    [("unit_byte", "unit_bytes"), ("UNIT-BYTES", "unit_bytes"), ("limt", "limit"), ("xyzzy", None), ("", None)],
)
def test_the_nearest_name_ignores_case_and_dashes(name: str, expected: str | None) -> None:
    assert nearest(name, ["unit_bytes", "limit", "sample"]) == expected


def test_every_key_of_every_table_says_what_it_takes() -> None:
    for table, keys in KEYS.items():
        for key in keys:
            assert describe_allowed(TABLES[table], key)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, "true"), ("é", '"é"'), ((1, "a"), '[1, "a"]'), (0.5, "0.5"), ("x" * 100, '"' + "x" * 58 + "…")],
)
def test_values_are_shown_as_toml_has_them_and_short(value: object, expected: str) -> None:
    assert show(value) == expected
