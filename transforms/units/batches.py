"""Arrow batches: read and written by row groups, cut to a size that every engine shuffles; their columns of lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, cast

import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

MAX_ELEMENT_BYTES = 8 << 20
"""No shuffled element is larger: half of the 16 MB that every engine takes."""


def bounded_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table, in order, in batches of at most `MAX_ELEMENT_BYTES`; a larger row stays whole.

    Halves what is too large, so that rows of very different sizes are cut where the bytes are.
    """
    if table.nbytes > MAX_ELEMENT_BYTES and table.num_rows > 1:
        half = table.num_rows // 2
        yield from bounded_batches(table.slice(0, half))
        yield from bounded_batches(table.slice(half))
    elif table.num_rows:
        yield table.combine_chunks().to_batches()[0]


def cut_batch(batch: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows as `bounded_batches` does; a batch that is small enough is not copied."""
    if isinstance(batch, pa.Table):
        yield from bounded_batches(batch)
    elif batch.nbytes > MAX_ELEMENT_BYTES:
        yield from bounded_batches(pa.Table.from_batches([batch]))
    elif batch.num_rows:
        yield batch


def fixed_row_groups(batches: Iterable[pa.RecordBatch], num_rows: int) -> Iterator[pa.Table]:
    """Yield the rows of batches in tables of `num_rows` rows, the last one shorter, each in one chunk."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while rows + batch.num_rows >= num_rows:
            taken = num_rows - rows
            yield pa.Table.from_batches([*waiting, batch.slice(0, taken)]).combine_chunks()
            waiting, rows, batch = [], 0, batch.slice(taken)
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


def read_row_groups(file: pq.ParquetFile, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file, one row group in memory at a time; all columns unless some are named."""
    for number in range(file.num_row_groups):
        yield from file.read_row_group(number, columns=columns, use_threads=False).to_batches()


def read_columns(file: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows as `read_row_groups` does, with the columns of a schema.

    Raises:
        pa.ArrowInvalid: If a column is not there once, has a null or text that is not UTF-8.
        pa.ArrowException: If a column has another type, which has no such values.
    """
    check_columns(file.schema_arrow, schema)
    for batch in read_row_groups(file, schema.names):
        batch.validate(full=True)
        for name in schema.names:
            if batch.column(name).null_count and not schema.field(name).nullable:
                raise pa.ArrowInvalid(f"its column {name} has nulls")
        yield batch.select(schema.names).cast(schema)


def check_columns(found: pa.Schema, schema: pa.Schema) -> None:
    """Check that a file has each column of a schema once, whatever else it has.

    Raises:
        pa.ArrowInvalid: Naming a column that is missing, or there twice.
    """
    for name in schema.names:
        if (number := found.names.count(name)) != 1:
            raise pa.ArrowInvalid(f"it has {number} columns {name}")


def list_column(rows: pa.RecordBatch, name: str) -> pa.ListArray[Any]:
    """Return a column that holds lists, with the type that says so."""
    return cast("pa.ListArray[Any]", rows.column(name))


def split_lists(lists: pa.ListArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield the values of each list in a column."""
    values, offsets = lists.flatten().to_numpy(), lists.offsets.to_numpy()
    ends = (offsets - offsets[0]).tolist()
    yield from (values[start:end] for start, end in pairwise(ends))
