"""The fixtures themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable


class SplitByParity(beam.PTransform[Any, Any]):
    def expand(self, numbers: Any) -> dict[str, Any]:
        return {"even": numbers | "Even" >> beam.Filter(_is_even), "all": numbers}


def _is_even(number: int) -> bool:
    return number % 2 == 0


def _double(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": [2 * x for x in batch["x"].to_pylist()]})


def test_run_transform_returns_every_element(run_transform: Callable[..., Any]) -> None:
    batches = [pa.RecordBatch.from_pydict({"x": [n, n + 1]}) for n in range(5)]
    results = run_transform(beam.Map(_double), batches)
    assert sorted(batch["x"].to_pylist() for batch in results) == [[2 * n, 2 * n + 2] for n in range(5)]


def test_run_transform_keeps_named_outputs_apart(run_transform: Callable[..., Any]) -> None:
    results = run_transform(SplitByParity(), range(6))
    assert {name: sorted(values) for name, values in results.items()} == {"even": [0, 2, 4], "all": [0, 1, 2, 3, 4, 5]}
