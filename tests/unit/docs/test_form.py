"""The form of the README and of the pages of docs/: tables that render, lines that fit, a short README."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "configs" / "vocab" / "README.md"]
CODE = re.compile(r"^```.*?^```$|^    .*?$", re.M | re.S)
BAR = re.compile(r"(?<!\\)\|")
RULE = re.compile(r"\|(?: ?:?-+:? ?\|)+")
WIDTH, LINES = 120, 150


def prose(page: Path) -> list[str]:
    """The lines of a page; those of code are empty."""
    return CODE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8")).splitlines()


def tables(page: Path) -> Iterator[list[str]]:
    for is_table, lines in groupby(prose(page), key=lambda line: line.startswith("|")):
        if is_table:
            yield list(lines)


def faults(table: list[str]) -> Iterator[str]:
    """Rows that a renderer cuts or leaves open: a code span with a bar needs a backslash before it."""
    if len(table) < 2 or not RULE.fullmatch(table[1]):
        yield f"no header: {table[0]}"
    cells = len(BAR.findall(table[0]))
    for row in table:
        if len(BAR.findall(row)) != cells:
            yield f"{len(BAR.findall(row))} bars, the header has {cells}: {row}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_rows_of_a_table_have_the_cells_of_its_header(page: Path) -> None:
    assert [fault for table in tables(page) for fault in faults(table)] == []


@pytest.mark.parametrize(
    ("table", "number"),
    [
        (["| a | b |", "|---|--:|", r"| `x \| y` | 1 |"], 0),
        (["| a | b |", "|---|--:|", "| `x | y` | 1 |"], 1),
        (["| a | b |", "|---|--:|", "| 1 |"], 1),
        (["| 1 | 2 |"], 1),
    ],
)
def test_a_table_that_does_not_render_is_found(table: list[str], number: int) -> None:
    assert len(list(faults(table))) == number


@pytest.mark.parametrize("page", PAGES[:-1], ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_fit(page: Path) -> None:
    assert [line for line in prose(page) if len(line) > WIDTH and not line.startswith("|")] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < LINES
