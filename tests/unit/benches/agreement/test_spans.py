"""The comparison with libclang: what it counts, and that each difference is found and its cause named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import benches.agreement.lexer
import benches.agreement.spans
from benches.agreement.causes import ByteClass, find_cause
from benches.agreement.lexer import app
from benches.agreement.libclang import Libclang
from benches.agreement.spans import CLASSES, Agreement, compare

COMMENT, STRING, IDENTIFIER, HEADER = ByteClass.COMMENT, ByteClass.STRING, ByteClass.IDENTIFIER, ByteClass.HEADER


@pytest.fixture(scope="module")
def libclang() -> Libclang:
    return Libclang()


def by_class(agreement: Agreement) -> dict[str, int]:
    """Bytes that both sides put in each class."""
    return dict(zip(CLASSES, np.diag(agreement.confusion).tolist(), strict=True))


def test_every_byte_is_counted_once_in_its_class(libclang: Libclang) -> None:
    agreement = compare(libclang, b"#include <a.h>\nint x = 1; // b\nL\"c\" 'd'", "a.cpp")
    assert by_class(agreement) == {"rest": 12, "comment": 4, "string": 7, "identifier": 11, "header name": 5}
    assert agreement.num_bytes == 39
    assert agreement.differences == {}


def test_a_number_after_a_splice_is_not_a_string(libclang: Libclang) -> None:
    assert compare(libclang, b"a \\\n1'0 \\\n.5", "a.cpp").differences == {}


def test_an_empty_document_agrees(libclang: Libclang) -> None:
    agreement = compare(libclang, b"", "empty.cpp")
    assert agreement.num_bytes == 0
    assert agreement.of(COMMENT) == 1


def test_agreement_is_bytes_in_both_over_bytes_in_either() -> None:
    agreement = Agreement()
    comment, rest = CLASSES.index(COMMENT), CLASSES.index(ByteClass.REST)
    agreement.confusion[comment, comment] = 6
    agreement.confusion[comment, rest] = 1
    agreement.confusion[rest, comment] = 3
    assert agreement.of(COMMENT) == 0.6


def test_sums_of_parts_add_up(libclang: Libclang) -> None:
    total = Agreement(left_out=1)
    total += compare(libclang, b"/* a", "first")
    total += compare(libclang, b"/* bc", "second")
    assert (total.documents, total.left_out, total.num_bytes) == (2, 1, 9)
    (difference,) = total.differences.values()
    assert (difference.num_bytes, difference.places) == (9, 2)
    assert difference.example.startswith("first:0: [/* a]")


@pytest.mark.parametrize(
    ("source", "cause", "num_bytes"),
    [
        (b"a \\\nb", "line splice", 2),
        (b"a; /* b", "block comment without an end", 4),
        (b"#error don't\n", "literal without an end", 2),
        (b'u8"a\nb', "literal without an end", 4),
        (b"'' a", "literal without an end", 2),
        (b'R"x(a', "literal without an end", 5),
        (b'R"a b" c', "raw string whose delimiter is not valid", 6),
        (b"#include /**/ <a>\n", "header name", 3),
        (b"a \xe2\x86\x92 b", "byte from 0x80 on", 3),
        (b"a\\u00e9b = 1", "universal character name", 1),
    ],
)
def test_a_cause_is_named(libclang: Libclang, source: bytes, cause: str, num_bytes: int) -> None:
    differences = compare(libclang, source, "a.cpp").differences
    assert {name.startswith(cause) for name in differences} == {True}, differences
    assert sum(difference.num_bytes for difference in differences.values()) == num_bytes


def test_what_no_rule_names_is_unexplained() -> None:
    place = benches.agreement.spans.Place(b"int x", 0, 3, COMMENT, IDENTIFIER)
    assert find_cause(place) == "unexplained: comment here, identifier for libclang"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for name, content in {
        "p/a.cpp": b"int a; // b\n",
        "p/nul.cpp": b"a\0",
        "q/x/b.h": b'"c"',
        ".git/d.h": b"/*",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path


def test_the_program_prints_projects_and_the_total(corpus: Path) -> None:
    done = CliRunner().invoke(app, [str(corpus), "--processes", "1"])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["p", "1", "1"] in [row[:3] for row in rows]
    assert ["q", "1", "0"] in [row[:3] for row in rows]
    assert ["total", "2", "1", "0.0", *["100.0000"] * 4] in rows


def test_the_program_fails_below_the_agreement_that_is_demanded(corpus: Path) -> None:
    (corpus / "q" / "open.h").write_bytes(b"/* b")
    done = CliRunner().invoke(app, [str(corpus), "--processes", "1"])
    assert done.exit_code == 1
    assert "block comment without an end" in done.stdout
    assert "q/open.h:0: [/* b]" in done.stdout


def test_a_corpus_without_files_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [str(tmp_path)])
    assert done.exit_code == 2
    assert "has no files" in done.stderr
