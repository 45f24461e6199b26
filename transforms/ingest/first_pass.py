"""The first pass of ingest: what each document is, by digest, and what the filters say of it.

A unit's fingerprints are kept in `.cache/fingerprints` under a key of its files' paths, sizes and versions, and not
made again while that stays the same. From them follow the duplicates and the keys of the second pass's units.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.options import IngestOptions
from schemas.reasons import Column, Dead
from schemas.tables import DUPLICATE_CANDIDATES, FINGERPRINTS
from schemas.units import Unit
from transforms.filters.decontamination import load_benchmark
from transforms.filters.verdicts import Judge, make_judge
from transforms.ingest.dedup.minhash import SignatureWriter, finds_near_duplicates, signatures_name, signed_digest
from transforms.sources.document import Document, bounded
from transforms.sources.listing import Kind
from transforms.sources.readers import read_documents
from transforms.storage.folder import CACHE, OutputFolder
from transforms.units.batches import MAX_ELEMENT_BYTES
from transforms.units.execution import count_unit, run_once

MIN_PARTITIONS = 32
"""The fewest partitions that duplicates are chosen in."""

PARTITION_BYTES = 256 << 20
"""Source bytes a partition: 8 MiB of candidates for documents of 5 kB; larger partitions would be too much at once."""

_EXPANSION = 8
"""How much more text than bytes an archive is taken to hold."""

Candidate = tuple[str, str, str, int, int]
"""A row of DUPLICATE_CANDIDATES. They travel packed, as JSON: of a large corpus, a unit has few in a partition."""

_BATCH_ROWS = 8192
_MAX_DETAIL_BYTES = 256
_DIGEST = b"cppmill.fingerprints"
_PASSING = b"cppmill.unread_inputs"


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


def fingerprint(document: Document, judge: Judge) -> Fingerprint:
    """Return a document's digest, and its place in the ledger by every filter but that of duplicates."""
    column, reason, detail = document.column, document.reason, document.detail
    doc_id = ""
    if document.content is not None:
        doc_id = hashlib.sha256(document.content).hexdigest()
        column, reason, detail = judge(document.content, document.told_license)
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
    unit: Unit, out: OutputFolder, options: IngestOptions, judge: Judge, *, rehash: bool = False
) -> str:
    """Make the fingerprints of an input unit unless they are there, and return their path relative to OUT.

    Args:
        unit: An input unit.
        out: The output folder.
        options: The options of ingest.
        judge: The filters on content that they ask for.
        rehash: Read everything again, whatever is there.
    """

    def find(unit: Unit) -> str | None:
        return None if rehash or not is_read(unit, out, options) else fingerprints_name(unit.key)

    def make(unit: Unit) -> str:
        name = fingerprints_name(unit.key)
        documents = read_documents(unit, options)
        if finds_near_duplicates(options):
            signed = partial(_write_signed, documents=documents, judge=judge, name=name, out=out, options=options)
            out.publish(signatures_name(unit.key, options), signed)
        else:
            out.publish(name, lambda path: _write(path, documents, judge))
        return name

    return count_unit(run_once(unit, out, find=find, make=make), "read")


def is_read(unit: Unit, out: OutputFolder, options: IngestOptions) -> bool:
    """Tell whether all that the first pass makes of an input unit is there, whole, and of the same reading."""
    if not has_fingerprints(unit, out):
        return False
    if not finds_near_duplicates(options):
        return True
    try:
        signed = signed_digest(out, signatures_name(unit.key, options))
    except (OSError, IntegrityError):
        return False
    return signed == fingerprints_digest(out, fingerprints_name(unit.key))


def has_fingerprints(unit: Unit, out: OutputFolder) -> bool:
    """Tell whether the fingerprints of an input unit are there and whole, and no input of it failed to be read.

    A file that could not be read is tried again each time: mending its permissions does not change its time.
    """
    try:
        metadata = _footer(out, fingerprints_name(unit.key))
    except (OSError, IntegrityError):
        return False
    return metadata[_PASSING] == b"0"


def fingerprints_digest(out: OutputFolder, name: str) -> str:
    """Return the SHA-256 over the rows of a file of fingerprints in OUT, as its footer has it.

    Raises:
        FileNotFoundError: If there is no such file.
        IntegrityError: If it is none of fingerprints.
    """
    return str(_footer(out, name)[_DIGEST].decode("ascii"))


def _footer(out: OutputFolder, name: str) -> dict[bytes, bytes]:
    """Return what the footer of a file of fingerprints says."""
    try:
        with out.open_ranges(name) as file:
            metadata = pq.read_metadata(file).metadata or {}
        return {key: metadata[key] for key in (_DIGEST, _PASSING)}
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise IntegrityError(
            f"{out.where(name)}: not a file of fingerprints ({error}); delete it and run again"
        ) from error


def read_fingerprints(path: Path) -> Iterator[Fingerprint]:
    """Yield the rows of a file of fingerprints in order."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
            yield from map(Fingerprint._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _write_signed(
    path: Path, documents: Iterator[Document], judge: Judge, name: str, out: OutputFolder, options: IngestOptions
) -> int:
    """Publish the fingerprints of a unit's documents, and write their signatures."""
    with SignatureWriter(path, options) as signatures:
        out.publish(name, lambda fingerprints: _write(fingerprints, documents, judge, signatures))
        signatures.finish(fingerprints_digest(out, name))
    return signatures.count


def _write(path: Path, documents: Iterator[Document], judge: Judge, signatures: SignatureWriter | None = None) -> int:
    """Write the fingerprints of a unit's documents; the digest of the rows goes into the footer."""
    digest, rows, count, passing = hashlib.sha256(), list[Fingerprint](), 0, 0
    with pq.ParquetWriter(path, FINGERPRINTS, compression="zstd") as writer:
        for document in documents:
            row = fingerprint(document, judge)
            if signatures and row.column == Column.KEPT:
                signatures.add(count, document.content or b"")
            digest.update(json.dumps(row).encode("ascii"))
            rows.append(row)
            count += 1
            passing += row.reason in (Dead.UNREADABLE, Dead.VANISHED)
            if len(rows) == _BATCH_ROWS:
                writer.write_batch(_to_batch(rows))
                rows.clear()
        writer.write_batch(_to_batch(rows))
        facts = {_DIGEST: digest.hexdigest(), _PASSING: str(passing)}
        writer.add_key_value_metadata({name.decode("ascii"): value for name, value in facts.items()})
    return count


def _to_batch(rows: list[Fingerprint]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(FINGERPRINTS)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, FINGERPRINTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FINGERPRINTS)


def duplicate_partitions(units: Sequence[Unit], *, weight: int = 1) -> int:
    """Return how many partitions to choose duplicates in, so that each is small; the choice does not depend on it.

    Args:
        units: The input units.
        weight: How many times as much as a candidate for duplicates there is of each document.
    """
    expected = sum(unit.num_bytes * (1 if unit.payload["kind"] == Kind.FILE else _EXPANSION) for unit in units)
    return max(MIN_PARTITIONS, math.ceil(expected * weight / PARTITION_BYTES))


def duplicate_candidates(path: Path, index: int, partitions: int) -> Iterator[tuple[int, bytes]]:
    """Yield the documents of a unit that passed every filter as (partition of the doc_id, packed candidates).

    Args:
        path: The unit's fingerprints.
        index: The unit's number in source order.
        partitions: How many partitions there are.
    """
    first = 0
    columns = ["doc_id", "project", "path", "column"]
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
            yield from _partition(batch, index, first, partitions)
            first += batch.num_rows


def _partition(batch: pa.RecordBatch, index: int, first: int, partitions: int) -> Iterator[tuple[int, bytes]]:
    rows: dict[int, list[Candidate]] = defaultdict(list)
    columns = zip(*(batch.column(name).to_pylist() for name in ("doc_id", "project", "path", "column")), strict=True)
    for row, (doc_id, project, path, column) in enumerate(columns, start=first):
        if column == Column.KEPT:
            rows[int(doc_id[:8], 16) % partitions].append((doc_id, project, path, index, row))
    for partition, taken in rows.items():
        yield from ((partition, packed) for packed in _pack(taken))


def _pack(candidates: list[Candidate]) -> Iterator[bytes]:
    """Yield candidates as JSON, cut to what every engine shuffles."""
    packed = json.dumps(candidates, ensure_ascii=False, separators=(",", ":")).encode()
    if len(packed) > MAX_ELEMENT_BYTES and len(candidates) > 1:
        half = len(candidates) // 2
        yield from _pack(candidates[:half])
        yield from _pack(candidates[half:])
    else:
        yield packed


def unpack_candidates(packed: Iterable[bytes]) -> pa.Table:
    """Return what `duplicate_candidates` packed as a table of DUPLICATE_CANDIDATES."""
    rows: list[Candidate] = [candidate for part in packed for candidate in json.loads(part)]
    columns = list(zip(*rows, strict=True)) or [()] * len(DUPLICATE_CANDIDATES)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, DUPLICATE_CANDIDATES, strict=True)]
    return pa.Table.from_arrays(arrays, schema=DUPLICATE_CANDIDATES)


# Beam does not resolve annotations that are strings: types that choose a coder are given outright.
@beam.typehints.with_input_types(Unit)
@beam.typehints.with_output_types(tuple[int, bytes])
class _FingerprintFn(beam.DoFn):
    """Makes the fingerprints of units and yields the candidates for duplicates among them."""

    _judge: Judge

    def __init__(
        self, out: OutputFolder, options: IngestOptions, benchmark: str, *, rehash: bool, partitions: int
    ) -> None:
        self._out, self._options, self._rehash, self._partitions = out, options, rehash, partitions
        self._benchmark = benchmark

    def setup(self) -> None:
        """Make the filters, once a worker."""
        benchmark = load_benchmark(self._benchmark, self._out, self._options) if self._benchmark else None
        self._judge = make_judge(self._options, benchmark)

    def process(self, unit: Unit) -> Iterator[tuple[int, bytes]]:
        """Yield (partition, packed candidates)."""
        name = fingerprint_unit(unit, self._out, self._options, self._judge, rehash=self._rehash)
        if self._options.drop_duplicates:
            with self._out.open_local(name) as path:
                yield from duplicate_candidates(path, unit.payload["index"], self._partitions)


@dataclass(kw_only=True)
class FingerprintInputs(beam.PTransform[beam.PCollection[Unit], beam.PCollection[tuple[int, bytes]]]):
    """Makes the fingerprints of input units; yields what may be duplicates as (partition, packed candidates).

    Attributes:
        out: The output folder; fingerprints go to `.cache/fingerprints`.
        options: The options of ingest.
        partitions: How many partitions duplicates are chosen in.
        benchmark: Where in OUT the index of `decontaminate` is; empty for none.
        rehash: Read everything again, whatever is remembered.
    """

    out: OutputFolder
    options: IngestOptions
    partitions: int
    benchmark: str = ""
    rehash: bool = False

    def expand(self, units: beam.PCollection[Unit]) -> beam.PCollection[tuple[int, bytes]]:
        """Apply the first pass to a PCollection of input units."""
        reader = _FingerprintFn(self.out, self.options, self.benchmark, rehash=self.rehash, partitions=self.partitions)
        candidates: beam.PCollection[tuple[int, bytes]] = units | "Fingerprint" >> beam.ParDo(reader)
        return candidates
