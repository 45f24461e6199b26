"""What became of a dataset from one run to the next: documents, tokens, ids, from the two receipts and the shards.

Only token shards that are in one run and not in the other are read, because shards with the same digest are the same.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from schemas.errors import ConfigError, IntegrityError
from schemas.units import RUN_PREFIXES, Stage, UnitReceipt, unit_receipt_path
from tokenizer_build.compare.diff import diff_directories
from transforms.records.receipts import (
    RECEIPT,
    check_named,
    find_altered,
    find_intact_receipt,
    find_options,
    named_files,
)
from transforms.records.versions import CHANGES, CHANGES_FORMAT, Versions
from transforms.storage.folder import OutputFolder

SHOWN = 20
"""How many documents of a kind are named."""

Place = tuple[str, str]
"""Project and path of a document."""

_ROW = ["project", "path", "doc_id"]
_COMPARED = ("corpus", "tokenizer", "ledger", "policy", "platform_vocab")
_ROWS = ("documents/", "tokens/")


class FinishedRun(NamedTuple):
    """The output folder of a run, and its receipt."""

    out: OutputFolder
    receipt: Mapping[str, Any]

    @property
    def shards(self) -> dict[str, str]:
        """The paths of its token shards by their digests."""
        return {shard["sha256"]: shard["path"] for shard in self.receipt["dataset"]["shards"]}


def is_same(before: FinishedRun, after: FinishedRun) -> bool:
    """Return whether two runs made the same files of rows, of the same input, options, list and tokenizer.

    Options count that change nothing yet, as the next version goes on with them. So do columns that the digest of the
    dataset has not, such as licenses.
    """
    return _facts(before.receipt) == _facts(after.receipt)


def _facts(receipt: Mapping[str, Any]) -> list[Any]:
    rows = sorted(sha256 for name, sha256 in named_files(receipt).items() if name.startswith(_ROWS))
    return [receipt["dataset"]["digest"], made_with(receipt), rows, *(receipt[name] for name in _COMPARED)]


def made_with(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run as its receipt would have them today, or as it has them."""
    return find_options(receipt) or dict(receipt["configs"])


def damaged_files(run: FinishedRun) -> list[str]:
    """Return the files of a run that are missing, or not those that its receipt names, and what else is in its folders.

    Links count, too: some readers follow them.
    """
    run.out.load_digests()
    named = named_files(run.receipt)
    present = {*run.out.files(), *run.out.strangers()}
    besides = {name for name in present - named.keys() if name.startswith(RUN_PREFIXES)}
    return sorted({*find_altered(run.out, run.receipt, named), *besides})


def find_changes(before: FinishedRun | None, after: FinishedRun) -> dict[str, Any]:
    """Return, as JSON values, what changed from one run to another.

    Project and path identify a document, which is changed if its bytes are. Takes some hundred bytes of memory
    a document of the shards that differ.

    Args:
        before: The run before; None if there is none.
        after: The run.

    Raises:
        IntegrityError: If a shard of one that the other lacks is not the one that the receipt names.
    """
    return {
        "format": CHANGES_FORMAT,
        "receipt": {"before": before and before.receipt["digest"], "after": after.receipt["digest"]},
        "documents": {**_sums(before, after, "documents"), **_documents(before, after)},
        "bytes": _sums(before, after, "bytes"),
        "tokens": _sums(before, after, "tokens"),
        "shards": _shards(before, after),
        "ids": _ids(before, after),
    }


def read_changes(store: str) -> dict[str, Any]:
    """Return what the current version of a store changed: what `find_changes` returned, and the versions' names.

    Raises:
        ConfigError: If it is not a store, or the version was not made by `cppmill retokenize`.
        IntegrityError: If the record is not of this format, or of another version.
    """
    versions = Versions(store)
    current = versions.current
    if current is None:
        raise ConfigError(f"{store}: no version of a dataset; give the --store of `cppmill retokenize`")
    changes = versions.read_changes(current)
    if changes is None:
        place = versions.folder.where(f"{CHANGES}/{current}.json")
        raise ConfigError(f"{place}: none; {current} was not made by `cppmill retokenize`")
    check_own_record(versions, CHANGES, current, changes["receipt"]["after"])
    return changes


def check_own_record(versions: Versions, folder: str, name: str, digest: str) -> None:
    """Check that a record of a version is not that of the same version of another store.

    Args:
        versions: The store.
        folder: The kind of record, `CHANGES` or `DRIFT`.
        name: The version.
        digest: The digest of its receipt that the record names.

    Raises:
        IntegrityError: If its receipt has another one, or is damaged.
    """
    receipt = find_intact_receipt(versions.out(name))
    if receipt is not None and receipt["digest"] != digest:
        where = versions.folder.where(f"{folder}/{name}.json")
        raise IntegrityError(
            f"{where}: its receipt is {digest}, that of {versions.out(name).where(RECEIPT)} is {receipt['digest']}; "
            "restore the file, or remove it"
        )


def print_changes(store: str, *, as_json: bool) -> None:
    """Print what the current version of a store changed: a table, or one JSON object."""
    changes = read_changes(store)
    if as_json:
        print(json.dumps(changes))
        return
    previous = changes["previous"]
    print(f"{changes['version']}: {f'after {previous}' if previous else 'the first version'}")
    print("\n".join(describe_changes(changes)))


def describe_changes(changes: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table of what `find_changes` returned."""
    yield f"{'':10} {'before':>15} {'after':>15} {'change':>15}"
    for name in ("documents", "bytes", "tokens"):
        before, after = changes[name]["before"], changes[name]["after"]
        yield f"{name:10} {before:>15,} {after:>15,} {after - before:>+15,}"
    documents, shards, ids = changes["documents"], changes["shards"], changes["ids"]
    yield "documents  " + ", ".join(f"{documents[kind]:,} {kind}" for kind in ("added", "removed", "changed", "same"))
    yield f"shards     {shards['written']:,} written, {shards['removed']:,} removed, {shards['kept']:,} the same"
    yield "ids        " + ", ".join(f"{ids[kind]:,} {kind}" for kind in ("kept", "moved", "added", "removed"))
    yield f"tokenizer  {ids['tokenizer']['after']}"


def _sums(before: FinishedRun | None, after: FinishedRun, name: str) -> dict[str, int]:
    return {
        "before": int(before.receipt["dataset"][name]) if before else 0,
        "after": int(after.receipt["dataset"][name]),
    }


def _shards(before: FinishedRun | None, after: FinishedRun) -> dict[str, int]:
    old, new = set(before.shards if before else ()), set(after.shards)
    return {
        "before": len(old),
        "after": len(new),
        "written": len(new - old),
        "kept": len(new & old),
        "removed": len(old - new),
    }


def _documents(before: FinishedRun | None, after: FinishedRun) -> dict[str, Any]:
    """Return how many documents were added, removed, changed and stayed, and the first of each by name."""
    old, new = before.shards if before else {}, after.shards
    gone = Counter(_rows(before, sorted(old[digest] for digest in old.keys() - new.keys()))) if before else Counter()
    come = Counter(_rows(after, sorted(new[digest] for digest in new.keys() - old.keys())))
    removed, added = _by_place(gone - come), _by_place(come - gone)
    changed = {place: min(removed[place], added[place]) for place in removed.keys() & added.keys()}
    kinds: dict[str, Counter[Place]] = {
        "added": Counter(added) - Counter(changed),
        "removed": Counter(removed) - Counter(changed),
        "changed": Counter(changed),
    }
    numbers = {kind: places.total() for kind, places in kinds.items()}
    same = int(after.receipt["dataset"]["documents"]) - numbers["added"] - numbers["changed"]
    named = {
        kind: [{"project": project, "path": path} for project, path in sorted(places)[:SHOWN]]
        for kind, places in kinds.items()
    }
    return {**numbers, "same": same, "named": named}


def _by_place(rows: Counter[tuple[Place, str]]) -> dict[Place, int]:
    places: dict[Place, int] = defaultdict(int)
    for (place, _), number in rows.items():
        places[place] += number
    return places


def _rows(run: FinishedRun, shards: list[str]) -> Iterator[tuple[Place, str]]:
    """Yield place and `doc_id` of the documents of token shards."""
    for name in named_documents(run, shards):
        with run.out.open_ranges(name) as source, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(columns=_ROW):
                projects, paths, digests = (batch.column(name).to_pylist() for name in _ROW)
                yield from zip(zip(projects, paths, strict=True), digests, strict=True)


def named_documents(run: FinishedRun, shards: Sequence[str]) -> list[str]:
    """Return the files that name the documents of token shards: the shard, or that of its documents if it is damaged.

    Raises:
        IntegrityError: If one is missing, or not the one that the receipt names.
    """
    damaged = set(find_altered(run.out, run.receipt, shards))
    found = [_documents_of(run, shard) if shard in damaged else shard for shard in shards]
    advice = "restore it, let `current` name another version, or name another --store"
    check_named(run.out, run.receipt, found, advice=advice)
    return found


def _documents_of(run: FinishedRun, shard: str) -> str:
    """Return the documents shard of a token shard; the token shard itself if nothing says which that was."""
    (entry,) = (entry for entry in run.receipt["dataset"]["shards"] if entry["path"] == shard)
    name = unit_receipt_path(Stage.TOKENIZE, str(entry.get("unit")))
    try:
        unit = UnitReceipt.from_bytes(run.out.read_receipt_bytes(name), where=run.out.where(name))
    except (FileNotFoundError, IntegrityError):
        return shard
    return min(unit.inputs, default=shard) if unit.files == {shard: entry["sha256"]} else shard


def _ids(before: FinishedRun | None, after: FinishedRun) -> dict[str, Any]:
    """Return what became of the ids; they stay if the tokenizer is the same."""
    facts, old = after.receipt["tokenizer"], before.receipt["tokenizer"] if before else None
    if before is None or old is None:
        counts = {"kept": 0, "moved": 0, "added": facts["vocab_size"], "removed": 0}
    elif old["digest"] == facts["digest"]:
        counts = {"kept": facts["vocab_size"], "moved": 0, "added": 0, "removed": 0}
    else:
        counts = _moved(before.out, after.out)
    largest = [run and run.receipt["dataset"]["max_token_id"] for run in (before, after)]
    return {
        "tokenizer": {"before": old and old["digest"], "after": facts["digest"]},
        **counts,
        "largest": {"before": largest[0], "after": largest[1]},
    }


def _moved(old: OutputFolder, new: OutputFolder) -> dict[str, int]:
    with old.open_local_folder("tokenizer") as first, new.open_local_folder("tokenizer") as second:
        return diff_directories(first, second).counts()
