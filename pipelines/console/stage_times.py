"""How fast the stages of a run were, from the event logs in `OUT/.cache/events`, which may not be there.

A log has one JSON object per line, as `cppmill run --json` prints them (docs/how-to/running.md). For each stage the
newest log counts in which it had something to do and finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from pipelines.console.events import EVENTS
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
    for name in sorted(out.files(EVENTS)):
        found |= {
            stage.name: stage for stage in stage_times(out.read_bytes(name).decode("utf-8", "replace").splitlines())
        }
    return list(found.values())


def stage_times(lines: Iterable[str]) -> list[StageTime]:
    """Return the stages of a log that finished and had something to do.

    Args:
        lines: The log; lines that are no events are passed over, as the last one of a run that died may be.
    """
    found = []
    units = num_bytes = 0
    for event in map(_event, lines):
        if event.get("event") == "stage_started":
            units, num_bytes = event["units"], event["bytes"]
        elif event.get("event") == "stage_done" and units and event["seconds"]:
            found.append(StageTime(event["stage"], units, num_bytes, event["seconds"]))
    return found


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}
