"""The study of cuts on small texts: their pieces, and the figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benches.studies.lines import CUTS, LINES, Result, app, count_bytes, markdown

LINE = "    return value_{n};\n"


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize(
    "text", ["a(b, c);\r\n\r\n  d\n \n\n e", "\t", "x = {1,\n2};", ",\n,", "one two  three\tfour five"]
)
def test_pieces_are_all_of_the_text(name: str, text: str) -> None:
    assert "".join(re.findall(CUTS[name], text)) == text


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("two chunks", ["f(a, b) ", "{\n  "]),
        (
            "two lines",
            [
                "f(a, b) {\n  ",
            ],
        ),
        (LINES, ["f(a, b) {\n  "]),
    ],
)
def test_pieces_are_as_they_are_called(name: str, pieces: list[str]) -> None:
    assert re.findall(CUTS[name], "f(a, b) {\n  ") == pieces


@pytest.mark.engines
def test_the_study_measures_cuts_beside_words(tmp_path: Path) -> None:
    for root, numbers in (("train", range(40)), ("held", range(30, 50))):
        folder = tmp_path / root / "project"
        folder.mkdir(parents=True)
        (folder / "a.cpp").write_text("".join(LINE.format(n=n) for n in numbers))
    arguments = [str(tmp_path / "train"), str(tmp_path / "held"), "--vocab-size", "512", "--processes", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, "so little text has no 256 tokens"
    (tmp_path / "train/project/b.cpp").write_text(Path(__file__).read_text() * 2)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = {line.split(" | ")[0].strip("| "): line for line in result.stdout.splitlines() if line.startswith("| ")}
    assert {"cpp-words-1, no superwords", *CUTS} <= rows.keys()


def test_the_table_has_what_training_holds_and_what_a_cache_would_find() -> None:
    row = Result(unit="u", distinct_bytes=2_500_000, held_out_tokens=50, held_out_bytes=200, seen_bytes=54)
    assert list(markdown([row]))[-1] == "| u | 2.5 | 27% | 4.000 |"
    assert count_bytes({"\u00e9": 3}) == 6
