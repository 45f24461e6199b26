"""What is decided about the documents of a unit before its inputs are read again, and what that makes of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.options import IngestOptions
from schemas.reasons import Column, Dead, Filtered
from schemas.tables import REJECTS
from schemas.units import Unit
from transforms.ingest.dedup.clusters import unit_near_duplicates
from transforms.ingest.dedup.exact import unit_duplicates
from transforms.ingest.fingerprints import read_columns, read_fingerprints
from transforms.sources.batches import Flags
from transforms.sources.listing import Kind
from transforms.storage.folder import OutputFolder
from transforms.units.chunking import cut


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What is decided about the rows of a unit's fingerprints.

    Attributes:
        fingerprints: The file.
        kept: For each row, whether its document is kept.
        duplicate: For each row, whether it is a copy of a document that is kept.
        near: Rows of near-duplicates, each with a few words for people; copies may be among them.
        shards: For each row, the number of the shard that it belongs to if it is kept.
        ends: The rows at which the first reading of an archive or table ran out of time.
    """

    fingerprints: Path
    kept: Flags
    duplicate: Flags
    near: dict[int, str]
    shards: npt.NDArray[np.intp]
    ends: frozenset[int] = frozenset()

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the fingerprints, which were compared with their digest, in batches."""
        return read_fingerprints(self.fingerprints, is_checked=True)

    def settle(self, rows: pa.RecordBatch, first: int, changed: Flags) -> pa.RecordBatch:
        """Return what became of documents.

        Args:
            rows: A batch of their fingerprints.
            first: The number of its first row.
            changed: For each of them, whether it is another document by now.

        Returns:
            A batch of REJECTS, with those that are kept among them.
        """
        settled = {name: rows.column(name) for name in REJECTS.names}
        duplicate = self.duplicate[first : first + rows.num_rows]
        _set(settled, duplicate, Column.DUPLICATE, settled["reason"], rows.column("doc_id"))
        if self.near:
            words = [self.near.get(first + row) for row in range(rows.num_rows)]
            near = np.array([text is not None for text in words], dtype=bool)
            _set(settled, near, Column.FILTERED, str(Filtered.NEAR_DUPLICATE), pa.array(words, pa.string()))
        _set(settled, changed, Column.DEAD, str(Dead.CHANGED), "differs from what the first pass read")
        return pa.RecordBatch.from_arrays(list(settled.values()), schema=REJECTS)


def _set(settled: dict[str, pa.Array[Any]], flags: Flags, column: Column, *reason_and_detail: Any) -> None:  # noqa: ANN401
    """Replace what is said of the rows that are flagged; an array has a value for each row."""
    if flags.any():
        for name, value in zip(("column", "reason", "detail"), (str(column), *reason_and_detail), strict=True):
            settled[name] = pc.if_else(pa.array(flags), value, settled[name])


def decide(unit: Unit, fingerprints: Path, out: OutputFolder, options: IngestOptions) -> Decisions:
    """Return which rows of a unit's fingerprints are kept, and in which shards.

    Raises:
        IntegrityError: If the fingerprints are damaged.
    """
    kept, sizes, ends = _passed(read_columns(fingerprints, ["column", "reason", "num_bytes"]))
    duplicate, near = np.zeros(len(kept), dtype=bool), dict[int, str]()
    if unit.payload["duplicates"]:
        with out.open_ranges(unit.payload["duplicates"]) as file:
            duplicate[unit_duplicates(file, unit.payload["index"])] = True
    if unit.payload["near_duplicates"]:
        with out.open_ranges(unit.payload["near_duplicates"]) as file:
            near = unit_near_duplicates(file, unit.payload["index"])
    kept &= ~duplicate
    kept[list(near)] = False
    borders: list[int] = []
    if unit.payload["kind"] != Kind.FILE:  # loose files are one shard
        borders = cut(_kept_paths(fingerprints, kept, sizes), options.unit_bytes)
    shards = np.searchsorted(borders, np.cumsum(kept) - 1, side="right")
    return Decisions(fingerprints=fingerprints, kept=kept, duplicate=duplicate, near=near, shards=shards, ends=ends)


def _passed(table: pa.Table) -> tuple[Flags, npt.NDArray[np.uint64], frozenset[int]]:
    """Return for each row of fingerprints whether it passed every filter, its bytes, and where time ran out."""
    kept = pc.equal(table.column("column"), pa.scalar(str(Column.KEPT))).to_numpy()
    late = pc.equal(table.column("reason"), pa.scalar(str(Dead.TIMEOUT))).to_numpy()
    ends = frozenset(np.flatnonzero(late).tolist())
    return np.array(kept, dtype=bool), table.column("num_bytes").to_numpy(), ends


def _kept_paths(path: Path, kept: Flags, sizes: npt.NDArray[np.uint64]) -> Iterator[tuple[str, int]]:
    """Yield path and bytes of the rows that are kept."""
    first = 0
    for batch in read_fingerprints(path, is_checked=True):
        last = first + batch.num_rows
        taken = kept[first:last]
        paths = batch.column("path").filter(pa.array(taken)).to_pylist()
        yield from zip(paths, sizes[first:last][taken].tolist(), strict=True)
        first = last
