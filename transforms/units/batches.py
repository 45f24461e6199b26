"""Arrow batches: cut to a size that every engine shuffles, and their columns of lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa

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


def list_column(rows: pa.RecordBatch, name: str) -> pa.ListArray[Any]:
    """Return a column that holds lists, with the type that says so."""
    return cast("pa.ListArray[Any]", rows.column(name))
