"""Arrow batches: read by row groups, cut to a size that every engine shuffles, and their columns of lists."""

from __future__ import annotations

from collections.abc import Iterator
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


def read_row_groups(file: pq.ParquetFile, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file, one row group in memory at a time; all columns unless some are named."""
    for number in range(file.num_row_groups):
        yield from file.read_row_group(number, columns=columns, use_threads=False).to_batches()


def list_column(rows: pa.RecordBatch, name: str) -> pa.ListArray[Any]:
    """Return a column that holds lists, with the type that says so."""
    return cast("pa.ListArray[Any]", rows.column(name))


def split_lists(lists: pa.ListArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield the values of each list in a column."""
    values, offsets = lists.flatten().to_numpy(), lists.offsets.to_numpy()
    ends = (offsets - offsets[0]).tolist()
    yield from (values[start:end] for start, end in pairwise(ends))
