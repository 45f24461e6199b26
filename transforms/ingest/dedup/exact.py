"""Exact duplicates across the whole corpus: which copy is kept, by a rule that depends only on names and order.

Of documents with equal bytes that passed every other filter, the one with the smallest (project, path), bytewise, is
kept; among equal names the first in source and member order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables import DUPLICATE_CANDIDATES, DUPLICATES
from schemas.units import Unit
from transforms.ingest.dedup.candidates import unpack_candidates
from transforms.storage.folder import CACHE, OutputFolder
from transforms.units.batches import bounded_batches
from transforms.units.flow import FlatMap, Flow, GroupByKey
from transforms.units.parts import (
    clear_parts,
    is_whole,
    merge_parts,
    read_rows,
    row_bytes,
    rows_by_unit,
    sort_rows,
    write_parts,
)

_FOLDER = f"{CACHE}/duplicates"
_PARTS = f"{_FOLDER}/parts"
_PARTITIONS_A_PART = 32
"""So many partitions share one file of dropped documents."""


def choose_kept(candidates: pa.Table) -> pa.Table:
    """Return the copies that are not kept, each with the one that is.

    Args:
        candidates: A table of DUPLICATE_CANDIDATES with every copy of each doc_id in it, in any order.

    Returns:
        A table of DUPLICATES, sorted by unit and row.
    """
    ordered = candidates.sort_by([(name, "ascending") for name in DUPLICATE_CANDIDATES.names]).combine_chunks()
    if ordered.num_rows < 2:
        return DUPLICATES.empty_table()
    ids = ordered.column("doc_id")
    again = np.append(False, pc.equal(ids.slice(1), ids.slice(0, len(ids) - 1)).to_numpy())
    places = ordered.select(["unit", "row"])
    kept = places.take(np.maximum.accumulate(np.where(again, 0, np.arange(len(again))))[again])
    return sort_rows(pa.Table.from_arrays([*places.filter(again).columns, *kept.columns], schema=DUPLICATES))


def clear_duplicates(out: OutputFolder) -> None:
    """Remove what an earlier choice left in parts; to be called before a pipeline with `ChooseDuplicates` starts."""
    clear_parts(out, _PARTS)


def duplicates_name(units: Sequence[Unit], digests: Sequence[str]) -> str:
    """Return the path, relative to OUT, of the duplicates among input units; it depends on all that was found there."""
    digest = hashlib.sha256()
    for unit, rows in zip(units, digests, strict=True):
        digest.update(f"{unit.payload['index']} {rows}\n".encode())
    return f"{_FOLDER}/{digest.hexdigest()}.parquet"


def has_duplicates(name: str, out: OutputFolder) -> bool:
    """Return whether a file of duplicates is there and whole; else they are chosen, or chosen again."""
    return is_whole(out, name, DUPLICATES)


def merge_duplicates(name: str, out: OutputFolder) -> None:
    """Merge the parts that `choose_duplicates` wrote into a file of OUT, sorted by unit and row."""
    merge_parts(out, _PARTS, DUPLICATES, name)
    clear_duplicates(out)


def unit_duplicates(file: Path | pa.NativeFile, index: int) -> npt.NDArray[np.uint32]:
    """Return the rows of one input unit's fingerprints that are duplicates, ascending; reads no other row groups."""
    return np.asarray(read_rows(file, index, ["row"]).column("row").to_numpy(), dtype=np.uint32)


def duplicates_by_unit(path: Path) -> dict[int, str]:
    """Return for each input unit that has duplicates the SHA-256 of their row numbers."""
    return {unit: hashlib.sha256(row_bytes(share)).hexdigest() for unit, share in rows_by_unit(path)}


def choose_duplicates(out: OutputFolder) -> Flow:
    """Return the flow that chooses the copies that are not kept, of what `fingerprint_inputs` yields.

    It writes them to `.cache/duplicates` and yields (part, number of copies). Call `clear_duplicates` before the
    pipeline and `merge_duplicates` after it.
    """
    return (
        GroupByKey(name="GroupByPartition"),
        FlatMap(name="ChooseKept", function=_drop_copies, gives=tuple[int, pa.RecordBatch]),
        *write_parts(out, _PARTS, DUPLICATES),
    )


def _drop_copies(grouped: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the copies of a partition that are not kept, as (number of a part, batch of DUPLICATES)."""
    partition, packed = grouped
    losers = choose_kept(unpack_candidates(packed))
    yield from ((partition // _PARTITIONS_A_PART, batch) for batch in bounded_batches(losers))
