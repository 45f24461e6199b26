"""Fingerprints: the digest of each document of an input unit, and the verdict of the filters.

A unit's fingerprints are kept in `.cache/fingerprints` under a key of its files' paths, sizes and versions, and are not
made again while these stay the same. Duplicates and the keys of the second pass's units follow from them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.options import IngestOptions
from schemas.reasons import Column, Dead
from schemas.tables import FINGERPRINTS
from schemas.units import Unit
from transforms.filters.verdicts import ContentFilter
from transforms.ingest.minhash import SignatureWriter, finds_near_duplicates, signatures_name, signed_digest
from transforms.sources.document import Document, bounded
from transforms.sources.readers import read_documents
from transforms.storage.folder import CACHE, OutputFolder
from transforms.units.execution import count_unit, run_once

BATCH_ROWS = 8192
"""Rows of fingerprints that are held at a time."""

IS_READ = "is_read"
"""Names the mark in a unit's payload that its fingerprints are there and whole."""

_MAX_DETAIL_BYTES = 256
_DIGEST = b"cppmill.fingerprints"
_UNREAD_INPUTS = b"cppmill.unread_inputs"


class Fingerprint(NamedTuple):
    """One row of FINGERPRINTS."""

    project: str
    path: str
    doc_id: str
    num_bytes: int
    column: str
    reason: str
    detail: str
    license: str | None


def fingerprint(document: Document, filters: ContentFilter) -> Fingerprint:
    """Return a document's digest, and its column of the ledger by every filter but the one of duplicates."""
    column, reason, detail = document.column, document.reason, document.detail
    doc_id = ""
    if document.content is not None:
        doc_id = hashlib.sha256(document.content).hexdigest()
        column, reason, detail = filters(document.content, document.named_license)
    return Fingerprint(
        project=document.project,
        path=document.path,
        doc_id=doc_id,
        num_bytes=document.num_bytes,
        column=str(column),
        reason=str(reason),
        detail=bounded(detail, _MAX_DETAIL_BYTES),
        license=document.license,
    )


def fingerprints_name(key: str) -> str:
    """Return the path, relative to OUT, of the fingerprints of the input unit with a key."""
    return f"{CACHE}/fingerprints/{key}.parquet"


def fingerprint_unit(
    unit: Unit, out: OutputFolder, options: IngestOptions, filters: ContentFilter, *, rehash: bool = False
) -> str:
    """Make the fingerprints of an input unit unless they are there, and return their path relative to OUT.

    Args:
        unit: An input unit.
        out: The output folder.
        options: The options of ingest.
        filters: The filters on content that they ask for.
        rehash: Read everything again, whatever is there.
    """

    def find(unit: Unit) -> str | None:
        known = not rehash and (unit.payload.get(IS_READ) or find_digest(unit, out, options))
        return fingerprints_name(unit.key) if known else None

    def make(unit: Unit) -> str:
        name = fingerprints_name(unit.key)
        documents = read_documents(unit, options)
        if finds_near_duplicates(options):
            signed = partial(_write_signed, documents=documents, filters=filters, name=name, out=out, options=options)
            out.publish(signatures_name(unit.key, options), signed)
        else:
            out.publish(name, lambda path: _write(path, documents, filters))
        return name

    return count_unit(run_once(unit, out, find=find, make=make), "read")


def find_digest(unit: Unit, out: OutputFolder, options: IngestOptions) -> str:
    """Return the SHA-256 over the fingerprints of an input unit, empty if the unit must be read.

    It must be read if anything that the first pass makes of it is missing, damaged or of another reading, or if an
    input of it could not be read: mending the permissions of a file does not change its time.
    """
    try:
        metadata = _footer(out, fingerprints_name(unit.key))
        digest = metadata[_DIGEST].decode("ascii")
        is_whole = metadata[_UNREAD_INPUTS] == b"0"
        if is_whole and finds_near_duplicates(options):
            is_whole = signed_digest(out, signatures_name(unit.key, options)) == digest
    except (OSError, IntegrityError):
        return ""
    return digest if is_whole else ""


def fingerprints_digest(out: OutputFolder, name: str) -> str:
    """Return the SHA-256 over the rows of a file of fingerprints in OUT, as its footer has it.

    Raises:
        FileNotFoundError: If there is no such file.
        IntegrityError: If it is not a file of fingerprints.
    """
    return str(_footer(out, name)[_DIGEST].decode("ascii"))


def _footer(out: OutputFolder, name: str) -> dict[bytes, bytes]:
    """Return what the footer of a file of fingerprints says."""
    try:
        with out.open_ranges(name) as file:
            metadata = pq.read_metadata(file).metadata or {}
        return {key: metadata[key] for key in (_DIGEST, _UNREAD_INPUTS)}
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise IntegrityError(
            f"{out.where(name)}: not a file of fingerprints ({error}); delete it and run again"
        ) from error


def read_fingerprints(path: Path) -> Iterator[Fingerprint]:
    """Yield the rows of a file of fingerprints in order."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
            yield from map(Fingerprint._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _write_signed(
    path: Path,
    documents: Iterator[Document],
    filters: ContentFilter,
    name: str,
    out: OutputFolder,
    options: IngestOptions,
) -> int:
    """Publish the fingerprints of a unit's documents, and write their signatures."""
    with SignatureWriter(path, options) as signatures:
        out.publish(name, lambda fingerprints: _write(fingerprints, documents, filters, signatures))
    return signatures.count


def _write(
    path: Path, documents: Iterator[Document], filters: ContentFilter, signatures: SignatureWriter | None = None
) -> int:
    """Write the fingerprints of a unit's documents; the digest of the rows goes into the footer."""
    digest, rows, count, unread = hashlib.sha256(), list[Fingerprint](), 0, 0
    with pq.ParquetWriter(path, FINGERPRINTS, compression="zstd") as writer:
        for document in documents:
            row = fingerprint(document, filters)
            if signatures and row.column == Column.KEPT:
                signatures.add(count, document.content or b"")
            digest.update(json.dumps(row).encode("ascii"))
            rows.append(row)
            count += 1
            unread += row.reason in (Dead.UNREADABLE, Dead.VANISHED)
            if len(rows) == BATCH_ROWS:
                writer.write_batch(_to_batch(rows))
                rows.clear()
        writer.write_batch(_to_batch(rows))
        facts = {_DIGEST: digest.hexdigest(), _UNREAD_INPUTS: str(unread)}
        writer.add_key_value_metadata({name.decode("ascii"): value for name, value in facts.items()})
    if signatures:
        signatures.finish(digest.hexdigest())
    return count


def _to_batch(rows: list[Fingerprint]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(FINGERPRINTS)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, FINGERPRINTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FINGERPRINTS)
