"""How fast the stages of a run were, from its event logs, if it kept any.

Each stage is taken from the newest log in which it had something to do and finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pipelines.console.events import log_names, parse_events, read_events
from transforms.storage.folder import OutputFolder


class StageTime(NamedTuple):
    """What a stage did when it last had something to do."""

    name: str
    units: int
    num_bytes: int
    seconds: float


def read_stage_times(out: OutputFolder) -> list[StageTime]:
    """Return the stages in the order in which they ran; none if no log was kept."""
    found: dict[str, StageTime] = {}
    for name in log_names(out):
        found |= {stage.name: stage for stage in _stage_times(read_events(out, name))}
    return list(found.values())


def stage_times(lines: Iterable[str]) -> list[StageTime]:
    """Return the stages of a log that finished and had something to do.

    Args:
        lines: The log; lines that are not events are skipped.
    """
    return _stage_times(parse_events(lines))


def _stage_times(events: Iterable[Mapping[str, Any]]) -> list[StageTime]:
    found = []
    units = num_bytes = 0
    for event in events:
        if event["event"] == "stage_started":
            units, num_bytes = event["units"], event["bytes"]
        elif event["event"] == "stage_done" and units and event["seconds"]:
            found.append(StageTime(event["stage"], units, num_bytes, event["seconds"]))
    return found
