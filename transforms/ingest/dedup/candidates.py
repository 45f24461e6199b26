"""Candidates for duplicates: documents that passed every filter, packed for the shuffle by partition of the digest."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.digests import parse_json
from schemas.reasons import Column
from schemas.tables import DUPLICATE_CANDIDATES
from schemas.units import Unit
from transforms.ingest.fingerprints import read_fingerprints
from transforms.sources.batches import is_equal
from transforms.sources.listing import Kind
from transforms.units.batches import MAX_ELEMENT_BYTES

MIN_PARTITIONS = 32
"""The fewest partitions that duplicates are chosen in."""

PARTITION_BYTES = 256 << 20
"""Source bytes per partition: 8 MiB of candidates for documents of 5 kB; larger ones would be too much at once."""

_EXPANSION = 8
"""How much more text than bytes an archive is taken to hold."""

_NAMES = ["doc_id", "project", "path"]
"""What a candidate is known by. They travel packed, as JSON: of a large corpus, a unit has few in a partition."""


def duplicate_partitions(units: Sequence[Unit], *, weight: int = 1) -> int:
    """Return how many partitions to choose duplicates in, so that each is small; the choice does not depend on it.

    Args:
        units: The input units.
        weight: How many times as much as a candidate for duplicates there is of each document.
    """
    expected = sum(unit.num_bytes * (1 if unit.payload["kind"] == Kind.FILE else _EXPANSION) for unit in units)
    return max(MIN_PARTITIONS, math.ceil(expected * weight / PARTITION_BYTES))


def duplicate_candidates(path: Path, index: int, partitions: int) -> Iterator[tuple[int, bytes]]:
    """Yield the documents of a unit that passed every filter as (partition of the doc_id, packed candidates).

    Args:
        path: The unit's fingerprints.
        index: The number of the unit.
        partitions: How many partitions there are.

    Raises:
        IntegrityError: If the fingerprints are damaged.
    """
    first = 0
    for batch in read_fingerprints(path):
        yield from _partition(batch, index, first, partitions)
        first += batch.num_rows


def _partition(batch: pa.RecordBatch, index: int, first: int, partitions: int) -> Iterator[tuple[int, bytes]]:
    kept = is_equal(batch.column("column"), Column.KEPT)
    rows = np.flatnonzero(kept)
    found = batch.select(_NAMES).take(rows)
    numbers = _leading_number(found.column("doc_id")) % partitions
    order = np.argsort(numbers, kind="stable")
    found = found.take(order).append_column("row", pa.array(first + rows[order]))
    borders = np.flatnonzero(np.diff(numbers[order])) + 1
    for start, end in pairwise([0, *borders.tolist(), len(order)] if len(order) else []):
        yield from ((int(numbers[order[start]]), packed) for packed in _pack(found.slice(start, end - start), index))


def _leading_number(digests: pa.Array[Any]) -> npt.NDArray[np.int64]:
    """Return the first eight digits of digests of 64, a column that is no slice, as numbers."""
    data = memoryview(digests.buffers()[2] or b"")
    text = np.frombuffer(data, np.uint8, count=64 * len(digests)).reshape(-1, 64)[:, :8]
    digits = np.where(text > ord("9"), text - (ord("a") - 10), text - ord("0")).astype(np.int64)
    return digits @ (16 ** np.arange(7, -1, -1))


def _pack(candidates: pa.RecordBatch, index: int) -> Iterator[bytes]:
    """Yield candidates of a unit as JSON, cut to what every engine shuffles."""
    columns = [*(column.to_pylist() for column in candidates.columns), index]
    packed = json.dumps(columns, ensure_ascii=False, separators=(",", ":")).encode()
    if len(packed) > MAX_ELEMENT_BYTES and candidates.num_rows > 1:
        half = candidates.num_rows // 2
        yield from _pack(candidates.slice(0, half), index)
        yield from _pack(candidates.slice(half), index)
    else:
        yield packed


def unpack_candidates(packed: Iterable[bytes]) -> pa.Table:
    """Return what `duplicate_candidates` packed as a table of DUPLICATE_CANDIDATES."""
    columns: dict[str, list[Any]] = {name: [] for name in DUPLICATE_CANDIDATES.names}
    for part in packed:
        *values, index = parse_json(part)
        for name, more in zip((*_NAMES, "row"), values, strict=True):
            columns[name] += more
        columns["unit"] += [index] * len(values[0])
    arrays = [pa.array(columns[field.name], field.type) for field in DUPLICATE_CANDIDATES]
    return pa.Table.from_arrays(arrays, schema=DUPLICATE_CANDIDATES)
