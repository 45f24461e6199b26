"""Whether the records of a store say of a version what its receipt says: changes, trend and drift.

What changed from one version to the next is found again while both are there. No file contradicts the rest: what came
before a version that was removed, projects that came and went, and the figures of drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pipelines.versions.changes import FinishedRun, find_changes
from schemas.digests import same_json
from transforms.drift.record import DRIFT_FORMAT
from transforms.records.receipts import RECEIPT, find_receipt
from transforms.records.record import MALFORMED, malformed
from transforms.records.trend import TREND_FORMAT, find_sums
from transforms.records.versions import CHANGES, CHANGES_FORMAT, DRIFT, TREND, Versions, store_of
from transforms.storage.folder import OutputFolder
from transforms.tokens.project_sums import read_project_sums

_TOTALS = ("documents", "bytes", "tokens")

_SAID: dict[str, tuple[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    CHANGES: (
        CHANGES_FORMAT,
        lambda record: {
            "receipt": record["receipt"]["after"],
            "tokenizer": record["ids"]["tokenizer"]["after"],
            **{name: record[name]["after"] for name in _TOTALS},
        },
    ),
    TREND: (
        TREND_FORMAT,
        lambda record: {name: record[name] for name in ("receipt", "tokenizer", "ledger", *_TOTALS)},
    ),
    DRIFT: (
        DRIFT_FORMAT,
        lambda record: {
            **{name: record[name] for name in ("receipt", "tokenizer")},
            **{name: record["after"][name] for name in _TOTALS},
        },
    ),
}
"""The format of each kind of record, and what it says of its version that the version's receipt says too."""


def check_records(out: OutputFolder, receipt: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the records of a store say of a version that its receipt and its shards deny.

    Args:
        out: The folder of a run; of one that is not in a store there are no records.
        receipt: Its receipt.
    """
    store = store_of(out.root)
    if store is None:
        return
    versions, name = Versions(store), out.root.rpartition("/")[2]
    facts = {"receipt": receipt["digest"], "tokenizer": receipt["tokenizer"]["digest"], "ledger": receipt["ledger"]}
    facts |= {total: receipt["dataset"][total] for total in _TOTALS}
    for folder, (record_format, read) in _SAID.items():
        record = versions.read(folder, name, record_format)
        if record is None:
            continue
        try:
            said = read(record)
        except MALFORMED as error:
            yield malformed(versions.folder, f"{folder}/{name}.json", error, kind="record")
            continue
        for key, value in said.items():
            if not same_json(value, facts[key]):
                where = versions.folder.where(f"{folder}/{name}.json")
                yield f"{where}: its {key} is {value}, that of {out.where(RECEIPT)} is {facts[key]}"
    yield from _check_changes(versions, name, FinishedRun(out, receipt))
    sums = find_sums(versions, name)
    if sums is not None and sums != read_project_sums(out, [shard["path"] for shard in receipt["dataset"]["shards"]]):
        yield f"{versions.folder.where(f'{TREND}/{name}.parquet')}: not the sums of the projects of {out.root}"


def _check_changes(versions: Versions, name: str, after: FinishedRun) -> Iterator[str]:
    """Find again what a version changed, if the one before is there or there was none."""
    record = versions.read(CHANGES, name, CHANGES_FORMAT)
    if record is None:
        return
    previous, before = record["previous"], None
    if previous is not None:
        old = versions.out(str(previous))
        known = find_receipt(old)
        if known is None:
            return
        before = FinishedRun(old, known)
    again = find_changes(before, after)
    where = versions.folder.where(f"{CHANGES}/{name}.json")
    for key, value in {**again, "version": name, "previous": previous}.items():
        if not same_json(record.get(key), value):
            yield f"{where}: its {key} are {record.get(key)}, the two versions give {value}"
