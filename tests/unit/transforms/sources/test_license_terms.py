"""Licences that a source lists: one expression, readable only if every part of it is."""

from __future__ import annotations

import pytest

from transforms.sources.license_terms import read_terms


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("MIT", None),
        ([], None),
        ([None, ""], None),
        (["MIT"], "MIT"),
        (["MIT", None, "MIT"], "MIT"),
        (["MIT", "ISC OR Zlib"], "(MIT) AND (ISC OR Zlib)"),
        (["MIT) OR (ISC", "Zlib"], "MIT) OR (ISC, Zlib"),
        ([3], "(what is no text)"),
        ({"name": "MIT"}, "(what is no text)"),
    ],
)
def test_all_licences_of_a_list_hold(value: object, expected: str | None) -> None:
    assert read_terms(value) == expected
