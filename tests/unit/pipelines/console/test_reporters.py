"""Reporters: what they show, how often, and from several threads."""

from __future__ import annotations

import io
import json
import re
import threading
from typing import Any

import pytest
from rich.console import Console

from pipelines.console.bar import LiveReporter
from pipelines.console.progress import Reporter, Reporters
from pipelines.console.reporters import JsonReporter, PlainReporter


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as on a terminal that moves its cursor, whatever the tests were started on."""
    monkeypatch.setenv("TERM", "xterm")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def drive(reporter: Reporter, clock: Clock) -> None:
    """Report a stage of four units, ten seconds each."""
    reporter.stage_started("scan", 4, 400_000_000)
    for done in range(1, 5):
        clock.now += 10
        reporter.progress(done, done * 100_000_000)
    reporter.stage_done("scan", 40.0, {"documents": 1234, "bytes": 400_000_000})
    reporter.note("over")


def test_plain_lines_have_units_megabytes_rate_and_time_left() -> None:
    clock, stream = Clock(), io.StringIO()
    drive(PlainReporter(stream, clock=clock), clock)
    assert stream.getvalue().splitlines() == [
        "scan: 4 units, 400.0 MB to do",
        "scan: 1 of 4 units, 100.0 of 400.0 MB, 10.0 MB/s, 30.0 s left",
        "scan: 2 of 4 units, 200.0 of 400.0 MB, 10.0 MB/s, 20.0 s left",
        "scan: 3 of 4 units, 300.0 of 400.0 MB, 10.0 MB/s, 10.0 s left",
        "scan: 4 of 4 units, 400.0 of 400.0 MB, 10.0 MB/s, 0.0 s left",
        "scan: 4 units in 40.0 s, 10.0 MB/s (1,234 documents, 400.0 MB)",
        "over",
    ]


@pytest.mark.parametrize("reporter", [PlainReporter, JsonReporter])
def test_progress_is_reported_at_most_once_per_interval(reporter: Any) -> None:
    clock, stream = Clock(), io.StringIO()
    told = reporter(stream, every_seconds=5.0, clock=clock)
    told.stage_started("scan", 1000, 1000)
    for done in range(1000):
        clock.now += 0.02
        told.progress(done, done)
    assert 3 <= len(stream.getvalue().splitlines()) - 1 <= 5  # 20 seconds


def test_json_is_one_object_a_line_in_bytes_and_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    drive(JsonReporter(stream, clock=clock), clock)
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert events[0] == {"event": "stage_started", "stage": "scan", "units": 4, "bytes": 400_000_000}
    assert events[1] == {
        "event": "progress",
        "stage": "scan",
        "done_units": 1,
        "units": 4,
        "done_bytes": 100_000_000,
        "bytes": 400_000_000,
        "bytes_per_second": 10_000_000,
        "eta_seconds": 30.0,
    }
    assert events[-2] == {
        "event": "stage_done",
        "stage": "scan",
        "seconds": 40.0,
        "summary": {"documents": 1234, "bytes": 400_000_000},
    }
    assert events[-1] == {"event": "note", "message": "over"}


def test_a_quiet_reporter_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    drive(Reporters(), Clock())
    assert capsys.readouterr() == ("", "")


def test_people_read_the_error_stream_and_programs_the_output_stream(capsys: pytest.CaptureFixture[str]) -> None:
    PlainReporter().note("for people")
    JsonReporter().note("for programs")
    out, err = capsys.readouterr()
    assert json.loads(out) == {"event": "note", "message": "for programs"}
    assert err == "for people\n"


@pytest.mark.parametrize("make", [PlainReporter, JsonReporter])
def test_lines_of_several_threads_stay_whole(make: Any) -> None:
    stream = io.StringIO()
    reporter = make(stream, every_seconds=0.0)
    reporter.stage_started("scan", 4000, 0)
    threads = [threading.Thread(target=lambda: [reporter.progress(done, 0) for done in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4001
    assert all(line.startswith(("scan: ", '{"event": ')) for line in lines)


def test_the_live_display_shows_the_bar_and_keeps_one_line_a_stage() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, color_system=None)
    with LiveReporter(console) as reporter:
        drive(reporter, Clock())
    text = stream.getvalue()
    assert "scan: 0 of 4 units" in text or "scan: 4 of 4 units" in text
    assert "scan: 4 units in 40.0 s, 10.0 MB/s (1,234 documents, 400.0 MB)" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is given back


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_bar_and_the_time_left_are_seen_on_every_terminal(width: int) -> None:
    stream = io.StringIO()
    with LiveReporter(Console(file=stream, force_terminal=True, width=width, color_system=None)) as reporter:
        reporter.stage_started("tokenize", 1200, 64_000_000_000)
        reporter.progress(300, 16_000_000_000)
    drawn = [line for line in re.split(r"[\r\n]+", stream.getvalue()) if "tokenize" in line]
    assert "━" in drawn[-1]
    assert " left" in drawn[-1]
    assert "…" not in drawn[-1]
    assert len(re.sub(r"\x1b\[[\d?]*\w", "", drawn[-1])) <= width


def test_the_live_display_shows_brackets_as_they_are() -> None:
    stream = io.StringIO()
    with LiveReporter(Console(file=stream, force_terminal=True, width=120, color_system=None)) as reporter:
        reporter.note("dead[changed] and :smile:")
    assert "dead[changed] and :smile:" in stream.getvalue()
