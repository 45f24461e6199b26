"""Fingerprints with withdrawals: those of a unit, in which withdrawn documents are `filtered[withdrawn]`.

The unit's fingerprints without withdrawals stay beside them, so that another list has no source read again. A unit
with no withdrawn document has the same digest as before, so nothing that follows from it is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.options import IngestOptions
from schemas.reasons import Column, Filtered
from schemas.units import Unit
from transforms.filters.withdrawals import Withdrawals
from transforms.ingest.fingerprints import (
    IS_READ,
    find_digest,
    fingerprints_digest,
    fingerprints_name,
    read_fingerprints,
    write_fingerprints,
)
from transforms.ingest.input_units import UNMARKED
from transforms.ingest.minhash import copy_signatures, finds_near_duplicates, signatures_name
from transforms.sources.batches import is_equal
from transforms.storage.folder import OutputFolder


def withdraw_rows(rows: pa.RecordBatch, withdrawals: Withdrawals) -> pa.RecordBatch:
    """Return fingerprints in which the kept documents of a list are `filtered[withdrawn]`."""
    passed = is_equal(rows.column("column"), Column.KEPT)
    found = {row: detail for row, detail in withdrawals.find(rows) if passed[row]}
    if not found:
        return rows
    columns: dict[str, list[Any]] = {name: rows.column(name).to_pylist() for name in ("column", "reason", "detail")}
    for row, detail in found.items():
        columns["column"][row], columns["reason"][row] = str(Column.FILTERED), str(Filtered.WITHDRAWN)
        columns["detail"][row] = detail
    arrays = [
        pa.array(columns[name], pa.string()) if name in columns else rows.column(name) for name in rows.schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def fingerprint_marked(
    unit: Unit,
    out: OutputFolder,
    options: IngestOptions,
    withdrawals: Withdrawals,
    make: Callable[[Unit], str],
    *,
    rehash: bool = False,
) -> str:
    """Make the fingerprints of an input unit without what is withdrawn, and return their path relative to OUT.

    Args:
        unit: An input unit that was planned with these withdrawals.
        out: The output folder.
        options: The options of ingest.
        withdrawals: The list.
        make: Makes the fingerprints of a unit without withdrawals, unless they are there.
        rehash: Make them again, whatever is there.
    """
    name = fingerprints_name(unit.key)
    if not rehash and (unit.payload.get(IS_READ) or find_digest(unit, out, options)):
        return name
    payload = {key: value for key, value in unit.payload.items() if key not in (IS_READ, UNMARKED)}
    unmarked = replace(unit, key=unit.payload[UNMARKED], payload=payload)
    with out.open_local(make(unmarked)) as path:
        rows = (withdraw_rows(batch, withdrawals) for batch in read_fingerprints(path))
        unread = int(not find_digest(unmarked, out, options))
        out.publish(name, lambda made: write_fingerprints(made, name, rows, options, lambda: unread)[1])
    if finds_near_duplicates(options):
        _publish_signatures(unit, unmarked, out, options)
    return name


def unmatched_entries(names: Iterable[str], out: OutputFolder, withdrawals: Withdrawals) -> Withdrawals:
    """Return the entries of a list that no withdrawn document has.

    Args:
        names: The fingerprints with withdrawn documents, relative to OUT.
        out: The output folder.
        withdrawals: The list.
    """
    for name in names:
        with out.open_local(name) as path:
            batches = list(map(_withdrawn, read_fingerprints(path)))
        withdrawals = withdrawals.without(pa.Table.from_batches(batches))
    return withdrawals


def _withdrawn(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that are `filtered[withdrawn]`."""
    return rows.filter(pc.equal(rows.column("reason"), pa.scalar(str(Filtered.WITHDRAWN))))


def _publish_signatures(unit: Unit, unmarked: Unit, out: OutputFolder, options: IngestOptions) -> None:
    """Publish the signatures of the documents that are still kept."""
    name = fingerprints_name(unit.key)
    with out.open_local(name) as made, out.open_local(signatures_name(unmarked.key, options)) as source:
        columns = pq.read_table(made, columns=["column"]).column("column")
        kept = np.asarray(pc.equal(columns, pa.scalar(str(Column.KEPT))).to_numpy(), dtype=bool)
        digest = fingerprints_digest(out, name)
        signed = signatures_name(unit.key, options)
        copy = partial(copy_signatures, source, name=signed, kept=kept, digest=digest, options=options)
        out.publish(signed, copy)
