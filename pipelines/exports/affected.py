"""The program of `cppmill affected`: which versions, exports and checkpoints have documents that were withdrawn.

Exports name the receipt that they were made from. What a training consumed follows from the position in its checkpoint,
as `cppmill trace` finds it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from cppmill_core import CoreError
from cppmill_core.positions import read_position

from pipelines.exports.trace import Order, trace
from pipelines.exports.traced_rows import TracedRows
from schemas.errors import ConfigError, CppmillError
from schemas.printing import count
from schemas.units import Stage
from transforms.filters.withdrawals import COLUMNS, Withdrawals
from transforms.records.affected import (
    AFFECTED,
    Holding,
    check_remembered,
    find_holdings,
    known_withdrawals,
    listed_rows,
)
from transforms.records.manifests import MANIFEST, read_intact_manifest
from transforms.records.versions import Versions
from transforms.storage.folder import OutputFolder

YES, NO, UNKNOWN = "affected", "not affected", "not known"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found about a version, an export or a checkpoint.

    Attributes:
        kind: `version`, `export` or `checkpoint`.
        place: Its name or path.
        verdict: `affected`, `not affected` or `not known`.
        detail: A few words for people.
        documents: How many withdrawn documents it has; None if it is not known.
    """

    kind: str
    place: str
    verdict: str
    detail: str
    documents: int | None = None

    @property
    def line(self) -> str:
        """One line for people."""
        return f"{self.verdict:<12}  {self.kind:<10}  {self.place}: {self.detail}"


@dataclass(frozen=True)
class _Dataset:
    """What a training can have read: a version, or sequences and the version behind them."""

    data: str
    run: str | None

    def open(self) -> TracedRows:
        return TracedRows(self.data, self.run)


def find_affected(store: str, places: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding about each version of a store, and each export and checkpoint among some places.

    Args:
        store: The store; its list says what is withdrawn.
        places: Folders of exports, and checkpoints.

    Raises:
        ConfigError: If the store has no list, or a place does not exist.
        IntegrityError: If the list is lost, or names less than is remembered.
    """
    versions = Versions(store)
    withdrawals = known_withdrawals(versions)
    if withdrawals is None:
        check_remembered(versions)
        raise ConfigError(f"{store}: nothing was withdrawn there; `cppmill withdraw` begins a list")
    found = find_holdings(versions, withdrawals)
    holdings = {holding.receipt: holding for holding in found if holding.receipt}
    datasets = [
        _Dataset(versions.out(holding.version).root, None)
        for holding in found
        if holding.is_there and not holding.problem
    ]
    for holding in found:
        yield _of_version(holding)
    known = {versions.building, *(holding.version for holding in found)}
    yield from _of_deleted([name for name in versions.recorded if name not in known])
    exports = [place for place in places if OutputFolder(place).exists(MANIFEST)]
    for place in exports:
        manifest = read_intact_manifest(OutputFolder(place))
        source = holdings.get(manifest["dataset"]["receipt"])
        yield _of_export(place, source)
        if source is not None and source.is_there and not source.problem and manifest["export"] == Stage.SEQUENCES:
            datasets.append(_Dataset(place, versions.out(source.version).root))
    for place in (place for place in places if place not in exports):
        if not Path(place).exists():
            raise ConfigError(f"{place}: no such export or checkpoint")
        yield _of_checkpoint(Path(place), datasets, withdrawals, holdings)


def _of_version(holding: Holding) -> Finding:
    there = "" if holding.is_there else ", deleted from the store"
    return Finding(
        kind="version",
        place=holding.version,
        verdict=_verdict(holding),
        detail=f"{holding.detail}{there}",
        documents=holding.documents,
    )


def _of_deleted(names: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding about versions of which only the records of their changes are left, if there are any."""
    if names:
        detail = (
            f"{count(len(names), 'version')} deleted from the store, and not in {AFFECTED}; only those made after the "
            "last withdrawal are known to have none"
        )
        place = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        yield Finding(kind="version", place=place, verdict=UNKNOWN, detail=detail)


def _of_export(place: str, source: Holding | None) -> Finding:
    if source is None:
        detail = (
            "made from a run that is not a version of this store, or from a version that was deleted before the list "
            "was made"
        )
        return Finding(kind="export", place=place, verdict=UNKNOWN, detail=detail)
    has = source.detail if source.documents is not None else "is damaged or lacks documents"
    detail = f"made from {source.version}, which {'has ' if source.documents is not None else ''}{has}"
    return Finding(kind="export", place=place, verdict=_verdict(source), detail=detail, documents=source.documents)


def _verdict(holding: Holding) -> str:
    if holding.documents is None:
        return UNKNOWN
    return YES if holding.documents else NO


def _of_checkpoint(
    path: Path, datasets: Sequence[_Dataset], withdrawals: Withdrawals, holdings: Mapping[str, Holding]
) -> Finding:
    """Find the dataset that a checkpoint read, and the withdrawn documents that it consumed."""
    try:
        state = read_position(path)
        for dataset in datasets:
            rows = dataset.open()
            if rows.fingerprint == state["dataset"]:
                consumed = _consumed(rows, Order.of_checkpoint(path), withdrawals)
                detail = f"consumed {count(consumed, 'withdrawn document')} of {dataset.data}"
                verdict = YES if consumed else NO
                return Finding(kind="checkpoint", place=str(path), verdict=verdict, detail=detail, documents=consumed)
    except (CoreError, CppmillError, OSError) as error:
        return Finding(kind="checkpoint", place=str(path), verdict=UNKNOWN, detail=str(error))
    source = holdings.get((state.get("source") or {}).get("receipt", ""))
    detail = "it read none of these versions and exports; name its export too"
    if source is not None and not source.is_there:
        detail = (
            f"it read {source.version}, which had {source.detail} and was deleted from "
            "the store; how many of them it consumed is not known any more"
        )
    return Finding(kind="checkpoint", place=str(path), verdict=UNKNOWN, detail=detail)


def _consumed(rows: TracedRows, order: Order, withdrawals: Withdrawals) -> int:
    """Return how many different withdrawn documents a training consumed.

    Sequences know documents by their bytes. So of copies that a run kept, each counts as withdrawn if one is.
    """
    records = trace(rows, order, step=None, epoch=None, until=True, rank=None)
    if rows.manifest is not None:
        listed = {row["doc_id"] for row in listed_rows(rows.run, rows.receipt, withdrawals)}
        return len(listed & {record["doc_id"] for record in records})
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in records:
        document = {name: record[name] for name in COLUMNS}
        found[tuple(document.values())] = document
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    table = pa.Table.from_pylist(list(found.values()), schema=schema)
    return sum(1 for _ in withdrawals.find(table))


def print_affected(store: str, places: Sequence[str], *, as_json: bool) -> None:
    """Print the findings: a line each, or a JSON object per line."""
    for finding in find_affected(store, places):
        print(json.dumps(vars(finding)) if as_json else finding.line)
