"""Running each unit once: reuse what an earlier attempt published, or note the attempt, do the work and publish it.

Every stage runs its units by `run_once`.

Each start of a unit is noted in the cache, so that a run can report which units ran more than once: an engine that lost
a worker runs units again; their outputs are the same, and their receipts count once.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from schemas.units import Unit, UnitReceipt
from transforms.storage.folder import CACHE, OutputFolder

ATTEMPTS = f"{CACHE}/attempts"
"""The folder of the notes, relative to OUT: `KEY-UUID.json`."""

_COUNTED = ("documents", "tokens")
"""Totals of unit receipts that are counted."""

Result = TypeVar("Result")


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


class WorkSettings(Protocol):
    """What the settings of all stages have in common: where units are published."""

    @property
    def out(self) -> OutputFolder:
        """The output folder."""


@dataclass(frozen=True)
class FinishedUnit(Generic[Result]):
    """A unit, what its run returned or an earlier attempt had published, and how long that took."""

    unit: Unit
    result: Result
    milliseconds: int


def run_once(
    unit: Unit, out: OutputFolder, *, find: Callable[[Unit], Result | None], make: Callable[[Unit], Result]
) -> FinishedUnit[Result]:
    """Return what an earlier attempt finished, or note this attempt and make it; callable in any thread.

    Args:
        unit: The unit.
        out: Where the attempt is noted.
        find: Returns the result if it is published already: an engine may run a bundle again.
        make: Does the work, publishes it and returns the result.
    """
    started = time.monotonic()
    result = find(unit)
    if result is None:
        note_attempt(unit, out)
        result = make(unit)
    return FinishedUnit(unit, result, round(1000 * (time.monotonic() - started)))


def run_unit(unit: Unit, out: OutputFolder, work: Callable[[Unit], UnitReceipt]) -> FinishedUnit[UnitReceipt]:
    """Run a unit once that ends in a receipt, and publish the receipt."""

    def find(unit: Unit) -> UnitReceipt | None:
        receipt = out.find_receipt(unit)
        return receipt if receipt is not None and receipt.is_final else None

    def make(unit: Unit) -> UnitReceipt:
        receipt = work(unit)
        out.publish_receipt(receipt)
        return receipt

    return run_once(unit, out, find=find, make=make)


def count_unit(finished: FinishedUnit[Result], stage: str = "") -> Result:
    """Add a unit to Beam's metrics, for an engine's own console, and return its result.

    Has no effect but in the thread that Beam calls, on a worker of Beam: every worker has loaded its metrics, and no
    command needs to. A unit that was run again counts again: no program of ours reads these metrics.

    Args:
        finished: What `run_once` returned.
        stage: Names the metrics; the unit's stage if empty.
    """
    if "apache_beam.metrics" in sys.modules:
        _count(finished, f"cppmill.{stage or finished.unit.stage}")
    return finished.result


def _count(finished: FinishedUnit[Any], namespace: str) -> None:
    metrics: Any = sys.modules["apache_beam.metrics"].Metrics
    metrics.counter(namespace, "units").inc()
    metrics.counter(namespace, "input-bytes").inc(finished.unit.num_bytes)
    metrics.distribution(namespace, "unit-milliseconds").update(finished.milliseconds)
    totals = finished.result.totals if isinstance(finished.result, UnitReceipt) else {}
    for name in _COUNTED:
        if isinstance(number := totals.get(name), int):
            metrics.counter(namespace, name).inc(number)
