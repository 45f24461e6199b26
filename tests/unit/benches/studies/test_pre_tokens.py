"""The patterns of the study: the base is the shipped one, each keeps all text, and each cuts as its name says."""

from __future__ import annotations

from typing import Any

import cppmill_core
import pytest
import regex

from benches.studies.pre_tokens import BASE, CHANGED, SHIPPED, studied

TEXT = 'x = fooBar::do_it(HTTPServer, -12.5e-3);\n\tputs("\\n\\foo");  // caf\u00e9 1234\r\n\n  R"x(\u4f60)x";'


def words(name: str, text: str) -> list[str]:
    return list(regex.findall(studied()[name], text))


def test_the_base_is_the_shipped_pattern() -> None:
    assert BASE.regex() == cppmill_core.PATTERNS[SHIPPED]


@pytest.mark.parametrize("name", studied())
def test_no_pattern_drops_text(name: str) -> None:
    assert "".join(words(name, TEXT)) == TEXT


def test_the_native_splitter_cuts_as_regex_does() -> None:
    native: list[Any] = cppmill_core.split(SHIPPED, TEXT.encode()).to_pylist()
    assert native == [word.encode() for word in words(SHIPPED, TEXT)]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("identifiers cut at camelCase", " aFooHTTPServer_x2Y", [" a", "Foo", "HTTP", "Server_x2", "Y"]),
        ("identifiers cut at underscores", ".__do_it__", [".__do", "_it", "__"]),
        ("identifiers cut at both", "isOk_now", ["is", "Ok", "_now"]),
        ("no mark with the identifier behind it", "(a.b", ["(", "a", ".", "b"]),
        ("up to three marks with the identifier behind them", "p->b);", ["p", "->b", ");"]),
        ("newline and indentation apart from marks", ";\n  x", [";", "\n  ", "x"]),
        ("indentation apart from the newline", ";\n  x", [";\n", " ", " x"]),
        ("marks, newline and indentation apart", ";\n  x", [";", "\n", " ", " x"]),
        ("numbers without sign", "= -12", ["=", " -", "12"]),
        ("numbers without sign and space", "= 5", ["=", " ", "5"]),
        ("numbers in triads", "12345", ["123", "45"]),
        ("numbers in single digits", "12", ["1", "2"]),
        ("no branches for literals", 'u8"a"', ["u8", '"a', '"']),
    ],
)
def test_a_change_does_what_its_name_says(name: str, text: str, expected: list[str]) -> None:
    assert words(name, text) == expected
    assert words(SHIPPED, text) != expected


def test_every_change_differs_from_the_base_and_the_others() -> None:
    regexes = [BASE.regex(), *(parts.regex() for parts in CHANGED.values())]
    assert len(set(regexes)) == len(regexes)
