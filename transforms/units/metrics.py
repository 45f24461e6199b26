"""What a worker tells its engine of the units that it ran: counters and timings, as Beam metrics.

They are for an engine's own console. A unit that was run again counts again, so no receipt and no program of ours reads
them. The namespace is `cppmill.STAGE`; names have their unit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from apache_beam.metrics import Metrics

from schemas.units import Unit, UnitReceipt

Result = TypeVar("Result")

_COUNTED = ("documents", "tokens")
"""Totals of unit receipts that are counted."""


@dataclass(frozen=True)
class Timed(Generic[Result]):
    """What a unit gave, and how long it took."""

    unit: Unit
    result: Result
    milliseconds: int


def time_unit(run: Callable[[Unit], Result], unit: Unit) -> Timed[Result]:
    """Run a unit, in any thread."""
    started = time.monotonic()
    return Timed(unit, run(unit), round(1000 * (time.monotonic() - started)))


def count_unit(stage: str, timed: Timed[Result]) -> Result:
    """Count a unit that was run, and return what it gave; only in the thread that Beam calls, or nothing is counted."""
    namespace = f"cppmill.{stage}"
    Metrics.counter(namespace, "units").inc()
    Metrics.counter(namespace, "input-bytes").inc(timed.unit.num_bytes)
    Metrics.distribution(namespace, "unit-milliseconds").update(timed.milliseconds)
    if isinstance(timed.result, UnitReceipt):
        for name in _COUNTED:
            if isinstance(number := timed.result.totals.get(name), int):
                Metrics.counter(namespace, name).inc(number)
    return timed.result
