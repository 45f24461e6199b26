"""Verify a finished run from its files alone, offline: every byte that the receipt covers is read again.

Each check yields the differences that it finds, as messages that name the file and both values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Any

import cppmill_core
from cppmill_core.platforms import parse_platform_vocab

from schemas.digests import add_digests, same_json
from schemas.errors import CppmillError, IntegrityError
from schemas.ledger import Ledger
from schemas.options import REENCODED, TokenizeOptions
from schemas.units import UNITS, Stage
from transforms.records.contents import ContentCheck, Detect, filters_of, is_repeatable
from transforms.records.exclusion import check_withdrawn
from transforms.records.platforms import PLATFORM_VOCAB, has_own_platforms, platform_vocab_size
from transforms.records.receipts import (
    RECEIPT,
    SIGNATURE,
    control_text,
    corpus_counts,
    find_receipt,
    named_files,
)
from transforms.records.record import MALFORMED, check_files, check_record, malformed
from transforms.records.unit_checks import RunUnits, check_units, read_units
from transforms.storage.folder import OutputFolder
from transforms.tokens.losses import sum_losses
from transforms.tokens.tokenizer import TokenizeSettings
from transforms.tokens.validate import prove_shard

_TOTALS = ("documents", "bytes", "tokens", "max_token_id")


OnShard = Callable[[int, int], None]


def verify_run(
    out: OutputFolder,
    *,
    threads: int,
    reencode: float = REENCODED,
    on_shard: OnShard = lambda done, shards: None,
    detect: Detect | None = None,
) -> list[str]:
    """Return every difference between OUT and its receipt; empty if there is none.

    Args:
        out: The run's folder.
        threads: How many shards are read at the same time.
        reencode: The part of the documents to encode again, 0 to 1.
        on_shard: Called with the number of token shards that are read back and with that of all, from 0 on.
        detect: Finds the platforms that come with cppmill, to find those of the same documents again.
    """
    try:
        receipt = find_receipt(out)
    except IntegrityError as error:
        return [str(error)]
    if receipt is None:
        return [f"{out.where(RECEIPT)}: there is no receipt; the run is unfinished: run it again"]
    try:
        differences = [
            *check_record(out, RECEIPT, receipt),
            *check_files(out, RECEIPT, named_files(receipt), kind="receipt", beside=[SIGNATURE]),
        ]
        if differences:
            return [*_explain_published(out, receipt), *differences]
        units = read_units(out, receipt)
        differences = [
            *_check_policy(out, receipt),
            *_check_tokenizer(out, receipt),
            *_check_platforms(out, receipt),
            *check_units(units),
            *_check_ledger(out, receipt, units),
            *_check_control_text(out, receipt, units),
            *check_withdrawn(out, receipt, sorted(units.documents)),
        ]
        return differences or list(_check_shards(units, threads, reencode, on_shard, detect))
    except IntegrityError as error:
        return [str(error)]
    except MALFORMED as error:
        return [malformed(out, RECEIPT, error, kind="receipt")]


def _explain_published(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[str]:
    """Say what a copy without unit receipts is: `cppmill push` publishes none, and no counts and rejects."""
    is_apart = any(name.startswith(f"{UNITS}/") for name in named_files(receipt))
    if is_apart and not any(out.files(UNITS)):
        yield (
            f"{out.root}: there are no unit receipts, as in what `cppmill push` publishes, which also lacks counts and "
            f"rejects; only the whole OUT can be verified. Compare {RECEIPT} with that of the run that was verified, "
            "and each file with its SHA-256 in it"
        )


def _check_tokenizer(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[str]:
    folder, facts = out.where("tokenizer"), receipt["tokenizer"]
    try:
        with out.open_local_folder("tokenizer") as directory:
            tokenizer = cppmill_core.load_tokenizer(directory)
    except (cppmill_core.CoreError, IntegrityError, OSError) as error:
        yield f"{folder}: {error}"
        return
    for name, found in (("digest", tokenizer.digest), ("vocab_size", tokenizer.vocab_size)):
        if not same_json(found, facts[name]):
            yield f"{folder}: its {name} is {found}, the receipt says {facts[name]}"


def _check_platforms(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[str]:
    """Compare what the receipt says of the platform vocabulary with the file; runs of old have none."""
    if PLATFORM_VOCAB not in receipt["files"] and not has_own_platforms(receipt):
        return
    where, facts = out.where(PLATFORM_VOCAB), receipt["platform_vocab"]
    try:
        data = out.read_bytes(PLATFORM_VOCAB)
        size = parse_platform_vocab(data, where=where).size
    except (cppmill_core.CorruptDataError, OSError) as error:
        yield f"{where}: {error}"
        return
    found = {"digest": sha256(data).hexdigest(), "size": size}
    for name, expected in facts.items():
        if not same_json(found[name], expected):
            yield f"{where}: its {name} is {found[name]}, the receipt says {expected}"


def _check_policy(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[str]:
    """Compare what the receipt says twice: the policy, and the limit of dead documents."""
    options, where = receipt["configs"]["tokenize"], out.where(RECEIPT)
    for name in ("bos", "eos"):
        if not same_json(receipt["policy"][name], options[name]):
            yield f"{where}: its policy has {name} = {receipt['policy'][name]}, its options {options[name]}"
    documents, allowed = receipt["ledger"]["documents"], receipt["configs"]["max_dead_fraction"]
    dead = sum(documents["dead"].values())
    if documents["in"] and dead / documents["in"] > allowed:
        yield f"{where}: {dead} of {documents['in']} documents are dead, its options allow {allowed:.2%}"


def _check_ledger(out: OutputFolder, receipt: dict[str, Any], units: RunUnits) -> Iterator[str]:
    try:
        Ledger.from_json(receipt["ledger"], where=out.where(RECEIPT))
        ledgers = (Ledger.from_json(unit.ledger, where=unit.path) for unit in units.by_stage[Stage.INGEST])
        total = {**Ledger.sum(ledgers).to_json(), **sum_losses(units.by_stage[Stage.VALIDATE])}
    except IntegrityError as error:
        yield str(error)
        return
    if not same_json(total, receipt["ledger"]):
        yield (
            f"{out.where(RECEIPT)}: its ledger is {json.dumps(receipt['ledger'])}, the unit receipts sum to "
            f"{json.dumps(total)}"
        )
    for name, number in corpus_counts(units.by_stage[Stage.INGEST], receipt["configs"]["ingest"]).items():
        said = receipt["corpus"].get(name)
        if not same_json(number, said):
            yield f"{out.where(RECEIPT)}: it says corpus {name} {said}, the unit receipts sum to {number}"


def _check_control_text(out: OutputFolder, receipt: dict[str, Any], units: RunUnits) -> Iterator[str]:
    """Compare the receipt's `control_text` with the unit receipts of the token shards."""
    expected, counted = receipt["policy"]["control_text"], control_text(units.by_stage[Stage.TOKENIZE])
    if not same_json(counted, expected):
        yield (
            f"{out.where(RECEIPT)}: control_text is {json.dumps(expected)}, the unit receipts sum to "
            f"{json.dumps(counted)}"
        )


def _check_shards(
    units: RunUnits, threads: int, reencode: float, on_shard: OnShard, detect: Detect | None
) -> Iterator[str]:
    receipt = units.receipt
    results: list[dict[str, Any] | list[str]] = []
    settings = TokenizeSettings(
        out=units.out,
        tokenizer_digest=receipt["tokenizer"]["digest"],
        options=TokenizeOptions.model_validate(receipt["configs"]["tokenize"]),
        platform_vocab_size=platform_vocab_size(receipt),
    )
    has_published = receipt["configs"]["ingest"]["detect_platforms"] and not has_own_platforms(receipt)
    again = detect if has_published and is_repeatable(receipt) else None
    check = partial(_prove, units=units, settings=settings, reencode=reencode, detect=again)
    shards = receipt["dataset"]["shards"]
    on_shard(0, len(shards))
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for result in pool.map(check, shards):
            results.append(result)
            on_shard(len(results), len(shards))
    failures = [line for result in results if isinstance(result, list) for line in result]
    if failures:
        yield from failures
        return
    yield from _check_sums(units.out, receipt, [result for result in results if isinstance(result, dict)])


def _prove(
    line: dict[str, Any], *, units: RunUnits, settings: TokenizeSettings, reencode: float, detect: Detect | None
) -> dict[str, Any] | list[str]:
    """Return the totals counted from one shard, or what is wrong with it."""
    shard, unit = line["path"], units.tokenize_units[line["unit"]]
    (documents,) = unit.inputs
    ingest, filters = units.receipt["configs"]["ingest"], filters_of(units.receipt)
    contents = ContentCheck(settings=settings, ingest=ingest, reencode=reencode, filters=filters, detect=detect)
    try:
        totals = prove_shard(shard, documents, unit_key=unit.key, settings=settings, digests={})
        wrong = list(contents.check(shard, documents))
    except (CppmillError, cppmill_core.CoreError, OSError) as error:
        return [str(error)]
    counted = {**{name: totals[name] for name in _TOTALS}, "control_text": dict(sorted(contents.control_text.items()))}
    described = [
        (units.out.where(RECEIPT), line, {"rows": totals["documents"], **{name: totals[name] for name in _TOTALS[1:]}}),
        (units.out.where(unit.path), unit.totals, counted),
        (units.out.where(units.proofs[shard].path), units.proofs[shard].totals, totals),
    ]
    for where, said, found in described:
        false = [name for name, value in found.items() if not same_json(said.get(name), value)]
        if false:
            shown = ", ".join(f"{name} {said.get(name)} (counted {found[name]})" for name in false)
            wrong.append(f"{where}: of {shard} it says {shown}")
    return wrong or totals


def _check_sums(out: OutputFolder, receipt: dict[str, Any], totals: list[dict[str, Any]]) -> Iterator[str]:
    dataset, corpus = receipt["dataset"], receipt["corpus"]
    counted: list[tuple[str, Any, Any]] = [
        ("dataset digest", dataset["digest"], add_digests(total["dataset_digest"] for total in totals)),
        ("corpus digest", corpus["digest"], add_digests(total["corpus_digest"] for total in totals)),
        ("corpus documents", corpus["documents"], sum(total["documents"] for total in totals)),
        ("corpus bytes", corpus["bytes"], sum(total["bytes"] for total in totals)),
        ("kept documents", receipt["ledger"]["documents"]["kept"], sum(total["documents"] for total in totals)),
        ("kept bytes", receipt["ledger"]["bytes"]["kept"], sum(total["bytes"] for total in totals)),
        ("max_token_id", dataset["max_token_id"], max((total["max_token_id"] for total in totals), default=0)),
    ]
    counted += [
        (name, dataset[name], sum(total[name] for total in totals)) for name in ("documents", "bytes", "tokens")
    ]
    for name, expected, found in counted:
        if not same_json(expected, found):
            yield f"{out.where(RECEIPT)}: it says {name} {expected}, the shards give {found}"
