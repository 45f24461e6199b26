"""Fingerprints: the digest of each document of an input unit, and the verdict of the filters.

A unit's fingerprints are kept in `.cache/fingerprints` under a key of its files' paths, sizes and versions, and are not
made again while these stay the same. Duplicates and the keys of the second pass's units follow from them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.options import IngestOptions
from schemas.places import is_remote
from schemas.reasons import Column, Dead
from schemas.tables import FINGERPRINTS, LICENSE_SOURCE, altered_schema
from schemas.units import Unit
from transforms.filters.redaction import redacted
from transforms.filters.verdicts import ContentFilter, Verdict
from transforms.ingest.found_licenses import licensed
from transforms.ingest.minhash import (
    NAME,
    SignatureWriter,
    finds_near_duplicates,
    naming_first_pass,
    signatures_name,
    signed_digest,
)
from transforms.sources.batches import BATCH_ROWS, is_equal
from transforms.sources.document import bounded
from transforms.sources.files import begin_reading, count_changed
from transforms.sources.license_files import LICENSE_FILES
from transforms.sources.listing import UNPROVEN
from transforms.sources.readers import read_batches
from transforms.storage.folder import CACHE, OutputFolder
from transforms.units.batches import fixed_row_groups
from transforms.units.execution import count_unit, run_once

IS_READ = "is_read"
"""Names the mark in a unit's payload that its fingerprints are there and whole."""

_MAX_DETAIL_BYTES = 256
_DIGEST = b"cppmill.fingerprints"
_UNREAD_INPUTS = b"cppmill.unread_inputs"
_SEAL = b"cppmill.seal"
_UNREAD = (Dead.UNREADABLE, Dead.VANISHED, Dead.TIMEOUT)
_BADLY_SENT = (Dead.NOT_AN_ARCHIVE, Dead.TRUNCATED, Dead.CORRUPT)
"""Damage of a remote input that may be a fault of the server, or of what is between, and so be over the next time."""


def fingerprint(documents: pa.RecordBatch, filters: ContentFilter) -> pa.RecordBatch:
    """Return documents' digests, and their columns of the ledger by every filter but the one of duplicates.

    Args:
        documents: A batch of READ, or of READ_DIGESTS if no filter reads the text.
        filters: The filters.

    Returns:
        A batch of FINGERPRINTS, with the columns `source_doc_id` and `license_source` if the documents have them.
    """
    names = documents.schema.names
    schema = _schema(altered="source_doc_id" in names, licensed=LICENSE_SOURCE.name in names)
    columns: dict[str, pa.Array[Any]] = {name: documents.column(name) for name in schema.names}
    judged = list(filters.judge(documents))
    if judged or not is_equal(documents.column("detail"), "").all():
        verdicts: dict[str, list[Any]] = {name: documents.column(name).to_pylist() for name in Verdict._fields}
        for row, verdict in judged:
            for name, value in verdict._asdict().items():
                verdicts[name][row] = str(value)
        verdicts["detail"] = [bounded(detail, _MAX_DETAIL_BYTES) for detail in verdicts["detail"]]
        columns |= {name: pa.array(values, pa.string()) for name, values in verdicts.items()}
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


def _schema(*, altered: bool, licensed: bool) -> pa.Schema:
    """Return the schema of fingerprints, by whether content may be altered and licences are looked for."""
    schema = altered_schema(FINGERPRINTS, altered=altered)
    return schema.append(LICENSE_SOURCE) if licensed else schema


def _schemas() -> Iterator[pa.Schema]:
    """Yield all of these."""
    for altered, has_licenses in product((False, True), repeat=2):
        yield _schema(altered=altered, licensed=has_licenses)


def fingerprints_name(key: str) -> str:
    """Return the path, relative to OUT, of the fingerprints of the input unit with a key."""
    return f"{CACHE}/fingerprints/{key}.parquet"


def fingerprint_unit(
    unit: Unit,
    out: OutputFolder,
    options: IngestOptions,
    filters: ContentFilter,
    *,
    rehash: bool = False,
    threads: int = 1,
) -> str:
    """Make the fingerprints of an input unit unless they are there, and return their path relative to OUT.

    Args:
        unit: An input unit.
        out: The output folder.
        options: The options of ingest.
        filters: The filters on content that they ask for.
        rehash: Read everything again, whatever is there.
        threads: The most threads to digest documents with.
    """

    def find(unit: Unit) -> str | None:
        known = not rehash and (unit.payload.get(IS_READ) or find_digest(unit, out, options))
        return fingerprints_name(unit.key) if known else None

    def make(unit: Unit) -> str:
        name = fingerprints_name(unit.key)
        began = begin_reading(unit.payload["root"], _read_inputs(unit), out.temporary)
        keep = filters.reads_text or finds_near_duplicates(options) or options.alters_content
        keep = keep or options.find_licenses is not None
        documents = redacted(read_batches(unit, options, keep=keep, threads=threads), options)
        documents = licensed(documents, unit, options)
        write = partial(_write, unit=unit, began=began, documents=documents, filters=filters, options=options)
        if finds_near_duplicates(options):
            signed = partial(_write_signed, unit=unit, write=write, out=out, options=options)
            out.publish(signatures_name(unit.key, options), signed)
        else:
            out.publish(name, write)
        return name

    return count_unit(run_once(unit, out, find=find, make=make), "read")


def find_digest(unit: Unit, out: OutputFolder, options: IngestOptions) -> str:
    """Return the SHA-256 over the fingerprints of an input unit, empty if the unit must be read.

    It must be read if anything that the first pass makes of it is missing, damaged or of another reading, or if an
    input of it could not be read, was not what was listed, or came damaged from a server: mending the permissions of a
    file does not change its time, and a file that was moved away and back has the time that it had before.
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
        found = {key: metadata[key] for key in (_DIGEST, _UNREAD_INPUTS)}
        if NAME in metadata:  # earlier versions wrote none
            found[NAME] = name.encode()
        if metadata.get(_SEAL, _seal(found)) != _seal(found):  # earlier versions wrote none
            raise ValueError("the footer was changed, or is of another file")
        return found
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise IntegrityError(
            f"{out.where(name)}: not a file of fingerprints ({error}); delete it and run again"
        ) from error


def _seal(facts: dict[bytes, bytes]) -> bytes:
    """Return the digest of what a footer says: no checksum of Parquet covers it."""
    return hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest().encode()


def read_fingerprints(path: Path, *, is_checked: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of fingerprints in order, in batches.

    Args:
        path: The file.
        is_checked: Whether its rows were compared with their digest before.

    Raises:
        IntegrityError: If it is damaged; its rows are compared after the last.
    """
    with naming_first_pass(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        digest, expected = hashlib.sha256(), (file.metadata.metadata or {})[_DIGEST].decode("ascii")
        if not any(map(file.schema_arrow.equals, _schemas())):
            raise ValueError("it has other columns")
        for read in file.iter_batches(BATCH_ROWS, use_threads=False):
            batch = read.replace_schema_metadata()  # it may not be UTF-8
            if not is_checked:
                digest.update(cppmill_core.json_rows(batch))
            yield batch
        if not is_checked and digest.hexdigest() != expected:  # the footer, too, says how many rows there are
            raise ValueError("its rows are not those that were written")


def read_columns(path: Path, names: Sequence[str]) -> pa.Table:
    """Return columns of a file of fingerprints, all rows.

    Raises:
        IntegrityError: If it is damaged.
    """
    schema = pa.schema([FINGERPRINTS.field(name) for name in names])
    return pa.Table.from_batches((batch.select(schema.names) for batch in read_fingerprints(path)), schema)


def _write_signed(
    path: Path, *, unit: Unit, write: Callable[..., int], out: OutputFolder, options: IngestOptions
) -> int:
    """Publish the fingerprints of a unit's documents, and write their signatures."""
    with SignatureWriter(path, signatures_name(unit.key, options), options) as signatures:
        out.publish(fingerprints_name(unit.key), partial(write, signatures=signatures))
    return signatures.count


def _write(
    path: Path,
    *,
    unit: Unit,
    began: int,
    documents: Iterator[pa.RecordBatch],
    filters: ContentFilter,
    options: IngestOptions,
    signatures: SignatureWriter | None = None,
) -> int:
    """Write the fingerprints of a unit's documents, read from a moment on, and sign those that pass."""
    badly_sent, is_sent = 0, is_remote(unit.payload["root"])

    def fingerprints() -> Iterator[pa.RecordBatch]:
        nonlocal badly_sent
        first = 0
        for batch in documents:
            rows = fingerprint(batch, filters)
            badly_sent += _count(rows, _BADLY_SENT) if is_sent else 0
            if signatures:
                _sign(signatures, first, batch, rows)
            first += rows.num_rows
            yield rows

    def again() -> int:
        return badly_sent + _count_changed(unit, began)

    digest, count = write_fingerprints(path, fingerprints_name(unit.key), fingerprints(), options, again)
    if signatures:
        signatures.finish(digest)
    return count


def _count(rows: pa.RecordBatch, reasons: Iterable[Dead]) -> int:
    """Return how many rows have one of these reasons."""
    return sum(int(is_equal(rows.column("reason"), reason).sum()) for reason in reasons)


def _count_changed(unit: Unit, began: int) -> int:
    """Return how many files that were read for a unit, from a moment on, are not what was listed, or may not be."""
    read = _read_inputs(unit)
    unproven = sum(1 for _, _, version in read if version.endswith(UNPROVEN))
    return count_changed(unit.payload["root"], read, began) + unproven


def _read_inputs(unit: Unit) -> list[tuple[str, int, str]]:
    """Return path, size and version of each file that is read for a unit."""
    read = [(path, num_bytes, version) for path, num_bytes, version, reason in unit.payload["inputs"] if not reason]
    return read + [tuple(file) for file in unit.payload.get(LICENSE_FILES, ())]


def write_fingerprints(
    path: Path,
    name: str,
    batches: Iterator[pa.RecordBatch],
    options: IngestOptions,
    count_more: Callable[[], int],
) -> tuple[str, int]:
    """Write fingerprints, and return the digest of the rows, which goes into the footer, and their number.

    Args:
        path: The file.
        name: Its name in OUT, which goes into the footer too: a file of another unit, or of other options, is not taken
            for it.
        batches: The rows.
        options: The options of ingest.
        count_more: Returns, when all rows are written, how many inputs must be read again for other reasons than
            those that rows give.
    """
    digest, count, unread = hashlib.sha256(), 0, 0

    def fingerprints() -> Iterator[pa.RecordBatch]:
        nonlocal count, unread
        for rows in batches:
            digest.update(cppmill_core.json_rows(rows))
            count += rows.num_rows
            unread += _count(rows, _UNREAD)
            yield rows

    schema = _schema(altered=options.alters_content, licensed=options.find_licenses is not None)
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for table in fixed_row_groups(fingerprints(), BATCH_ROWS):
            writer.write_table(table)
        unread += count_more()
        facts = {_DIGEST: digest.hexdigest().encode(), _UNREAD_INPUTS: str(unread).encode(), NAME: name.encode()}
        writer.add_key_value_metadata(
            {name.decode(): value.decode() for name, value in {**facts, _SEAL: _seal(facts)}.items()}
        )
    return digest.hexdigest(), count


def _sign(signatures: SignatureWriter, first: int, documents: pa.RecordBatch, rows: pa.RecordBatch) -> None:
    """Sign the documents of a batch that passed the filters; `first` is the number of its first row."""
    for row, column in enumerate(rows.column("column").to_pylist()):
        if column == Column.KEPT:
            signatures.add(first + row, documents.column("content")[row].as_py())
