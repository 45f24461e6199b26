"""Verify a finished run from its files alone, offline: every byte that the receipt covers is read again.

Each check yields the differences that it finds, as messages that name the file and both values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import cppmill_core
from cppmill_core.platforms import parse_platform_vocab

from schemas.digests import differing_keys, same_json
from schemas.errors import IntegrityError
from schemas.ledger import Ledger
from schemas.resources import raise_own_limit
from schemas.units import UNITS, Stage
from transforms.records.exclusion import check_withdrawn
from transforms.records.platforms import PLATFORM_VOCAB, has_own_platforms
from transforms.records.receipts import (
    RECEIPT,
    SIGNATURE,
    control_text,
    corpus_counts,
    find_contradictions,
    find_receipt,
    named_files,
    said_counts,
)
from transforms.records.record import MALFORMED, check_files, check_record, malformed
from transforms.records.checks.shard_proofs import Claim, Reading, prove_shards
from transforms.records.checks.unit_checks import RunUnits, check_units, read_units
from transforms.storage.folder import OutputFolder
from transforms.tokens.losses import sum_losses


def verify_run(out: OutputFolder, reading: Reading) -> list[str]:
    """Return every difference between OUT and its receipt; empty if there is none.

    Args:
        out: The run's folder.
        reading: How shards are read again.
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
            *check_facts(out, receipt),
            *check_units(units),
            *_check_ledger(out, receipt, units),
            *_check_control_text(out, receipt, units),
            *check_withdrawn(out, receipt, sorted(units.documents)),
        ]
        return differences or list(prove_shards(out, receipt, _claims(units), reading))
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
            f"rejects; `cppmill verify {out.root} --published` checks what such a copy has"
        )


def check_facts(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[str]:
    """Yield what the receipt says of itself, of policy, tokenizer and platforms that they are not."""
    yield from (f"{out.where(RECEIPT)}: {problem}" for problem in find_contradictions(receipt))
    yield from _check_dead(out, receipt)
    yield from _check_tokenizer(out, receipt)
    yield from _check_platforms(out, receipt)


def _check_tokenizer(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[str]:
    folder, facts = out.where("tokenizer"), receipt["tokenizer"]
    try:
        with out.open_local_folder("tokenizer") as directory:
            tokenizer = cppmill_core.load_tokenizer(directory)
    except (cppmill_core.CoreError, IntegrityError, OSError) as error:
        raise_own_limit(error)
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
        raise_own_limit(error)
        yield f"{where}: {error}"
        return
    found = {"digest": sha256(data).hexdigest(), "size": size}
    for name, expected in facts.items():
        if not same_json(found[name], expected):
            yield f"{where}: its {name} is {found[name]}, the receipt says {expected}"


def _check_dead(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[str]:
    """Compare the dead documents with their limit."""
    where = out.where(RECEIPT)
    documents, allowed = receipt["ledger"]["documents"], receipt["configs"]["max_dead_fraction"]
    dead = sum(documents["dead"].values())
    if documents["in"] and dead / documents["in"] > allowed:
        yield f"{where}: {dead} of {documents['in']} documents are dead, its options allow {allowed:.2%}"


def _check_ledger(out: OutputFolder, receipt: dict[str, Any], units: RunUnits) -> Iterator[str]:
    try:
        Ledger.from_json(receipt["ledger"], where=out.where(RECEIPT))
        ledgers = (Ledger.from_json(unit.ledger, where=unit.path) for unit in units.by_stage[Stage.INGEST])
        total = {**Ledger.sum(ledgers).to_json(), **sum_losses(unit.totals for unit in units.by_stage[Stage.VALIDATE])}
    except IntegrityError as error:
        yield str(error)
        return
    if not same_json(total, receipt["ledger"]):
        yield (
            f"{out.where(RECEIPT)}: its ledger is {json.dumps(receipt['ledger'])}, the unit receipts sum to "
            f"{json.dumps(total)}"
        )
    counts, said = corpus_counts(units.by_stage[Stage.INGEST], receipt["configs"]["ingest"]), said_counts(receipt)
    for name in differing_keys(counts, said):
        yield f"{out.where(RECEIPT)}: it says corpus {name} {said.get(name)}, the unit receipts sum to {counts.get(name)}"


def _check_control_text(out: OutputFolder, receipt: dict[str, Any], units: RunUnits) -> Iterator[str]:
    """Compare the receipt's `control_text` with the unit receipts of the token shards."""
    expected, counted = receipt["policy"]["control_text"], control_text(units.by_stage[Stage.TOKENIZE])
    if not same_json(counted, expected):
        yield (
            f"{out.where(RECEIPT)}: control_text is {json.dumps(expected)}, the unit receipts sum to "
            f"{json.dumps(counted)}"
        )


def _claims(units: RunUnits) -> list[Claim]:
    """Return what receipt, unit receipts and proofs say of each token shard."""
    claims = []
    for line in units.receipt["dataset"]["shards"]:
        unit, proof = units.tokenize_units[line["unit"]], units.proofs[line["path"]]
        (documents,) = unit.inputs
        said = {"totals": (unit.path, unit.totals), "proof": (proof.path, proof.totals)}
        claims.append(Claim(line=line, documents=documents, **said))
    return claims
