"""The command writes what it has found, and fails where ids differ."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import benches.speed.encode
from benches.lib.harness import Comparison, Figure, Row
from benches.speed.encode import app


@pytest.mark.parametrize("arguments", [["nowhere"], [".", "--tokenizer", "nowhere"], [".", "--json", "nowhere/rows"]])
def test_wrong_arguments_are_refused_before_anything_starts(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == 2


@pytest.mark.parametrize(("different", "code"), [((), 0), (("tiktoken, cl100k",), 1)])
def test_ids_that_differ_fail_the_command_and_rows_are_kept(
    different: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    figure = Figure(Row("encode cold", "cppmill, plain", 4.0, "MB/s", 8, 1, 9), 4.0, 4.0)
    found = [Comparison("encode cold", (figure,), different)]
    monkeypatch.setattr(benches.speed.encode, "measure", lambda *_: iter(found))
    rows = tmp_path / "rows.jsonl"
    done = CliRunner().invoke(app, [np.get_include(), "--json", str(rows)])
    assert done.exit_code == code, done.output
    assert [json.loads(line)["name"] for line in rows.read_text().splitlines()] == ["cppmill, plain"]
    assert ("result differs" in done.output) == bool(different)
