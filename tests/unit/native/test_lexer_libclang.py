"""The lexer agrees with libclang's tokens on real headers; `make lexer-agreement` does the same for a whole corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cppmill_core
import numpy as np
import pyarrow as pa
import pytest

from benches.agreement.libclang import Libclang
from benches.agreement.spans import JUDGED, Agreement, compare

HEADERS = [Path(np.get_include()), Path(pa.get_include()), Path("/usr/include/c++")]
LEAST = 0.999
CONSTRUCTS = [
    b'in\\\nt x; "a\\\\\nb" // c\\\nd\n',
    b'R"x(a)" //)x" u8R"(\\\n)" LR"0123456789abcdef()0123456789abcdef"',
    b'R""""(a)""" /* )"""" R"de"lim(/*)de"lim"',
    b"u8'a' u\"b\" U'c' L\"d\" R'e' xL\"f\"",
    b'1\'000 0xdead\'beef 1.5e-3_km 12ms \'a\'_c "b"sv "c"_s "%"PRIu64"x" ""min',
    b"a and_eq b; <: :> %: v<::a> k<<<1, 2>>>(); [[gnu::hot]] __attribute__((a)) __declspec(b)",
    b'#if 0\nint a; // it\'s\n"b"\n#elif __has_include(<c/d>) || __has_include( "e" )\n#endif\n',
    b'#include <a/b.h> // c\n # include "d.h"\n#import <e>\n%:include <f>\nx #include <g>\n',
    b"#endif\n#else\n#endif\nint a; /* b */ $match a$b",
    b'q("SELECT \'a\' -- \\"b\\" /* $1"); R"sql(SELECT "c" -- it\'s)sql"',
    b"\xef\xbb\xbf// a\r\nna\xc3\xafve \xe5\x8f\x98 = 1;\r",
]
"""What both must see alike, byte for byte."""


@pytest.fixture(scope="module")
def libclang() -> Libclang:
    return Libclang()


def headers() -> Iterator[Path]:
    """Yield one header in four of those that are installed."""
    for root in HEADERS:
        yield from sorted(file for file in root.rglob("*") if file.is_file())[::4]


@pytest.mark.parametrize("source", CONSTRUCTS)
def test_constructs_have_the_same_classes(libclang: Libclang, source: bytes) -> None:
    assert compare(libclang, source, "constructs").differences == {}


def test_installed_headers_have_the_same_classes(libclang: Libclang) -> None:
    total = Agreement()
    for file in headers():
        total += compare(libclang, file.read_bytes(), str(file))
    assert total.num_bytes > 1_000_000
    assert {name: total.of(name) for name in JUDGED if total.of(name) < LEAST} == {}
    assert [cause for cause in total.differences if cause.startswith("unexplained")] == []


def test_a_token_is_where_libclang_says(libclang: Libclang) -> None:
    source = b"#endif\n" * 70 + b'/* a */ L"b" c1'
    tokens = libclang.tokenize(source)
    texts = [source[start:end] for start, end in zip(tokens.start, tokens.end, strict=True)]
    assert texts[-3:] == [b"/* a */", b'L"b"', b"c1"]
    ours = cppmill_core.lex(source)
    assert set(tokens.start.tolist()) <= set(ours["start"].to_pylist())
