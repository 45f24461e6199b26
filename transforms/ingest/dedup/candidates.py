"""Candidates for duplicates: documents that passed every filter, packed for the shuffle by partition of the digest."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import parse_json
from schemas.reasons import Column
from schemas.tables import DUPLICATE_CANDIDATES
from schemas.units import Unit
from transforms.sources.batches import BATCH_ROWS
from transforms.sources.listing import Kind
from transforms.units.batches import MAX_ELEMENT_BYTES

MIN_PARTITIONS = 32
"""The fewest partitions that duplicates are chosen in."""

PARTITION_BYTES = 256 << 20
"""Source bytes per partition: 8 MiB of candidates for documents of 5 kB; larger ones would be too much at once."""

_EXPANSION = 8
"""How much more text than bytes an archive is taken to hold."""

Candidate = tuple[str, str, str, int, int]
"""A row of DUPLICATE_CANDIDATES. They travel packed, as JSON: of a large corpus, a unit has few in a partition."""


def duplicate_partitions(units: Sequence[Unit], *, weight: int = 1) -> int:
    """Return how many partitions to choose duplicates in, so that each is small; the choice does not depend on it.

    Args:
        units: The input units.
        weight: How many times as much as a candidate for duplicates there is of each document.
    """
    expected = sum(unit.num_bytes * (1 if unit.payload["kind"] == Kind.FILE else _EXPANSION) for unit in units)
    return max(MIN_PARTITIONS, math.ceil(expected * weight / PARTITION_BYTES))


def duplicate_candidates(path: Path, index: int, partitions: int) -> Iterator[tuple[int, bytes]]:
    """Yield the documents of a unit that passed every filter as (partition of the doc_id, packed candidates)."""
    first = 0
    columns = ["doc_id", "project", "path", "column"]
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            yield from _partition(batch, index, first, partitions)
            first += batch.num_rows


def _partition(batch: pa.RecordBatch, index: int, first: int, partitions: int) -> Iterator[tuple[int, bytes]]:
    rows: dict[int, list[Candidate]] = defaultdict(list)
    columns = zip(*(batch.column(name).to_pylist() for name in ("doc_id", "project", "path", "column")), strict=True)
    for row, (doc_id, project, path, column) in enumerate(columns, start=first):
        if column == Column.KEPT:
            rows[int(doc_id[:8], 16) % partitions].append((doc_id, project, path, index, row))
    for partition, taken in rows.items():
        yield from ((partition, packed) for packed in _pack(taken))


def _pack(candidates: list[Candidate]) -> Iterator[bytes]:
    """Yield candidates as JSON, cut to what every engine shuffles."""
    packed = json.dumps(candidates, ensure_ascii=False, separators=(",", ":")).encode()
    if len(packed) > MAX_ELEMENT_BYTES and len(candidates) > 1:
        half = len(candidates) // 2
        yield from _pack(candidates[:half])
        yield from _pack(candidates[half:])
    else:
        yield packed


def unpack_candidates(packed: Iterable[bytes]) -> pa.Table:
    """Return what `duplicate_candidates` packed as a table of DUPLICATE_CANDIDATES."""
    rows: list[Candidate] = [candidate for part in packed for candidate in parse_json(part)]
    columns = list(zip(*rows, strict=True)) or [()] * len(DUPLICATE_CANDIDATES)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, DUPLICATE_CANDIDATES, strict=True)]
    return pa.Table.from_arrays(arrays, schema=DUPLICATE_CANDIDATES)
