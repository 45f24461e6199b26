"""Beam metrics of the units that a worker ran, for an engine's own console.

A unit that was run again counts again, so no receipt and no program of ours reads them. The namespace is
`cppmill.STAGE`; names have their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apache_beam.metrics import Metrics

_COUNTED = ("documents", "tokens")
"""Totals of unit receipts that are counted."""


def record_unit(stage: str, num_bytes: int, milliseconds: int, totals: Mapping[str, Any]) -> None:
    """Count a unit; only in the thread that Beam calls, or nothing is counted.

    Args:
        stage: Names the metrics.
        num_bytes: Bytes of input.
        milliseconds: How long the unit took.
        totals: Those of its receipt; empty if it has none.
    """
    namespace = f"cppmill.{stage}"
    Metrics.counter(namespace, "units").inc()
    Metrics.counter(namespace, "input-bytes").inc(num_bytes)
    Metrics.distribution(namespace, "unit-milliseconds").update(milliseconds)
    for name in _COUNTED:
        if isinstance(number := totals.get(name), int):
            Metrics.counter(namespace, name).inc(number)
