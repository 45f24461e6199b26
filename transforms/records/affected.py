"""Which versions of a store hold documents of its list of withdrawn ones; remembered when a version is deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import canonical_json
from schemas.printing import count
from schemas.reasons import Column
from schemas.units import DOCUMENTS_PREFIX, REJECTS_PREFIX
from transforms.filters.withdrawals import Withdrawals, read_columns
from transforms.records.receipts import RECEIPT, read_receipt
from transforms.records.record import read_record
from transforms.records.versions import Versions
from transforms.storage.folder import OutputFolder

AFFECTED = "affected.json"
"""What is remembered, in the store: versions by the digest of their receipt, no names."""

AFFECTED_FORMAT = "cppmill-affected-1"


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A version, and how many documents of it are withdrawn.

    Attributes:
        version: Its name.
        receipt: The digest of its receipt.
        dataset: The digest of its dataset.
        documents: How many of its documents are in the list.
        is_there: Whether it is in the store still.
    """

    version: str
    receipt: str
    dataset: str
    documents: int
    is_there: bool = True

    @property
    def line(self) -> str:
        """One line for people."""
        gone = "" if self.is_there else " (deleted from the store)"
        return f"{self.version}: {count(self.documents, 'withdrawn document')}{gone}, dataset {self.dataset}"


def listed_rows(out: OutputFolder, withdrawals: Withdrawals) -> Iterator[dict[str, Any]]:
    """Yield doc_id, project, path and license of the documents of a run that a list has."""
    for rows in _documents(out):
        yield from rows.take(pa.array([row for row, _ in withdrawals.find(rows)], pa.int64())).to_pylist()


def unmatched(out: OutputFolder, withdrawals: Withdrawals) -> Withdrawals:
    """Return the entries of a list that no document of a run has."""
    for rows in _documents(out):
        withdrawals = withdrawals.without(rows)
    return withdrawals


def listed_doc_ids(out: OutputFolder, withdrawals: Withdrawals) -> set[str]:
    """Return the doc_ids of what a list has in a run, also where only a copy of it is kept."""
    found = {row["doc_id"] for row in listed_rows(out, withdrawals)}
    for name in (name for name in out.files("documents") if name.startswith(REJECTS_PREFIX)):
        with out.open_ranges(name) as file:
            rows = pq.read_table(file, use_threads=False)
        copies = [row for row in rows.to_pylist() if row["column"] == Column.DUPLICATE]
        table = rows.from_pylist([{**row, "doc_id": row["detail"], "license": None} for row in copies])
        found |= {copies[row]["detail"] for row, _ in withdrawals.find(table)} if copies else set()
    return found


def _documents(out: OutputFolder) -> Iterator[pa.Table]:
    """Yield what names the documents of a run, a table per shard."""
    for name in out.files("documents"):
        if name.startswith(DOCUMENTS_PREFIX):
            yield read_columns(out, name)


def find_holdings(versions: Versions, withdrawals: Withdrawals) -> list[Holding]:
    """Return every finished version with the number of its withdrawn documents, and those that are remembered."""
    found = {}
    for name in versions.names:
        out = versions.out(name)
        if out.exists(RECEIPT):
            receipt = read_receipt(out)
            documents = sum(1 for _ in listed_rows(out, withdrawals))
            found[receipt["digest"]] = Holding(
                version=name, receipt=receipt["digest"], dataset=receipt["dataset"]["digest"], documents=documents
            )
    gone = {
        digest: Holding(receipt=digest, is_there=False, **facts)
        for digest, facts in _remembered(versions).items()
        if digest not in found
    }
    return sorted([*found.values(), *gone.values()], key=lambda holding: holding.version)


def record_affected(versions: Versions, withdrawals: Withdrawals) -> list[Holding]:
    """Find which versions hold withdrawn documents, remember it, and return it; only for the holder of the lock."""
    holdings = find_holdings(versions, withdrawals)
    datasets = {
        holding.receipt: {"version": holding.version, "dataset": holding.dataset, "documents": holding.documents}
        for holding in holdings
        if holding.documents
    }
    if datasets:
        versions.folder.publish_bytes(AFFECTED, canonical_json({"format": AFFECTED_FORMAT, "datasets": datasets}))
    return holdings


def _remembered(versions: Versions) -> Mapping[str, dict[str, Any]]:
    advice = "remove it: only what it says of deleted versions is lost"
    known = read_record(versions.folder, AFFECTED, kind="record", record_format=AFFECTED_FORMAT, advice=advice)
    datasets: Mapping[str, dict[str, Any]] = {} if known is None else known["datasets"]
    return datasets
