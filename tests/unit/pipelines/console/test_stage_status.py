"""The stages of a log: finished ones as they ended, an unfinished one as it is by now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pipelines.console.stage_status import RUNNING, StageStatus, read_stages

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def event(after: float, kind: str, **values: Any) -> dict[str, Any]:
    return {"time": (BEGIN + timedelta(seconds=after)).isoformat(), "event": kind, **values}


STARTED = event(0, "stage_started", stage="scan", units=4, bytes=400)
PROGRESS = event(10, "progress", stage="scan", done_units=1, done_bytes=100, eta_seconds=30.0)
DONE = event(40, "stage_done", stage="scan", seconds=40.0, summary={"documents": 5})


def read(*events: dict[str, Any], state: str = RUNNING, seconds: float = 0.0) -> tuple[StageStatus, ...]:
    return read_stages(events, state=state, now=BEGIN + timedelta(seconds=seconds))


def test_a_log_without_a_stage_has_none() -> None:
    assert read() == read(event(0, "run_started"), event(1, "note", message="text")) == ()


def test_time_passes_for_a_running_stage_alone() -> None:
    [running] = read(STARTED, PROGRESS, seconds=15)
    assert (running.state, running.done_units, running.done_bytes) == (RUNNING, 1, 100)
    assert (running.seconds, running.eta_seconds) == (15.0, 25.0)
    [failed] = read(STARTED, PROGRESS, event(12, "run_ended", outcome="failed"), state="failed", seconds=15)
    assert (failed.state, failed.seconds, failed.eta_seconds) == ("failed", 10.0, None)


def test_a_stage_without_progress_has_no_time_left() -> None:
    [stage] = read(STARTED, seconds=5)
    assert (stage.done_units, stage.units, stage.seconds, stage.eta_seconds) == (0, 4, 5.0, None)


def test_a_finished_stage_is_as_it_ended() -> None:
    [stage] = read(STARTED, PROGRESS, DONE, event(41, "note", message="text"), seconds=100)
    assert (stage.state, stage.done_units, stage.done_bytes, stage.bytes) == ("done", 4, 400, 400)
    assert (stage.seconds, stage.eta_seconds, stage.summary) == (40.0, None, {"documents": 5})


def test_of_unfinished_stages_the_last_is_the_one_that_counts() -> None:
    other = event(20, "stage_started", stage="build", units=1, bytes=0)
    assert [stage.stage for stage in read(STARTED, PROGRESS, other)] == ["build"]
    assert [stage.stage for stage in read(STARTED, DONE, other)] == ["scan", "build"]
