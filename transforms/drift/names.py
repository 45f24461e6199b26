"""Totals of names from version to version, and the API families that are new in one.

The names of a version are those of the version before, with the counts of new shards added and those of lost shards
taken away. All are sorted files, merged as they are read (`transforms.units.sorted_runs`), so no table is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.tables import NAME_COUNTS, required
from transforms.drift.parts import FAMILY, PART_NAMES, open_names
from transforms.storage.folder import CACHE, OutputFolder, naming_damage
from transforms.units.sorted_runs import Run, merge_runs, read_run

TOTALS = f"{CACHE}/drift_totals/names.parquet"
"""The names of a version (`schemas.tables.NAME_COUNTS`), below its OUT."""

LEAST_HITS = 20
LEAST_DOCUMENTS = 3
LEAST_NAMES = 3
"""What new text has at least of a new API family: hits, documents, and different names in one document."""

RARE_SHARE = 0.05
"""A family is new if the version before had at most this share of its hits."""

_KEYS = ["kind", "name"]
_COUNTS = ["hits", "documents", "hits_before", "documents_before"]
_MERGED = NAME_COUNTS.append(required("hits_before", pa.int64())).append(required("documents_before", pa.int64()))
_MERGED = _MERGED.append(required("names", pa.int64()))


@dataclass(frozen=True, kw_only=True)
class NewFamily:
    """Names that new text uses and the version before did not, or hardly.

    Attributes:
        kind: `family` or `namespace`.
        name: The namespace, or what the names begin with.
        names: The most different names in one document; 0 for a namespace.
        hits, documents: What the version has.
        hits_before, documents_before: What the version before had.
    """

    kind: str
    name: str
    names: int
    hits: int
    documents: int
    hits_before: int
    documents_before: int


def merge_names(
    out: OutputFolder,
    before: OutputFolder | None,
    *,
    gained: Sequence[str],
    lost: Sequence[str],
    counted: Sequence[str] | None = None,
) -> list[NewFamily]:
    """Write the totals of a version, and return the API families that it has and the version before did not.

    Args:
        out: The version; it has the counts of the shards that it gained.
        before: The version before, which has totals and the counts of the shards that it lost; None if there is none.
        gained: SHA-256 of the token shards that the version before lacks.
        lost: SHA-256 of those that it alone has.
        counted: SHA-256 of all its token shards, if their counts are to be added up instead of reading its totals.

    Returns:
        Sorted by kind and name. Of a family and its own families, only the shortest name. Empty without a version
        before.

    Raises:
        FileNotFoundError: If a file of counts or totals is missing.
        IntegrityError: If one is damaged, or no such file.
    """
    runs = [_signed(open_names(out, sha256), _gain) for sha256 in gained]
    if before is not None and counted is None:
        runs += [_signed(partial(before.open_ranges, TOTALS), _stay, schema=NAME_COUNTS)]
    if before is not None:
        runs += [_signed(open_names(before, sha256), _stay) for sha256 in counted or ()]
        runs += [_signed(open_names(before, sha256), _lose) for sha256 in lost]
    found: list[NewFamily] = []
    with naming_damage((before or out).where(TOTALS)):  # if rows are found not to be sorted
        out.publish(TOTALS, partial(_write, runs=runs, folder=out.temporary, found=found))
    return [] if before is None else found


def _write(path: Path, runs: Sequence[Run], folder: Path, found: list[NewFamily]) -> int:
    rows = 0
    with pq.ParquetWriter(path, NAME_COUNTS, compression="zstd") as writer:
        for table in merge_runs(runs, keys=_KEYS, schema=_MERGED, combine=_add, folder=folder):
            found += _find_new(table, found[-1:])
            kept = table.filter(pc.field("hits") > 0).select(NAME_COUNTS.names)
            writer.write_table(kept)
            rows += kept.num_rows
    return rows


def _find_new(table: pa.Table, last: Sequence[NewFamily]) -> Iterator[NewFamily]:
    """Yield the new families of a block; names that begin with a family that was found are left out."""
    hits, documents = (pc.field(name) for name in ("hits", "documents"))
    enough = (hits - pc.field("hits_before") >= LEAST_HITS) & (
        documents - pc.field("documents_before") >= LEAST_DOCUMENTS
    )
    several = (pc.field("kind") != FAMILY) | (pc.field("names") >= LEAST_NAMES)
    rare = pc.field("hits_before") <= hits.cast(pa.float64()) * RARE_SHARE
    known = last[0] if last else None
    for row in table.filter(enough & several & rare).to_pylist():
        if known is None or row["kind"] != known.kind or not _is_part(row["name"], known.name):
            known = NewFamily(**row)
            yield known


def _is_part(name: str, family: str) -> bool:
    """Return whether a family begins with another one and then with a component: `cudnnBackend` with `cudnn`, not `cu`.

    A namespace is part of none: it has no mark or capital where another one ends.
    """
    rest = name[len(family) :]
    return name.startswith(family) and (family[-1:] == "_" or rest[:1].isupper())


def _signed(open_file: Callable[[], Any], sign: Callable[..., list[Any]], schema: pa.Schema = PART_NAMES) -> Run:
    """Yield the rows of a file with the columns of `_MERGED`."""
    for batch in read_run(open_file, schema):
        zero = pa.repeat(0, batch.num_rows)
        yield pa.record_batch([batch["kind"], batch["name"], *sign(batch, zero)], schema=_MERGED)


def _gain(batch: Any, zero: Any) -> list[Any]:  # noqa: ANN401 - columns
    return [batch["hits"], batch["documents"], zero, zero, batch["names"]]


def _stay(batch: Any, zero: Any) -> list[Any]:  # noqa: ANN401
    return [batch["hits"], batch["documents"], batch["hits"], batch["documents"], zero]


def _lose(batch: Any, zero: Any) -> list[Any]:  # noqa: ANN401
    return [pc.negate(batch["hits"]), pc.negate(batch["documents"]), zero, zero, zero]


def _add(table: pa.Table) -> pa.Table:
    sums: list[Any] = [*((name, "sum") for name in _COUNTS), ("names", "max")]
    grouped = table.group_by(_KEYS, use_threads=False).aggregate(sums)
    named = grouped.rename_columns([*_KEYS, *_COUNTS, "names"])
    return named.sort_by([(key, "ascending") for key in _KEYS]).cast(_MERGED)
