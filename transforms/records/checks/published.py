"""Verify a published copy of a run: what `cppmill push` publishes, without unit receipts, counts and rejects.

The receipt names every file of the run, so what is there is checked as in the whole run: digests, the tokenizer, the
rows of every shard against the documents, and the sums. What only the other files show cannot be looked at: why
documents were left out, what the tokenizer was made from, and that keys bind all of it to the options.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from cppmill_core.manifests import parse_unique_json

from schemas.digests import differing_keys, same_json
from schemas.errors import IntegrityError
from schemas.ledger import Ledger
from schemas.options import FILE_DIGEST
from schemas.units import RUN_STAGES, Stage
from transforms.filters.kept_counts import added_columns, count_kept, sum_counts
from transforms.filters.withdrawals import WITHDRAWN
from transforms.records.croissant import CROISSANT, Publication, make_croissant
from transforms.records.exclusion import EXCLUSION, check_withdrawn, describe_exclusion
from transforms.records.in_toto import PRODUCTS, STATEMENT, make_statement, products
from transforms.records.platforms import PLATFORM_VOCAB
from transforms.records.receipts import RECEIPT, SIGNATURE, find_receipt, named_files, said_counts
from transforms.records.record import MALFORMED, check_record, malformed
from transforms.records.checks.shard_proofs import Claim, Reading, prove_shards
from transforms.records.checks.unit_checks import RunUnits
from transforms.records.checks.verification import check_facts
from transforms.storage.folder import OutputFolder, naming_damage

_ROW = ("doc_id", "project", "path")

_OF_RUN = (PLATFORM_VOCAB, WITHDRAWN)
"""Files of a run that are in no folder: readers would take one that the receipt does not name."""

_READ = (RECEIPT, SIGNATURE, STATEMENT, CROISSANT)
"""Files that no receipt names, and that are read here."""


def published_files(receipt: dict[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the files of a run that are published with its receipt, by path."""
    files = {name: digest for folder in PRODUCTS for name, digest in products(receipt, folder).items()}
    if PLATFORM_VOCAB in receipt["files"]:
        files[PLATFORM_VOCAB] = receipt["files"][PLATFORM_VOCAB]
    return files


def read_published(out: OutputFolder, receipt: dict[str, Any]) -> RunUnits:
    """Return what a copy has of a run: files, and no unit receipts."""
    there = set(out.files())
    files = {name: digest for name, digest in named_files(receipt).items() if name in there}
    units: dict[Stage, list[Any]] = {stage: [] for stage in RUN_STAGES}
    return RunUnits(out, receipt, units, files)


def count_absent(out: OutputFolder, receipt: dict[str, Any]) -> dict[str, int]:
    """Return how many files of a run a copy lacks, by their top folder, or by name."""
    there = set(out.files())
    return dict(sorted(Counter(name.partition("/")[0] for name in named_files(receipt) if name not in there).items()))


def verify_published(out: OutputFolder, reading: Reading) -> list[str]:
    """Return every difference between a copy of what is published of a run and its receipt; empty if there is none.

    Args:
        out: The folder of the copy.
        reading: How shards are read again.
    """
    try:
        receipt = find_receipt(out)
    except IntegrityError as error:
        return [str(error)]
    if receipt is None:
        return [f"{out.where(RECEIPT)}: there is no receipt"]
    try:
        differences = [*check_record(out, RECEIPT, receipt), *_check_files(out, receipt)]
        if differences:
            return differences
        run = read_published(out, receipt)
        differences = [
            *check_facts(out, receipt),
            *_check_counts(run),
            *_check_exclusion(run),
            *_check_described(run),
        ]
        claims, unpaired = _pair(run)
        differences += unpaired
        return differences or list(prove_shards(out, receipt, claims, reading))
    except IntegrityError as error:
        return [str(error)]
    except MALFORMED as error:
        return [malformed(out, RECEIPT, error, kind="receipt")]


def _check_files(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[str]:
    """Check that what is published is there, that all there is of the run is intact, and nothing is in its folders.

    Other files may be beside it, as a card, a LICENSE, or what a download or Git keeps.
    """
    named, folders = named_files(receipt), {*PRODUCTS, *(name.partition("/")[0] for name in receipt["files"])}
    strangers = [name for name in out.strangers() if name in _READ or name.partition("/")[0] in folders]
    for name in strangers:
        yield f"{out.where(name)}: not a file but a link or the like; download into a folder of its own"
    there = set(out.files())
    for name in sorted(published_files(receipt).keys() - there.union(strangers)):
        yield f"{out.where(name)}: the receipt names it, it is published, and it is missing"
    for name in sorted(there - {RECEIPT, SIGNATURE}):
        if name in named:
            found = out.hash(name)
            if found != named[name]:
                yield f"{out.where(name)}: its SHA-256 is {found}, the receipt says {named[name]}"
        elif name in _OF_RUN or ("/" in name and name.partition("/")[0] in folders):
            yield f"{out.where(name)}: the receipt does not name it"


def _check_counts(run: RunUnits) -> Iterator[str]:
    """Check that the ledger balances, and count what else the receipt says of kept documents."""
    receipt, ingest = run.receipt, run.receipt["configs"]["ingest"]
    Ledger.from_json(receipt["ledger"], where=run.out.where(RECEIPT))
    counts, columns = sum_counts([], ingest), added_columns(ingest)
    for name in sorted(run.documents) if columns else ():
        with run.out.open_ranges(name) as file, naming_damage(run.out.where(name)), pq.ParquetFile(file) as table:
            if lacking := sorted(set(columns) - set(table.schema_arrow.names)):
                yield f"{run.out.where(name)}: by the options it lacks {', '.join(lacking)}"
                return
            counts = sum_counts([counts, count_kept(table.read(columns, use_threads=False), ingest)], ingest)
    said = said_counts(receipt)
    for name in differing_keys(counts, said):
        yield f"{run.out.where(RECEIPT)}: it says corpus {name} {said.get(name)}, the documents give {counts.get(name)}"


def _check_exclusion(run: RunUnits) -> Iterator[str]:
    """Derive the root of the doc_ids again; the list of what is withdrawn is not published."""
    out, receipt = run.out, run.receipt
    said, named = receipt["configs"]["ingest"].get("withdrawn"), receipt["files"].get(WITHDRAWN)
    expected = None if named is None else f"{FILE_DIGEST}{named}"
    if said != expected:
        yield f"{out.where(RECEIPT)}: by its options the list of withdrawn documents is {said}, by its files {expected}"
    if (EXCLUSION in receipt) != (said is not None):
        has = "it has" if EXCLUSION in receipt else "it lacks"
        yield f"{out.where(RECEIPT)}: {has} {EXCLUSION}, which runs with a list of withdrawn documents have, and no others"
    if WITHDRAWN in run.files:
        yield from check_withdrawn(out, receipt, sorted(run.documents))
    elif EXCLUSION in receipt:
        found = describe_exclusion(out, [shard["path"] for shard in receipt["dataset"]["shards"]])
        if not same_json(receipt[EXCLUSION], found):
            yield f"{out.where(RECEIPT)}: its {EXCLUSION} is {receipt[EXCLUSION]}, the shards give {found}"


def _check_described(run: RunUnits) -> Iterator[str]:
    """Compare the statement and the Croissant file with those that are made of the receipt, if they are there."""
    for name, is_of in ((STATEMENT, _is_statement), (CROISSANT, _is_description)):
        if not run.out.exists(name):
            continue
        try:
            is_of_receipt = is_of(parse_unique_json(run.out.read_bytes(name)), run)
        except MALFORMED:
            is_of_receipt = False
        if not is_of_receipt:
            yield f"{run.out.where(name)}: it does not describe this receipt"


def _is_statement(value: dict[str, Any], run: RunUnits) -> bool:
    """Return whether a value is the statement of a run: whoever vouches for it is free."""
    return same_json(value, make_statement(run.receipt, builder=value["predicate"]["runDetails"]["builder"]["id"]))


def _is_description(value: dict[str, Any], run: RunUnits) -> bool:
    """Return whether a value is the Croissant file of a run: what its publisher adds is free, and its sentence."""
    creator = value.get("creator")
    publication = Publication(
        name=value["name"],
        url=value.get("url"),
        creator=None if creator is None else creator["name"],
        date=value.get("datePublished"),
    )
    expected = make_croissant(run.receipt, publication, licenses=_licenses(run), description=value["description"])
    return same_json(value, expected)


def _licenses(run: RunUnits) -> list[str]:
    """Return the licences of the documents."""
    found = set[str]()
    for name in sorted(run.documents):
        with run.out.open_ranges(name) as file, naming_damage(run.out.where(name)), pq.ParquetFile(file) as table:
            names: list[Any] = pc.unique(table.read(["license"], use_threads=False).column("license")).to_pylist()
        found.update(license_name for license_name in names if license_name is not None)
    return sorted(found)


def _pair(run: RunUnits) -> tuple[list[Claim], list[str]]:
    """Return each token shard with the documents shard that has its rows, and what is wrong with the others."""
    lines, claims, unpaired = {line["path"]: line for line in run.receipt["dataset"]["shards"]}, [], []
    tokens, documents = (_by_rows(run.out, sorted(names)) for names in (lines, run.documents))
    for rows in sorted(tokens.keys() | documents.keys()):
        for shard, source in zip_longest(tokens[rows], documents[rows]):
            if shard is None or source is None:
                unpaired.append(f"{run.out.where(shard or source)}: no shard of {_other(shard)} has the same rows")
            else:
                claims.append(Claim(line=lines[shard], documents=source))
    return sorted(claims, key=lambda claim: str(claim.line["path"])), unpaired


def _other(shard: str | None) -> str:
    return "tokens" if shard is None else "documents"


def _by_rows(out: OutputFolder, names: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the names of shards by a digest of which documents their rows are."""

    def digest(name: str) -> str:
        found = sha256()
        with out.open_ranges(name) as file, naming_damage(out.where(name)), pq.ParquetFile(file) as table:
            for batch in table.iter_batches(columns=list(_ROW), use_threads=False):
                for row in zip(*(batch.column(column).to_pylist() for column in _ROW), strict=True):
                    found.update(json.dumps(row).encode())
        return found.hexdigest()

    shards: dict[str, list[str]] = defaultdict(list)
    for name, rows in zip(names, out.each(digest, names), strict=True):
        shards[rows].append(name)
    return shards
