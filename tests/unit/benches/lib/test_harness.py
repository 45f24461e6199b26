"""Benchmark harness: what is timed, what is compared, what is printed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from benches.lib import harness
from benches.lib.harness import (
    BenchmarkError,
    Candidate,
    Comparison,
    Figure,
    Row,
    RunResult,
    Sample,
    compare,
    run_in_process,
    summarize,
    table,
    write_rows,
)

MEBIBYTE = 1 << 20


def nothing() -> None:
    return None


def log_turn(name: str, log: Path, digest: str, state: None) -> RunResult:
    with log.open("a") as file:
        file.write(f"{name} {os.getpid()}\n")
    return RunResult({"MB": 2.0}, digest)


def write_pages(mebibytes: int, state: None) -> RunResult:
    kept = b"x" * (mebibytes * MEBIBYTE)
    return RunResult({"MB": len(kept) / 1e6})


def write_pages_in_child(mebibytes: int, state: None) -> RunResult:
    subprocess.run([sys.executable, "-c", f"b'x' * ({mebibytes} << 20)"], check=True)
    return RunResult()


def digest_of_pages() -> str:
    return str(len(b"x" * (200 * MEBIBYTE)))


def hash_pages(state: None) -> RunResult:
    return RunResult(digest=digest_of_pages)


def fail(state: None) -> RunResult:
    raise ValueError("no such vocabulary")


def die(state: None) -> RunResult:
    os._exit(7)


def turns(log: Path) -> list[str]:
    return [line.split()[0] for line in log.read_text().splitlines()]


def candidate(name: str, log: Path, digest: str = "same") -> Candidate[None]:
    return Candidate(name=name, prepare=nothing, run=partial(log_turn, name, log, digest))


@pytest.mark.engines
def test_rounds_are_interleaved_and_each_starts_with_another(tmp_path: Path) -> None:
    log = tmp_path / "log"
    compare("b", [candidate(name, log) for name in "xyz"], input_bytes=1, rounds=3)
    assert turns(log) == [*"xyz", *"yzx", *"zxy"]


@pytest.mark.engines
def test_every_run_has_a_process_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    compare("b", [candidate(name, log) for name in "xy"], input_bytes=1, rounds=2)
    processes = [line.split()[1] for line in log.read_text().splitlines()]
    assert len(set(processes)) == 4
    assert str(os.getpid()) not in processes


@pytest.mark.engines
def test_a_different_result_gives_no_figures(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rivals = [candidate("ours", log), candidate("peer", log), candidate("wrong", log, "other")]
    result = compare("b", rivals, input_bytes=1, rounds=1)
    assert result.different == ("wrong",)
    assert [figure.row.name for figure in result.figures] == ["ours", "peer"]


def test_preparation_and_hashing_are_outside_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that each step sets forward by as many seconds as it would take."""
    clock, sent = [0.0], []

    def take(seconds: float) -> str:
        clock[0] += seconds
        return "digest"

    def run(state: str) -> RunResult:
        take(3)
        return RunResult(digest=partial(take, 700))

    monkeypatch.setattr(harness, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    connection: Any = SimpleNamespace(send=sent.append)
    harness._run_and_send(Candidate(name="x", prepare=partial(take, 50), run=run), connection)
    assert [(sample.seconds, sample.result.digest) for sample in sent] == [(3, "digest")]


@pytest.mark.engines
def test_the_memory_of_hashing_the_result_does_not_count() -> None:
    sample = run_in_process("b", Candidate(name="x", prepare=nothing, run=hash_pages))
    assert sample.peak_bytes < 200 * MEBIBYTE
    assert sample.result.digest == str(200 * MEBIBYTE)


@pytest.mark.engines
def test_peak_memory_is_the_candidates_own_and_not_the_parents() -> None:
    parents = bytearray(b"x" * (400 * MEBIBYTE))
    small, large = (
        run_in_process("b", Candidate(name="x", prepare=nothing, run=partial(write_pages, size))).peak_bytes
        for size in (1, 200)
    )
    assert small < 200 * MEBIBYTE < large < len(parents)


@pytest.mark.engines
def test_peak_memory_counts_the_largest_child() -> None:
    sample = run_in_process("b", Candidate(name="x", prepare=nothing, run=partial(write_pages_in_child, 300)))
    assert sample.peak_bytes > 300 * MEBIBYTE


def test_a_failure_names_the_candidate_and_its_reason() -> None:
    with pytest.raises(BenchmarkError, match=r"(?s)scan: ours failed .*no such vocabulary"):
        run_in_process("scan", Candidate(name="ours", prepare=nothing, run=fail))


def test_a_death_names_the_exit_code() -> None:
    with pytest.raises(BenchmarkError, match="exit code 7"):
        run_in_process("scan", Candidate(name="ours", prepare=nothing, run=die))


@pytest.mark.parametrize(("names", "rounds"), [("", 1), ("xx", 1), ("x", 0)])
def test_what_cannot_be_compared_is_refused(names: str, rounds: int, tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="needs a round and candidates of different names"):
        compare("b", [candidate(name, tmp_path / "log") for name in names], input_bytes=1, rounds=rounds)


def test_figures_are_medians_of_rates_with_their_spread() -> None:
    samples = [
        Sample(seconds, peak, RunResult({"MB": 8.0, "tokens": 100.0})) for seconds, peak in ((1, 5), (4, 9), (2, 7))
    ]
    megabytes, tokens = summarize("encode", "ours", samples, threads=2, input_bytes=8_000_000)
    assert megabytes == Figure(Row("encode", "ours", 4.0, "MB/s", 8_000_000, 2, 9), 2.0, 8.0)
    assert (tokens.row.value, tokens.row.unit) == (50.0, "tokens/s")


def test_without_amounts_the_figure_is_the_seconds() -> None:
    samples = [Sample(seconds, 1, RunResult()) for seconds in (3.0, 1.0)]
    assert summarize("run", "ours", samples, 1, 1) == [Figure(Row("run", "ours", 2.0, "s", 1, 1, 1), 1.0, 3.0)]


@pytest.fixture
def comparison() -> Comparison:
    rows = [
        Row("encode", name, value, "MB/s", 8_000_000, 1, 50_000_000) for name, value in (("ours", 40.0), ("peer", 10.0))
    ]
    return Comparison("encode", tuple(Figure(row, row.value - 1, row.value + 1) for row in rows), ("wrong",))


def test_json_has_one_line_per_row_and_the_agreed_keys(tmp_path: Path, comparison: Comparison) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, [comparison, comparison])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 4
    assert all(list(row) == ["bench", "name", "value", "unit", "input_bytes", "threads", "peak_bytes"] for row in rows)
    assert rows[1]["value"] == 10.0


def test_the_table_shows_spread_peers_and_who_does_not_count(comparison: Comparison) -> None:
    text = io.StringIO()
    Console(width=160, file=text).print(table([comparison]))
    lines = [line for line in text.getvalue().splitlines() if "encode" in line]
    ours, peer, wrong = lines
    assert all(cell in ours for cell in ("40", "39", "41", "MB/s", "8", "50", "1.00"))
    assert "peer" in peer and "0.25" in peer
    assert "wrong" in wrong and "differs" in wrong
