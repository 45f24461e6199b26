"""Licences that a source lists: one expression, readable only if every part of it is."""

from __future__ import annotations

import pytest

from transforms.sources.license_terms import named_licenses, read_terms


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


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("(MIT OR ISC) AND GPL-2.0-only WITH Classpath-exception-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"),
        ("(MIT) AND (GPL-2.0-only  with\tX)", "GPL-2.0-only with X"),
        ("GPL-2.0+ WITH X", "GPL-2.0-or-later WITH X"),
        ("GPL-2.0-only WITH X", "GPL-2.0"),
        ("LGPL-2.1", "LGPL-2.1-only"),
        ("MIT/AGPL-3.0-or-later", "AGPL-3.0+"),
    ],
)
def test_a_licence_is_found_with_its_exception_and_in_both_spellings(expression: str, name: str) -> None:
    assert name in named_licenses(expression)


@pytest.mark.parametrize("name", ["GPL-2.0-only", "GPL-3.0-or-later", "LGPL-2.0", "GPL-2.0"])
def test_another_licence_is_not_found(name: str) -> None:
    assert name not in named_licenses("GPL-2.0-or-later OR LGPL-2.1-only OR MIT")
