"""The lexer as Python sees it: a table whose ranges tile any input, whatever the bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

KINDS = [
    *["whitespace", "newline", "line_comment", "block_comment", "identifier", "number"],
    *["string", "raw_string", "char", "header_name", "punctuator", "other"],
]
FRAGMENTS = [
    *[b"\\", b"\\\n", b"\\ \r\n", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b'"', b"'", b"/*", b"*/", b"//"],
    *[b'R"x(', b')x"', b"u8", b"L", b"#include", b"#if 0\n", b"<", b">", b"%:", b"0x1p", b"+", b"_s", b"a"],
]


def assert_tiled(source: bytes) -> None:
    tokens: Any = cppmill_core.lex(source)
    starts, ends = tokens["start"].to_pylist(), tokens["end"].to_pylist()
    assert [*starts, len(source)] == [0, *ends]
    assert all(start < end for start, end in zip(starts, ends, strict=True))


def test_the_columns_are_those_of_the_stub() -> None:
    tokens: Any = cppmill_core.lex(b"#x\ny")
    kind = pa.dictionary(pa.int8(), pa.string())
    types = {"kind": kind, "start": pa.uint64(), "end": pa.uint64(), "in_directive": pa.bool_()}
    assert {field.name: field.type for field in tokens.schema} == types
    assert tokens["kind"].to_pylist() == ["punctuator", "identifier", "newline", "identifier"]
    assert tokens["in_directive"].to_pylist() == [True, True, False, False]


def test_every_kind_has_its_name() -> None:
    source = b'#include <a>\n// b\n/**/ c 1 "d" R"(e)" \'f\' + @'
    tokens: Any = cppmill_core.lex(source)
    assert tokens["kind"].dictionary.to_pylist() == KINDS
    assert set(tokens["kind"].to_pylist()) == set(KINDS)


@pytest.mark.parametrize("source", [b"", b"\0", b"\\", b'"', b"'", b"/*", b'R"(', b"\xff", b"#include <"])
def test_the_shortest_inputs_are_tiled(source: bytes) -> None:
    assert_tiled(source)


@given(st.binary(max_size=300))
def test_any_bytes_are_tiled(source: bytes) -> None:
    assert_tiled(source)


@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=3)), max_size=40))
def test_bytes_that_mean_something_are_tiled(fragments: list[bytes]) -> None:
    assert_tiled(b"".join(fragments))


def test_every_hostile_file_is_tiled(repository: Path, tmp_path: Path) -> None:
    script = repository / "checks" / "hostile_corpus.py"
    subprocess.run([sys.executable, str(script), str(tmp_path / "corpus")], check=True)
    files = [file for file in (tmp_path / "corpus").rglob("*") if file.is_file()]
    assert len(files) > 40
    for file in files:
        assert_tiled(file.read_bytes())
