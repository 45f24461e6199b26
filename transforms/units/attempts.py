"""Attempts: a note of each start of a unit, so that a run can report which units ran more than once.

An engine that lost a worker runs units again; their outputs are the same, and their receipts count once. The notes are
only for people: they are in the cache, and no digest depends on them.
"""

from __future__ import annotations

import json
import os
import platform
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from schemas.units import Unit
from transforms.storage.folder import CACHE, OutputFolder

ATTEMPTS = f"{CACHE}/attempts"
"""The folder of the notes, relative to OUT: `KEY-UUID.json`."""


def note_attempt(unit: Unit, out: OutputFolder) -> None:
    """Note that this process starts a unit."""
    note = {
        "stage": str(unit.stage),
        "label": unit.label,
        "host": platform.node(),
        "pid": os.getpid(),
        "start": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    out.publish_bytes(f"{ATTEMPTS}/{unit.key}-{uuid.uuid4().hex}.json", json.dumps(note).encode())


def count_repeated(units: Sequence[Unit], out: OutputFolder) -> int:
    """Return how many units were started more than once since the notes were cleared."""
    started = Counter(name.removeprefix(f"{ATTEMPTS}/").partition("-")[0] for name in out.files(ATTEMPTS))
    return sum(started[unit.key] > 1 for unit in units)


def clear_attempts(out: OutputFolder) -> None:
    """Remove the notes of earlier runs; only for the holder of the lock."""
    out.remove_folder(ATTEMPTS)
