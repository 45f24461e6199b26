"""How far each stage of a run is, and how fast the stages were, from the events of its logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from pipelines.console.events import DONE, log_names, read_events
from transforms.storage.folder import OutputFolder

RUNNING = "running"
"""The state of a run, and of the stage that it is in."""

Event = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StageStatus:
    """A stage of a run.

    Attributes:
        stage: Its name.
        state: `done`, or the state of the run: `running` or how it ended in this stage.
        done_units: Units that are done.
        units: Units to do; reused units do not count.
        done_bytes: Their input bytes.
        bytes: The input bytes of all.
        seconds: How long it took, or has taken so far.
        eta_seconds: Seconds left; None if unknown or if the stage is not running.
        summary: What it made, once it is done.
    """

    stage: str
    state: str
    done_units: int
    units: int
    done_bytes: int
    bytes: int
    seconds: float
    eta_seconds: float | None = None
    summary: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def bytes_per_second(self) -> float:
        """Input bytes per second."""
        return self.done_bytes / self.seconds if self.seconds > 0 else 0.0


def read_stages(events: Sequence[Event], *, state: str, now: datetime) -> tuple[StageStatus, ...]:
    """Return the finished stages of a log, and the last one if it did not finish.

    Args:
        events: The events of the log, in order.
        state: The state of the run.
        now: The time, to which a running stage is extrapolated.
    """
    stages = [_stage_status(group, state=state, now=now) for group in _group_by_stage(events)]
    return tuple(stage for stage in stages if stage.state == DONE or stage is stages[-1])


def _group_by_stage(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Yield the events of each stage, from its start to the start of the next one."""
    starts = [index for index, event in enumerate(events) if event["event"] == "stage_started"]
    for start, end in pairwise([*starts, len(events)]):
        yield events[start:end]


def _stage_status(events: Sequence[Event], *, state: str, now: datetime) -> StageStatus:
    """Return the status of a stage from its events, of which the first is its start."""
    started = events[0]
    ended = next((event for event in events if event["event"] == "stage_done"), None)
    if ended is not None:
        return StageStatus(
            stage=started["stage"],
            state=DONE,
            done_units=started["units"],
            units=started["units"],
            done_bytes=started["bytes"],
            bytes=started["bytes"],
            seconds=ended["seconds"],
            summary=ended["summary"],
        )
    last = next((event for event in reversed(events) if event["event"] == "progress"), started)
    since = max(0.0, (now - event_time(last)).total_seconds()) if state == RUNNING else 0.0
    eta = last.get("eta_seconds") if state == RUNNING else None
    return StageStatus(
        stage=started["stage"],
        state=state,
        done_units=last.get("done_units", 0),
        units=started["units"],
        done_bytes=last.get("done_bytes", 0),
        bytes=started["bytes"],
        seconds=round((event_time(last) - event_time(started)).total_seconds() + since, 3),
        eta_seconds=None if eta is None else round(max(0.0, eta - since), 1),
    )


def event_time(event: Event) -> datetime:
    """Return when an event was written."""
    return datetime.fromisoformat(event["time"])


class StageTime(NamedTuple):
    """What a stage did when it last had something to do."""

    name: str
    units: int
    num_bytes: int
    seconds: float


def read_stage_times(out: OutputFolder) -> list[StageTime]:
    """Return each stage of the newest log in which it had something to do and finished; none if no log was kept."""
    found: dict[str, StageTime] = {}
    for name in log_names(out):
        found |= {stage.name: stage for stage in stage_times(read_events(out, name))}
    return list(found.values())


def stage_times(events: Iterable[Event]) -> list[StageTime]:
    """Return the stages of a log that finished and had something to do."""
    found = []
    units = num_bytes = 0
    for event in events:
        if event["event"] == "stage_started":
            units, num_bytes = event["units"], event["bytes"]
        elif event["event"] == "stage_done" and units and event["seconds"]:
            found.append(StageTime(event["stage"], units, num_bytes, event["seconds"]))
    return found
