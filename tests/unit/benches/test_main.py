"""The benchmarks as `make bench` runs them, on a small real tree: all rows are there, and the peers agree."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import benches.__main__
import benches.lib.corpus
from benches.__main__ import app
from benches.lib.harness import Comparison, Figure, Row
from configs.runs import RunConfig
from schemas.options import DEFAULT_EXTENSIONS

KEYS = ["bench", "name", "value", "unit", "input_bytes", "threads", "peak_bytes"]
STAGES = ["ingest", "scan", "build", "tokenize", "validate"]
SIDES = ["cppmill", "tokenizers"]


@dataclass(frozen=True)
class Finished:
    """A finished command: its output and the lines of its JSON file."""

    output: str
    messages: str
    rows: list[dict[str, Any]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, in_process: None) -> Finished:
    path = tmp_path_factory.mktemp("bench") / "rows.jsonl"
    done = CliRunner().invoke(app, [np.get_include(), "--json", str(path), "--rounds", "1", "--threads", "2"])
    assert done.exit_code == 0, done.output
    return Finished(done.stdout, done.stderr, [json.loads(line) for line in path.read_text().splitlines()])


def test_every_stage_and_every_peer_has_its_rows(finished: Finished) -> None:
    stages = [(stage, "cppmill", "MB/s", 2) for stage in STAGES]
    encode = [("encode", f"{side}, plain", "MB/s", threads) for side in SIDES for threads in (1, 2)]
    train = [("train", side, "MB/s", 2) for side in SIDES]
    expected = [*stages, ("tokenize", "cppmill", "tokens/s", 2), *encode, *train]
    rows = [(row["bench"], row["name"], row["unit"], row["threads"]) for row in finished.rows]
    assert sorted(rows) == sorted(expected)


def test_rows_have_exactly_the_agreed_keys_and_plausible_values(finished: Finished) -> None:
    assert all(list(row) == KEYS for row in finished.rows)
    assert all(row["value"] > 0 and row["peak_bytes"] > 10_000_000 for row in finished.rows)
    files = [path for path in Path(np.get_include()).rglob("*") if path.suffix[1:] in DEFAULT_EXTENSIONS]
    source_bytes = sum(path.stat().st_size for path in files)
    assert {row["input_bytes"] for row in finished.rows if row["bench"] in STAGES} == {source_bytes}
    assert all(0 < row["input_bytes"] <= source_bytes for row in finished.rows)


def test_the_table_names_the_vocabulary_and_every_row(finished: Finished) -> None:
    heading, *lines = finished.output.splitlines()
    assert np.get_include() in heading and "vocabulary of 8,192 ids" in heading
    for row in finished.rows:
        assert any(row["bench"] in line and row["name"] in line and row["unit"] in line for line in lines)
    assert "differs" not in finished.output


def test_nothing_but_progress_is_on_the_error_stream(finished: Finished) -> None:
    assert "tokenize: 1 unit in" in finished.messages
    assert "WARNING" not in finished.messages and "Traceback" not in finished.messages


def test_a_tree_without_sources_ends_as_a_run_of_it_does(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("no C++ here\n")
    done = CliRunner().invoke(app, [str(tmp_path)])
    assert (done.exit_code, done.stdout) == (3, "")
    assert f"error: SOURCE {tmp_path}: none of 1 documents is kept" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["nowhere"], [".", "--rounds", "0"], [".", "--json", "nowhere/rows.jsonl"]])
def test_wrong_arguments_are_refused_before_anything_starts(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == 2


def test_a_result_that_differs_fails_the_command_and_keeps_the_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    figure = Figure(Row("encode", "cppmill", 4.0, "MB/s", 8, 1, 9), 4.0, 4.0)
    corpus = benches.lib.corpus.Corpus(config=RunConfig(out=tmp_path), documents=1, num_bytes=8, tokens=2, units=1)
    monkeypatch.setattr(benches.lib.corpus, "make_corpus", lambda *_, **__: corpus)
    monkeypatch.setattr(
        benches.__main__, "measure", lambda *_, **__: [Comparison("encode", (figure,), ("tokenizers",))]
    )
    done = CliRunner().invoke(app, [str(tmp_path), "--json", str(tmp_path / "rows.jsonl")])
    assert done.exit_code == 1
    assert "differs" in done.output
    assert json.loads((tmp_path / "rows.jsonl").read_text())["name"] == "cppmill"
