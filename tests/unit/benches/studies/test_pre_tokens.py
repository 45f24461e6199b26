"""The patterns of the study: the base is the shipped one, each keeps all text, and each cuts as its name says."""

from __future__ import annotations

from typing import Any

import cppmill_core
import pytest
import regex

from benches.studies.pre_tokens import BASE, BASE_2, CHANGED, CHANGED_2, SHIPPED, SHIPPED_2, studied

TEXT = 'x = fooBar::do_it(HTTPServer, -12.5e-3);\n\tputs("\\n\\foo");  // caf\u00e9 1234\r\n\n  R"x(\u4f60)x";'


def words(name: str, text: str) -> list[str]:
    return list(regex.findall(studied()[name], text))


def test_the_bases_are_the_shipped_patterns() -> None:
    assert BASE.regex() == cppmill_core.PATTERNS[SHIPPED]
    assert BASE_2.regex() == cppmill_core.PATTERNS[SHIPPED_2]


@pytest.mark.parametrize("name", studied())
def test_no_pattern_drops_text(name: str) -> None:
    assert "".join(words(name, TEXT)) == TEXT


@pytest.mark.parametrize("name", [SHIPPED, SHIPPED_2])
def test_the_native_splitter_cuts_as_regex_does(name: str) -> None:
    native: list[Any] = cppmill_core.split(name, TEXT.encode()).to_pylist()
    assert native == [word.encode() for word in words(name, TEXT)]


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
        ("2: no space behind the marks", "f(a, b = 1)", ["f", "(a", ",", " b", " =", " 1", ")"]),
        ("2: one mark at most", "p->x", ["p", "->", "x"]),
        ("2: up to eight marks", "((((x", ["((((x"]),
        ("2: no marks with numbers", "a[0], x", ["a", "[", "0", "], x"]),
        ("2: names with :: apart", "std::string x", ["std", "::string", " x"]),
        ("2: one :: in a name at most", "a::b::c", ["a::b", "::c"]),
        ("2: identifiers cut at camelCase", "(fooBar", ["(foo", "Bar"]),
        ("2: blank lines apart", ";\n\n  x", [";\n", "\n  ", "x"]),
        ("2: marks of comments apart", "// x", ["//", " x"]),
    ],
)
def test_a_change_does_what_its_name_says(name: str, text: str, expected: list[str]) -> None:
    assert words(name, text) == expected
    assert words(SHIPPED_2 if name in CHANGED_2 else SHIPPED, text) != expected


def test_every_change_differs_from_the_base_and_the_others() -> None:
    changed = [*CHANGED.values(), *CHANGED_2.values()]
    regexes = [BASE.regex(), BASE_2.regex(), *(parts.regex() for parts in changed)]
    assert len(set(regexes)) == len(regexes)
