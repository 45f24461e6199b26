"""Drift of a version: its new token shards are counted, by unit, and its totals compared with the version before.

The counts of a shard are units of an engine, as those of a stage. Everything else is sums and merges of files, in one
process, whose size is that of what changed. No byte of the dataset depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from configs import VOCABULARY
from pipelines.stages.gain import LOOKED_AT_BYTES
from pipelines.stages.session import Session
from pipelines.stages.vocabulary import recorded_digest
from pipelines.tokenizers.codec import load_tokenizer
from pipelines.tokenizers.propose import count_words, propose_names
from pipelines.versions.changes import FinishedRun, check_own_record, named_documents
from schemas.errors import ConfigError, IntegrityError
from schemas.options import BuildOptions
from schemas.study_options import DriftOptions
from schemas.units import Stage, UnitReceipt, unit_receipt_path
from tokenizer_build.bands import Strength
from tokenizer_build.compare.diff import read_ids
from tokenizer_build.compare.origins import read_bands
from transforms.drift.names import NewFamily, merge_names
from transforms.drift.new_text import NewText, read_known, read_new_documents, read_new_text
from transforms.drift.parts import (
    DriftSettings,
    add_ids,
    check_parts,
    count_part,
    plan_parts,
    remove_damaged_parts,
    remove_other_parts,
)
from transforms.drift.record import (
    SHOWN,
    Amount,
    IdTotals,
    Vocabulary,
    check_totals,
    died_ids,
    find_alerts,
    find_totals,
    ratio,
    read_drift,
    write_drift,
    write_totals,
)
from transforms.records.trend import find_sums
from transforms.records.versions import DRIFT, Versions, proposals_path
from transforms.storage.folder import CACHE, OutputFolder
from transforms.units.flow import RunUnits

_UNKNOWN = "-"


def count_parts(session: Session, receipt: Mapping[str, Any]) -> None:
    """Count the token shards in OUT that are not counted yet, and forget those that are not in OUT.

    Args:
        session: The session of the run in OUT.
        receipt: The run's receipt.
    """
    units = plan_parts(session.current(Stage.TOKENIZE)) if receipt["dataset"]["shards"] else []
    settings = DriftSettings(
        out=session.out,
        vocab_size=receipt["tokenizer"]["vocab_size"],
        threads=session.config.worker_threads,
        memory_bytes=session.config.memory_bytes,
    )
    remove_damaged_parts(session.out, units)
    run = RunUnits(work=count_part, settings=settings)
    session.run_units(Stage.DRIFT, units, (run,))
    remove_other_parts(session.out, units)


def record_drift(
    versions: Versions,
    changes: Mapping[str, Any],
    before: FinishedRun | None,
    after: FinishedRun,
    options: DriftOptions,
    *,
    threads: int,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Compare a version with the one before, write the record of it, and return that.

    The shards of the version are counted (`count_parts`), and what each project has is recorded (`trend`).

    Args:
        versions: The store.
        changes: What the version changed, with its name and the one of the version before.
        before: The run of the version before; None for the first.
        after: Its run.
        options: What counts as rare, and the thresholds.
        threads: Shards read at once.
        note: Reports to the user that counts of the version before are lost.
    """
    name, previous = changes["version"], changes["previous"]
    vocabulary = _read_vocabulary(after.out)
    base, old, totals, families = _compare_counts(versions, name, previous, before, after, note)
    write_totals(after.out, totals)
    new = proposals = None
    if before is not None:
        known = _read_known(before, after)
        new = _read_new_text(known, before, after, threads=threads)
        proposals = _propose(versions, name, known, before, after)
    is_rare = totals.is_rare(vocabulary, options.rare_per_million)
    record = {
        "version": name,
        "previous": previous,
        "receipt": after.receipt["digest"],
        "tokenizer": after.receipt["tokenizer"]["digest"],
        "reference": {
            "version": totals.reference_version,
            "rare_per_million": options.rare_per_million,
            "rare_ids": int(is_rare.sum()),
        },
        "before": None if before is None else _before(before, old, base, vocabulary, is_rare),
        "after": _amount(after.receipt["dataset"], totals.counts).to_json(vocabulary, is_rare),
        "new": None if new is None else _new_amount(new).to_json(vocabulary, is_rare),
        "projects": None if new is None else _projects(versions, name, previous, new),
        "ids": _ids(vocabulary, old, totals),
        "families": None if base is None else _families(families),
        "proposals": proposals,
    }
    record["alerts"] = list(find_alerts(record, options))
    write_drift(versions, record)
    return record


class _Compared(NamedTuple):
    """The counts of a version, beside those of the version before.

    Attributes:
        base: The record of the version before; None if nothing is compared with its counts.
        old: Its ids, if they are known and of the same tokenizer.
        totals: The ids of the version.
        families: Its new families of names.
    """

    base: dict[str, Any] | None
    old: IdTotals | None
    totals: IdTotals
    families: list[NewFamily]


def _compare_counts(
    versions: Versions,
    name: str,
    previous: str,
    before: FinishedRun | None,
    after: FinishedRun,
    note: Callable[[str], None],
) -> _Compared:
    """Go on from the totals of the version before; if they are lost or damaged, from the counts of all its shards.

    If it was made without drift, or these are lost too, nothing is compared: all of that is in the cache.
    """
    base = None if before is None else read_drift(versions, previous)
    if before is not None and base is not None and base["receipt"] == before.receipt["digest"]:
        with suppress(FileNotFoundError, IntegrityError):
            return _go_on(versions, name, base, before, after)
        note(
            f"{before.out.where(CACHE)}: counts for drift are missing or damaged; of {previous}, only what its receipt "
            f"says is compared, and {name} is the reference from now on"
        )
    totals = _first_totals(name, after)
    merge_names(after.out, None, gained=sorted(after.shards), lost=[])
    return _Compared(base=None, old=None, totals=totals, families=[])


def _go_on(versions: Versions, name: str, base: dict[str, Any], before: FinishedRun, after: FinishedRun) -> _Compared:
    """Return the counts of a version, from what is kept of the version before.

    Raises:
        FileNotFoundError: If something is missing.
        IntegrityError: If something is damaged.
    """
    gained, lost = _differences(before, after)
    check_parts(before.out, lost)
    tokenizer, old, totals = after.receipt["tokenizer"], None, None
    if base["tokenizer"] == tokenizer["digest"]:
        vocab_size = tokenizer["vocab_size"]
        old = find_totals(versions, base, before.receipt)
        counts = old.counts + add_ids(after.out, gained, vocab_size) - add_ids(before.out, lost, vocab_size)
        totals = replace(old, counts=counts)
    try:
        check_totals(before.out)
        families = merge_names(after.out, before.out, gained=gained, lost=lost)
    except (FileNotFoundError, IntegrityError):
        check_parts(before.out, before.shards)
        families = merge_names(after.out, before.out, gained=gained, lost=lost, counted=sorted(before.shards))
    return _Compared(base=base, old=old, totals=totals or _first_totals(name, after), families=families)


def _first_totals(name: str, run: FinishedRun) -> IdTotals:
    """Return the ids of a version that is the first one which is counted with its tokenizer."""
    counts = add_ids(run.out, run.shards, run.receipt["tokenizer"]["vocab_size"])
    return IdTotals(counts=counts, reference=counts, reference_version=name)


def _differences(before: FinishedRun, after: FinishedRun) -> tuple[list[str], list[str]]:
    """Return the SHA-256 of the token shards that a version gained, and of those that it lost."""
    old, new = before.shards, after.shards
    return sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())


def _read_vocabulary(out: OutputFolder) -> Vocabulary:
    with out.open_local_folder("tokenizer") as folder:
        tokenizer = load_tokenizer(folder)
        entries = read_ids(folder, tokenizer).entries
    texts = [tokenizer.token_bytes(entry.id) or b"" for entry in entries]
    return Vocabulary(
        names=[str(entry) for entry in entries],
        num_bytes=np.array([len(text) for text in texts], np.int64),
        is_fixed=np.array([entry.fixed and bool(text) for entry, text in zip(entries, texts, strict=True)]),
        is_learned=np.array([entry.strength is Strength.LEARNED for entry in entries]),
    )


def _read_known(before: FinishedRun, after: FinishedRun) -> pa.Array[Any]:
    """Return the `doc_id`s in token shards that a version lost."""
    _, lost = _differences(before, after)
    return read_known(before.out, named_documents(before, [before.shards[sha256] for sha256 in lost]))


def _read_new_text(known: pa.Array[Any], before: FinishedRun, after: FinishedRun, *, threads: int) -> NewText:
    gained, _ = _differences(before, after)
    shards = [after.shards[sha256] for sha256 in gained]
    vocab_size = after.receipt["tokenizer"]["vocab_size"]
    return read_new_text(after.out, shards, known, vocab_size=vocab_size, threads=threads)


def _propose(
    versions: Versions, name: str, known: pa.Array[Any], before: FinishedRun, after: FinishedRun
) -> dict[str, int] | None:
    """Write what the new text would gain from in a vocabulary, and return how much that is.

    None if the tokenizer was not built from a vocabulary. No id moves: what is proposed is for a later build.
    """
    gained, _ = _differences(before, after)
    configs = after.receipt["configs"]
    pattern = configs["scan"]["pattern"]
    units = {shard["sha256"]: shard["unit"] for shard in after.receipt["dataset"]["shards"]}
    paths = [unit_receipt_path(Stage.TOKENIZE, units[sha256]) for sha256 in gained]
    receipts = [UnitReceipt.from_bytes(after.out.read_receipt_bytes(path), where=path) for path in paths]
    shards = [next(iter(receipt.inputs)) for receipt in receipts]

    def documents() -> Iterator[pa.RecordBatch]:
        return read_new_documents(after.out, shards, known, most_bytes=LOOKED_AT_BYTES)

    with after.out.open_local_folder("tokenizer") as folder:
        if read_bands(folder) is None:
            return None
        proposals, _ = propose_names(
            count_words(documents(), pattern),
            documents,
            tokenizer=load_tokenizer(folder),
            vocab=folder if recorded_digest(after.out) else VOCABULARY,
            pattern=pattern,
            options=BuildOptions(**configs["build"]),
            of_documents=after.receipt["dataset"]["documents"],
        )
    comment = (
        f"# What the new text of {name} would gain from, as `cppmill vocab propose` writes it: for a later build.\n"
    )
    versions.folder.publish_bytes(proposals_path(name), f"{comment}{proposals.to_toml()}".encode())
    return {"names": len(proposals.names), "morphemes": len(proposals.morphemes)}


def _before(
    run: FinishedRun,
    old: IdTotals | None,
    base: Mapping[str, Any] | None,
    vocabulary: Vocabulary,
    is_rare: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Return the amounts of the version before; with another tokenizer, what its own record says."""
    if old is None and base is not None:
        return dict(base["after"])
    return _amount(run.receipt["dataset"], old and old.counts).to_json(vocabulary, is_rare)


def _amount(dataset: Mapping[str, Any], ids: Any) -> Amount:  # noqa: ANN401 - an array, if there is one
    return Amount(documents=dataset["documents"], num_bytes=dataset["bytes"], tokens=dataset["tokens"], ids=ids)


def _new_amount(new: NewText) -> Amount:
    documents, num_bytes, tokens = (
        pc.sum(new.projects[name]).as_py() or 0 for name in ("documents", "num_bytes", "num_tokens")
    )
    return Amount(documents=documents, num_bytes=num_bytes, tokens=tokens, ids=new.ids)


def _projects(versions: Versions, name: str, previous: str, new: NewText) -> dict[str, Any]:
    """Return the projects with new text: how many there are, and the compression of those with most of it."""
    sums = {version: _ratios(find_sums(versions, version)) for version in (previous, name)}
    most = sorted(new.projects.to_pylist(), key=lambda row: (-row["num_bytes"], row["project"]))[:SHOWN]
    named = [
        {
            "project": row["project"],
            "before": sums[previous].get(row["project"]),
            "after": sums[name].get(row["project"]),
            "new": ratio(row["num_bytes"], row["num_tokens"]),
            "bytes": row["num_bytes"],
        }
        for row in most
    ]
    return {"number": new.projects.num_rows, "named": named}


def _ratios(sums: pa.Table | None) -> dict[str, float | None]:
    """Return the bytes per token of each project."""
    rows = () if sums is None else sums.to_pylist()
    return {row["project"]: ratio(row["num_bytes"], row["num_tokens"]) for row in rows}


def _ids(vocabulary: Vocabulary, old: IdTotals | None, totals: IdTotals) -> dict[str, Any]:
    """Return how many learned ids there are and are used, and which died."""
    learned = vocabulary.is_learned
    return {
        "learned": int(learned.sum()),
        "used": {
            "before": old and int((old.counts[learned] > 0).sum()),
            "after": int((totals.counts[learned] > 0).sum()),
        },
        "died": None if old is None else died_ids(vocabulary, old.counts, totals.counts),
    }


def _families(found: list[NewFamily]) -> dict[str, Any]:
    most = sorted(found, key=lambda family: (-family.hits, family.kind, family.name))[:SHOWN]
    return {"number": len(found), "named": [asdict(family) for family in most]}


def print_drift(store: str, *, as_json: bool) -> bool:
    """Print the drift of the current version of a store: lines, or one JSON object; return whether it has alerts.

    Raises:
        ConfigError: If it is not a store, or nothing was recorded of its current version.
        IntegrityError: If the record is not of this format, or of another version.
    """
    versions = Versions(store)
    current = versions.current
    record = None if current is None else read_drift(versions, current)
    if current is None or record is None:
        raise ConfigError(
            f"{store}: no drift of {current or 'any version'} is recorded; `cppmill retokenize` records that of the "
            "versions that it makes, unless --no-drift is given"
        )
    check_own_record(versions, DRIFT, current, record["receipt"])
    for line in [json.dumps(record)] if as_json else [f"{current}: drift", *describe_drift(record)]:
        print(line)
    return bool(record["alerts"])


def describe_drift(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a record: compression and shares, ids that died, new families, alerts."""
    amounts = {kind: record[kind] or {} for kind in ("before", "after", "new")}
    yield f"{'':17} {'before':>15} {'after':>15} {'new text':>15}"
    for label, key, form in (
        ("bytes", "bytes", "{:,}"),
        ("bytes per token", "bytes_per_token", "{:.3f}"),
        ("rare ids", "rare_share", "{:.3%}"),
        ("in fixed tokens", "fixed_bytes_share", "{:.2%}"),
    ):
        values = [amount.get(key) for amount in amounts.values()]
        shown = [_UNKNOWN if value is None else form.format(value) for value in values]
        yield f"{label:17} " + " ".join(f"{text:>15}" for text in shown)
    died, families = record["ids"]["died"], record["families"]
    if died is not None:
        yield _named("ids that died", died, lambda row: row["token"])
    if families is not None:
        yield _named("new families", families, _family)
    if record["proposals"]:
        yield f"{'proposed':17} " + ", ".join(f"{number:,} {kind}" for kind, number in record["proposals"].items())
    yield from (f"drifted           {alert['message']}" for alert in record["alerts"])


def _named(label: str, found: Mapping[str, Any], show: Any) -> str:  # noqa: ANN401 - a function
    names = ", ".join(show(row) for row in found["named"][:5])
    return f"{label:17} {found['number']:,}{f': {names}' if names else ''}"


def _family(row: Mapping[str, Any]) -> str:
    name = f"{row['name']}::" if row["kind"] == "namespace" else f"{row['name']}*"
    return f"{name} ({row['hits']:,} hits in {row['documents']:,} documents)"
