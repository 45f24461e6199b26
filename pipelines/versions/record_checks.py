"""Whether the records of a store say of a version what its receipt says, and agree: changes, trend and drift.

What changed from one version to the next is found again while both are there; which projects came and went, while both
have sums. No file contradicts the rest: what came before a version that was removed, and the figures of drift.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.versions.changes import FinishedRun, find_changes
from pipelines.versions.trend import compare_projects
from schemas.digests import same_json
from schemas.errors import IntegrityError
from schemas.places import is_remote
from schemas.tables import PROJECT_SUMS, is_annotated
from transforms.drift.record import DRIFT_FORM, DRIFT_FORMAT
from transforms.filters.withdrawals import withdrawn_in
from transforms.records.affected import check_remembered, find_lost_entries
from transforms.records.receipts import RECEIPT, find_intact_receipt
from transforms.records.trend import SUMS, TREND_FORM, TREND_FORMAT, find_sums, is_other_tokenizer
from transforms.records.versions import (
    CHANGES,
    CHANGES_FORM,
    CHANGES_FORMAT,
    DRIFT,
    TREND,
    Versions,
    is_before,
    store_of,
)
from transforms.storage.folder import OutputFolder, naming_damage
from transforms.storage.footers import check_footer
from transforms.tokens.project_sums import read_project_sums

_TOTALS = ("documents", "bytes", "tokens")
_PRESENT = ("added", "changed", "same")
"""Which of the documents of a record of changes are in its version."""

_SAID: dict[str, tuple[str, Mapping[str, Any], Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    CHANGES: (
        CHANGES_FORMAT,
        CHANGES_FORM,
        lambda record: {
            "receipt": record["receipt"]["after"],
            "tokenizer": record["ids"]["tokenizer"]["after"],
            "shards": record["shards"]["after"],
            "largest id": record["ids"]["largest"]["after"],
            "documents added, changed and the same": sum(record["documents"][kind] for kind in _PRESENT),
            **{name: record[name]["after"] for name in _TOTALS},
        },
    ),
    TREND: (
        TREND_FORMAT,
        TREND_FORM,
        lambda record: {name: record[name] for name in ("receipt", "tokenizer", "ledger", *_TOTALS)},
    ),
    DRIFT: (
        DRIFT_FORMAT,
        DRIFT_FORM,
        lambda record: {
            **{name: record[name] for name in ("receipt", "tokenizer")},
            **{name: record["after"][name] for name in _TOTALS},
        },
    ),
}
"""The format and form of each kind of record, and what it says of its version that the version's receipt says too."""

_KEYS: dict[str, set[str]] = {
    CHANGES: {"format", "version", "previous", "receipt", "documents", "bytes", "tokens", "shards", "ids"},
    TREND: {"format", "version", "previous", "time", "receipt", "documents", "bytes", "tokens", "tokenizer"}
    | {"is_other_tokenizer", "ledger", "projects", SUMS},
    DRIFT: {"format", "version", "previous", "receipt", "tokenizer", "reference", "before", "after", "new", "projects"}
    | {"ids", "families", "proposals", "alerts"},
}
"""The keys of each kind of record, besides its digest."""


def check_records(out: OutputFolder, receipt: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the records of a store say of a version that its receipt and its shards deny.

    Args:
        out: The folder of a run; of one that is not in a store there are no records.
        receipt: Its receipt.
    """
    place = out.root if is_remote(out.root) else os.path.realpath(out.root)  # `current` is a link
    store = store_of(place)
    if store is None:
        return
    versions, name = Versions(store), place.rpartition("/")[2]
    facts = {"receipt": receipt["digest"], "tokenizer": receipt["tokenizer"]["digest"], "ledger": receipt["ledger"]}
    facts |= {total: receipt["dataset"][total] for total in _TOTALS}
    run = FinishedRun(out, receipt)
    facts |= {"shards": len(run.shards), "largest id": receipt["dataset"]["max_token_id"]}
    facts |= {"documents added, changed and the same": receipt["dataset"]["documents"]}
    records: dict[str, Mapping[str, Any]] = {}
    for folder in _SAID:
        named = (stranger for stranger in versions.folder.strangers(folder) if stranger.startswith(f"{folder}/{name}."))
        yield from (f"{versions.folder.where(stranger)}: not a file but a link or the like" for stranger in named)
    for folder, (record_format, form, read) in _SAID.items():
        record = versions.read(folder, name, record_format, form)
        if record is None:
            continue
        records[folder] = record
        if unknown := sorted(record.keys() - _KEYS[folder]):
            yield f"{versions.folder.where(f'{folder}/{name}.json')}: it has the key {unknown[0]!r}"
        for key, value in read(record).items():
            if not same_json(value, facts[key]):
                where = versions.folder.where(f"{folder}/{name}.json")
                yield f"{where}: its {key} is {value}, that of {out.where(RECEIPT)} is {facts[key]}"
    kept, own = withdrawn_in(versions.folder), withdrawn_in(out)
    if difference := find_lost_entries(versions, kept, out, own):
        yield difference
    check_remembered(versions, kept, own)  # raises what is wrong
    yield from _check_previous(versions, name, records)
    if CHANGES in records:
        yield from _check_changes(versions, name, records[CHANGES], run)
    sums = find_sums(versions, name)
    if sums is None:
        return
    yield from _check_projects(versions, name, records.get(TREND, {}), sums)
    yield from _check_columns(versions, name)
    if sums != read_project_sums(out, [shard["path"] for shard in receipt["dataset"]["shards"]]):
        yield f"{versions.folder.where(f'{TREND}/{name}.parquet')}: not the sums of the projects of {out.root}"


def check_current(versions: Versions, name: str, receipt: Mapping[str, Any]) -> None:
    """Check, before a version follows the current one, that the store's records of that are of its receipt.

    Raises:
        IntegrityError: If one is of another receipt, or is no such record: ids would follow those of another store.
    """
    for folder, (record_format, form, read) in _SAID.items():
        record = versions.read(folder, name, record_format, form)
        said = None if record is None else read(record)["receipt"]
        if said not in (None, receipt["digest"]):
            raise IntegrityError(
                f"{versions.folder.where(f'{folder}/{name}.json')}: its receipt is {said}, that of "
                f"{versions.out(name).where(RECEIPT)} is {receipt['digest']}; restore the one that is not of this "
                "store, remove the record if that is it, or let `current` name another version"
            )


def _check_columns(versions: Versions, name: str) -> Iterator[str]:
    """Check that the sums of projects have the columns that are read, and no others, and that their footer is true."""
    path = f"{TREND}/{name}.parquet"
    where = versions.folder.where(path)
    with versions.folder.open_local(path) as file, naming_damage(where), pq.ParquetFile(file) as table:
        found, footer = table.schema_arrow, table.metadata.metadata or {}
        if found.names != PROJECT_SUMS.names:
            yield f"{where}: its columns are {', '.join(found.names)}"
        elif not found.equals(PROJECT_SUMS) or is_annotated(found) or footer.keys() - {b"ARROW:schema"}:
            yield f"{where}: its columns are of other types, or its footer has other keys than a run writes"
        yield from check_footer(file, table, where)


def _check_previous(versions: Versions, name: str, records: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Check that the version before is an earlier one, the same in each record, and where the tokenizer changed."""
    changes = records.get(CHANGES)
    for folder, record in records.items():
        where, previous = versions.folder.where(f"{folder}/{name}.json"), record.get("previous")
        if previous is not None and not is_before(previous, name):
            yield f"{where}: its previous is {previous!r}, which is no version before {name}"
        elif changes is not None and previous != changes["previous"] and (folder != TREND or previous is not None):
            yield f"{where}: its previous is {previous!r}, the record of changes says {changes['previous']!r}"
    trend = records.get(TREND)
    if trend is not None and changes is not None and trend.get("previous") == changes["previous"]:
        said, found = trend.get("is_other_tokenizer"), is_other_tokenizer(changes)
        if not same_json(said, found):
            where = versions.folder.where(f"{TREND}/{name}.json")
            yield f"{where}: its is_other_tokenizer is {said}, the record of changes gives {found}"


def _check_projects(versions: Versions, name: str, trend: Mapping[str, Any], sums: pa.Table) -> Iterator[str]:
    """Compare which projects a version has, and which came and went, with the sums of it and of the one before."""
    projects, previous = trend.get("projects"), trend.get("previous")
    if projects is None:
        return
    before = find_sums(versions, str(previous)) if is_before(previous, name) else None
    for key, value in compare_projects(before, sums).items():
        said, is_known = projects.get(key), key == "number" or before is not None or previous is None
        if is_known and (said is not None or key == "number") and not same_json(said, value):
            where = versions.folder.where(f"{TREND}/{name}.json")
            yield f"{where}: of projects its {key} is {said}, the sums give {value}"


def _check_changes(versions: Versions, name: str, record: Mapping[str, Any], after: FinishedRun) -> Iterator[str]:
    """Find again what a version changed, if the one before is there or there was none."""
    previous, before = record["previous"], None
    if previous is not None:
        old = versions.out(str(previous))
        known = find_intact_receipt(old, advice="restore it, or remove that version, which no later one needs")
        if known is None:
            return
        before = FinishedRun(old, known)
    again = find_changes(before, after)
    where = versions.folder.where(f"{CHANGES}/{name}.json")
    for key, value in {**again, "version": name, "previous": previous}.items():
        if not same_json(record.get(key), value):
            yield f"{where}: its {key} are {record.get(key)}, the two versions give {value}"
