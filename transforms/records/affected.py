"""Which versions of a store hold documents of its list of withdrawn ones; remembered when a version is deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import seal
from schemas.errors import IntegrityError
from schemas.printing import count
from schemas.reasons import Column
from schemas.units import REJECTS_PREFIX
from transforms.filters.withdrawals import WITHDRAWN, Withdrawals, read_columns, withdrawn_in
from transforms.records.in_toto import products
from transforms.records.receipts import RECEIPT, check_named, read_receipt
from transforms.records.record import check_form, read_sealed, reads_record
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
        documents: How many of its documents are in the list; None if they cannot be looked at.
        problem: Why not.
        is_there: Whether it is in the store still.
    """

    version: str
    receipt: str
    dataset: str
    documents: int | None
    problem: str = ""
    is_there: bool = True

    @property
    def detail(self) -> str:
        """How many withdrawn documents it has, in words."""
        return (
            count(self.documents, "withdrawn document") if self.documents is not None else f"not known: {self.problem}"
        )

    @property
    def line(self) -> str:
        """One line for people."""
        gone = "" if self.is_there else " (deleted from the store)"
        return f"{self.version}: {self.detail}{gone}, dataset {self.dataset}"


def known_withdrawals(versions: Versions) -> Withdrawals | None:
    """Return what was withdrawn from a store: its list, and those of its versions, as no entry is ever taken back.

    Raises:
        IntegrityError: If the list of the store is none, or lacks what that of a version has, or if what is remembered
            of versions is no such record: nothing may be written then.
    """
    read_affected(versions)
    lists = list[tuple[OutputFolder, Withdrawals | None]]()
    for out in map(versions.out, versions.names):
        with suppress(IntegrityError):  # `verify` says so of the version
            lists.append((out, withdrawn_in(out)))
    kept = withdrawn_in(versions.folder)  # read last: it has every entry before a version does
    for out, own in lists:
        if difference := find_lost_entries(versions, kept, out, own):
            raise IntegrityError(difference)
    found = [withdrawals for withdrawals in (kept, *(own for _, own in lists)) if withdrawals is not None]
    return reduce(or_, found) if found else None


def find_lost_entries(
    versions: Versions, kept: Withdrawals | None, out: OutputFolder, own: Withdrawals | None
) -> str | None:
    """Return what is wrong if the list of a store lacks what that of a version has: entries are only added.

    Args:
        versions: The store.
        kept: Its list; None if it has none.
        out: The version.
        own: The list of that.
    """
    if kept is None or own is None or own | kept == kept:
        return None
    return (
        f"{versions.folder.where(WITHDRAWN)}: it lacks what {out.where(WITHDRAWN)} names, though entries are only "
        "added; restore the one that was changed (if that of the store is missing, those of its versions are used)"
    )


def check_remembered(versions: Versions, *lists: Withdrawals | None) -> None:
    """Check that lists together name as many documents of each version as are remembered: entries are only added.

    Raises:
        IntegrityError: If they name fewer, or if what is remembered is no such record.
    """
    if read_affected(versions):
        find_holdings(versions, reduce(or_, filter(None, lists), Withdrawals()))


def check_own_list(out: OutputFolder, receipt: Mapping[str, Any]) -> None:
    """Check that the list of a version is the one that its receipt names: without it, documents could come back.

    Raises:
        IntegrityError: If it is missing, or another one.
    """
    said, found = receipt["configs"]["ingest"].get("withdrawn"), withdrawn_in(out)
    if said != (None if found is None else found.option):
        raise IntegrityError(
            f"{out.where(WITHDRAWN)}: missing, or not the list {said} that the receipt names; restore it, as documents "
            "that were withdrawn could come back"
        )


def listed_rows(out: OutputFolder, receipt: dict[str, Any], withdrawals: Withdrawals) -> Iterator[dict[str, Any]]:
    """Yield doc_id, project, path and license of the documents of a run, by its receipt, that a list has."""
    for rows in _documents(out, receipt):
        yield from rows.take(pa.array([row for row, _ in withdrawals.find(rows)], pa.int64())).to_pylist()


def unmatched(out: OutputFolder, withdrawals: Withdrawals) -> Withdrawals:
    """Return the entries of a list that no document of a run has."""
    for rows in _documents(out, read_receipt(out)):
        withdrawals = withdrawals.without(rows)
    return withdrawals


def listed_doc_ids(out: OutputFolder, withdrawals: Withdrawals) -> set[str]:
    """Return the doc_ids of what a list has in a run, also where only a copy of it is kept.

    Raises:
        IntegrityError: If documents or rejects are missing, or not those that the receipt names.
    """
    receipt = read_receipt(out)
    found = {row["doc_id"] for row in listed_rows(out, receipt, withdrawals)}
    names = sorted(name for name in receipt["files"] if name.startswith(REJECTS_PREFIX))
    check_named(out, receipt, names)
    for name in names:
        with out.open_ranges(name) as file:
            rows = pq.read_table(file, use_threads=False)
        copies = [row for row in rows.to_pylist() if row["column"] == Column.DUPLICATE]
        table = rows.from_pylist([{**row, "doc_id": row["detail"], "license": None} for row in copies])
        found |= {copies[row]["detail"] for row, _ in withdrawals.find(table)} if copies else set()
    return found


def _documents(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[pa.Table]:
    """Yield what names the documents of a run, a table per shard.

    Raises:
        IntegrityError: If a shard is missing, or not the one that the receipt names: it may lack documents.
    """
    names = products(receipt, "documents")
    check_named(out, receipt, names)
    for name in names:
        yield read_columns(out, name)


def find_holdings(versions: Versions, withdrawals: Withdrawals) -> list[Holding]:
    """Return every version with the number of its withdrawn documents, and those that are remembered.

    The version that is being built is left out: it obeys the list.

    Raises:
        IntegrityError: If what is remembered is no such record, or the list names fewer documents of a version than are
            remembered, although entries are only added.
    """
    remembered, found = read_affected(versions), list[Holding]()
    for name in versions.names:
        out = versions.out(name)
        if out.exists(RECEIPT):
            found.append(_hold(out, name, withdrawals))
        elif name != versions.building:
            problem = f"{out.where(RECEIPT)}: there is none, so it may hold any documents"
            found.append(Holding(version=name, receipt="", dataset="", documents=None, problem=problem))
    found = [_as_remembered(holding, remembered) if holding.documents is None else holding for holding in found]
    before = {(holding.receipt, holding.version): holding.documents or 0 for holding in remembered}
    for holding in found:
        known = before.get((holding.receipt, holding.version), 0)
        if holding.documents is not None and holding.documents < known:
            raise IntegrityError(
                f"{versions.folder.where(WITHDRAWN)}: it names {holding.documents} documents of {holding.version}, "
                f"and {AFFECTED} remembers {known}; entries were lost, so restore the list"
            )
    there = {(holding.receipt, holding.version) for holding in found}
    gone = (holding for holding in remembered if (holding.receipt, holding.version) not in there)
    return sorted([*found, *gone], key=lambda holding: holding.version)


def _as_remembered(holding: Holding, remembered: Sequence[Holding]) -> Holding:
    """Return what is remembered of a version that cannot be looked at, if one version of its name is remembered."""
    named = [before for before in remembered if before.version == holding.version]
    known = [before for before in named if before.receipt == holding.receipt] or named
    return replace(known[0], is_there=True, problem=holding.problem) if len(known) == 1 else holding


def _hold(out: OutputFolder, name: str, withdrawals: Withdrawals) -> Holding:
    """Return a finished version with the number of its withdrawn documents, or why it is not known."""
    documents, problem, receipt = None, "", dict[str, Any]()
    try:
        receipt = read_receipt(out)
        documents = sum(1 for _ in listed_rows(out, receipt, withdrawals))
    except IntegrityError as error:
        problem = str(error)
    dataset = receipt.get("dataset", {"digest": ""})["digest"]
    return Holding(
        version=name, receipt=receipt.get("digest", ""), dataset=dataset, documents=documents, problem=problem
    )


def record_affected(versions: Versions, withdrawals: Withdrawals) -> list[Holding]:
    """Find which versions hold withdrawn documents, remember it, and return it; only for the holder of the lock."""
    holdings = find_holdings(versions, withdrawals)
    datasets = {
        holding.receipt: {"version": holding.version, "dataset": holding.dataset, "documents": holding.documents}
        for holding in holdings
        if holding.documents
    }
    if datasets:
        versions.folder.publish_bytes(AFFECTED, seal({"format": AFFECTED_FORMAT, "datasets": datasets}))
    return holdings


def read_affected(versions: Versions) -> list[Holding]:
    """Return what is remembered of versions that hold withdrawn documents, whether they are in the store or not.

    Raises:
        IntegrityError: If it is no such record, or was changed; those of earlier versions have no digest.
    """
    advice = "remove it: only what it says of deleted versions is lost"
    known = read_sealed(versions.folder, AFFECTED, kind="record", record_format=AFFECTED_FORMAT, advice=advice)
    if known is None:
        return []
    with reads_record(versions.folder.where(AFFECTED), kind="record", advice=advice):
        check_form(known, {"datasets": {"": {"version": str, "dataset": str, "documents": int}}})
        if any(facts["documents"] < 1 for facts in known["datasets"].values()):
            raise ValueError("a version without documents")
        return [Holding(receipt=digest, is_there=False, **facts) for digest, facts in known["datasets"].items()]
