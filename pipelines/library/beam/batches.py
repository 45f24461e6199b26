"""Batches from the output of any Beam reader, and rows from batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import RowCoder
from apache_beam.coders import registry as coder_registry
from apache_beam.transforms.window import BoundedWindow
from apache_beam.utils.windowed_value import WindowedValue

from schemas.coders import register_coders
from schemas.errors import BadInputError, ConfigError
from transforms.sources.tables import CONTENT, batch_rows
from transforms.units.batches import MAX_ELEMENT_BYTES, cut_batch

BATCH_ROWS = 1024
"""The most rows that are gathered into a batch."""


@dataclass
class ToBatches(beam.PTransform[beam.PCollection[Any], beam.PCollection[pa.RecordBatch]]):
    """Turn rows of any kind into batches with the same columns; each transform of `cppmill.beam` does this first.

    In: `pyarrow.RecordBatch` or `Table` (`ReadFromParquetBatched`), dicts (`ReadFromParquet`, `ReadFromBigQuery`), and
    Beam rows, which are `beam.Row`, named tuples and data classes with a schema. Out: `pyarrow.RecordBatch` of at most
    8 MiB, unless a single row is larger; the runner decides which rows are in one batch.

    Raises:
        BadInputError: For elements of another type, and for rows with values that Arrow cannot hold.
    """

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[pa.RecordBatch]:
        """Gather rows by bundle and window."""
        register_coders()
        made: beam.PCollection[pa.RecordBatch] = rows | "Gather" >> beam.ParDo(_BatchFn()).with_output_types(
            pa.RecordBatch
        )
        return made


@dataclass
class ToRows(beam.PTransform[beam.PCollection[pa.RecordBatch], beam.PCollection[Any]]):
    """Turn batches into Beam rows, for example for `WriteToBigQuery` or SQL.

    In: `pyarrow.RecordBatch`. Out: `row_type`, with Beam's coder of rows.

    Args:
        row_type: `Document`, `Tokens`, `WordCount`, or a named tuple of your own, whose fields are columns.

    Raises:
        ConfigError: While you construct the pipeline, for another type.
        BadInputError: In a worker, for batches without one of its columns.
    """

    row_type: type[Any]

    def expand(self, batches: beam.PCollection[pa.RecordBatch]) -> beam.PCollection[Any]:
        """Spread each batch."""
        if not isinstance(self.row_type, type) or not hasattr(self.row_type, "_fields"):
            raise ConfigError(f"row_type = {self.row_type!r}: not allowed; it takes a named tuple of columns")
        coder_registry.register_coder(self.row_type, RowCoder)
        spread: beam.PCollection[Any] = batches | "Spread" >> beam.FlatMap(
            batch_to_rows, row_type=self.row_type
        ).with_output_types(self.row_type)
        return spread


def batch_to_rows(batch: pa.RecordBatch, row_type: type[Any]) -> Iterator[Any]:
    """Yield the rows of a batch as named tuples.

    Raises:
        BadInputError: If the batch lacks a field of theirs.
    """
    fields: tuple[str, ...] = row_type._fields
    if missing := [name for name in fields if name not in batch.schema.names]:
        raise BadInputError(f"no column {missing[0]!r} for {row_type.__name__}, only {', '.join(batch.schema.names)}")
    yield from map(row_type._make, zip(*(batch.column(name).to_pylist() for name in fields), strict=True))


def as_mapping(row: object) -> Mapping[str, Any]:
    """Return a row of any kind by its columns.

    Raises:
        BadInputError: If it has none.
    """
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "_asdict"):  # beam.Row, named tuples
        return dict(row._asdict())
    if hasattr(row, "__dataclass_fields__"):
        return {name: getattr(row, name) for name in row.__dataclass_fields__}
    raise BadInputError(
        f"an element of type {type(row).__name__} is no row; give pyarrow.RecordBatch, beam.Row, named tuples or dicts"
    )


class _BatchFn(beam.DoFn):
    """Cuts batches, and gathers the rows of a bundle into batches."""

    def __init__(self) -> None:
        self._rows: dict[BoundedWindow, list[Mapping[str, Any]]] = {}
        self._num_bytes = 0

    def start_bundle(self) -> None:
        """Begin without rows, whatever a bundle that failed has left."""
        self._rows, self._num_bytes = {}, 0

    def process(self, element: object, window: Any = beam.DoFn.WindowParam) -> Iterator[Any]:  # noqa: ANN401
        """Yield the batches that an element makes or fills."""
        if isinstance(element, pa.RecordBatch | pa.Table):
            yield from cut_batch(element)
            return
        row = as_mapping(element)
        rows = self._rows.setdefault(window, [])
        rows.append(row)
        text = row.get(CONTENT)
        self._num_bytes += len(text) if isinstance(text, str | bytes) else 0
        if len(rows) == BATCH_ROWS or self._num_bytes >= MAX_ELEMENT_BYTES:
            yield from self._take()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the last batches."""
        yield from self._take()

    def _take(self) -> Iterator[WindowedValue]:
        for window, rows in self._rows.items():
            for batch in cut_batch(batch_rows(rows)):
                yield in_window(batch, window)
        self.start_bundle()


def in_window(value: object, window: Any) -> WindowedValue:  # noqa: ANN401 - Beam's windows have no common type for mypy
    """Return a value at the end of a window."""
    return WindowedValue(value, window.max_timestamp(), (window,))
