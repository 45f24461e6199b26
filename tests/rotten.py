"""Parquet files of which one bit flipped, while size and time stay: they are read, with other values."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def rotten(data: bytes, columns: Sequence[str] | None = None) -> bytes:
    """Flip the first bit with which other values are read."""
    table = pq.read_table(io.BytesIO(data), columns=columns)
    for place in range(_first_byte(data, columns), len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        with suppress(OSError, pa.ArrowException):
            read = pq.read_table(io.BytesIO(changed), columns=columns)
            read.validate(full=True)
            if read.schema.equals(table.schema) and len(read) == len(table) and not read.equals(table):
                return bytes(changed)
    raise AssertionError("no bit")


def _first_byte(data: bytes, columns: Sequence[str] | None) -> int:
    """Return where the first page of the columns begins."""
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    named = [chunk for chunk in chunks if columns is None or chunk.path_in_schema in columns]
    return min(min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset) for chunk in named)


def rot_values(path: Path, columns: Sequence[str] | None = None) -> None:
    """Let a file rot so that columns, or any of them, have other values; links to it are links to the same file."""
    changed, status = rotten(path.read_bytes(), columns), path.stat()
    with path.open("r+b") as file:
        file.write(changed)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
