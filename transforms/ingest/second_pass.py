"""The second pass of ingest: it packs the documents that are kept into shards, and records what became of all others.

The inputs are read again and compared with their fingerprints row by row, so that a shard holds what its unit was
planned for; what differs is `dead[changed]`. A unit of loose files is one shard; an archive's documents are cut into
shards by the rule that cuts files into units.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.ledger import Ledger
from schemas.options import IngestOptions
from schemas.reasons import Column, Dead, Filtered
from schemas.units import OutputFile, Unit, UnitReceipt
from transforms.ingest.dedup.clusters import unit_near_duplicates
from transforms.ingest.dedup.exact import unit_duplicates
from transforms.ingest.document_shards import Detect, Kept, Reject, write_documents, write_rejects
from transforms.ingest.fingerprints import Fingerprint, read_fingerprints
from transforms.sources.document import Document
from transforms.sources.listing import Kind
from transforms.sources.readers import read_documents
from transforms.storage.folder import OutputFolder
from transforms.units.chunking import cut
from transforms.units.execution import count_unit, run_unit


class Written(NamedTuple):
    """What the second reading of a unit's inputs gave.

    Attributes:
        shards: The documents shards, in order.
        ledger: What became of every document.
        changed: Rows of the fingerprints whose document differs from what the first pass read.
        appeared: Documents that the first pass did not find, without their content.
    """

    shards: tuple[OutputFile, ...]
    ledger: Ledger
    changed: frozenset[int]
    appeared: tuple[Document, ...]


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What is decided about the rows of a unit's fingerprints before its inputs are read again.

    Attributes:
        fingerprints: The file.
        kept: For each row, whether its document is kept.
        duplicate: For each row, whether it is a copy of a document that is kept.
        near: Rows of near-duplicates, each with a few words for people; copies may be among them.
        shards: For each row, the number of the shard that it belongs to if it is kept.
    """

    fingerprints: Path
    kept: npt.NDArray[np.bool_]
    duplicate: npt.NDArray[np.bool_]
    near: dict[int, str]
    shards: npt.NDArray[np.intp]

    def reject(self, index: int, row: Fingerprint) -> Reject:
        """Return what is said of a document that is not kept."""
        reject = Reject(row.project, row.path, row.num_bytes, row.column, row.reason, row.detail)
        if index in self.near:
            return reject._replace(column=Column.FILTERED, reason=Filtered.NEAR_DUPLICATE, detail=self.near[index])
        if self.duplicate[index]:
            return reject._replace(column=Column.DUPLICATE, detail=row.doc_id)
        return reject


def ingest_unit(unit: Unit, out: OutputFolder, options: IngestOptions, detect: Detect | None) -> UnitReceipt:
    """Write the documents of a unit and its rejects, and return its receipt, which `run_unit` publishes.

    Publishes `documents/part-<key>-<nnnnn>.parquet`, nothing where nothing is kept, and
    `documents/rejects-<key>.parquet` if there are any. Holds one row group of documents at a time. Running it twice
    gives the same bytes.
    """
    with out.open_local(unit.payload["fingerprints"]) as fingerprints:
        decisions = decide(unit, fingerprints, out, options)
        written = write_shards(unit, decisions, out, options, detect)
        outputs = [*written.shards, *_publish_rejects(unit, decisions, written, out)]
    return UnitReceipt(
        stage=unit.stage,
        key=unit.key,
        outputs=tuple(outputs),
        totals={"documents": written.ledger.documents.kept, "bytes": written.ledger.num_bytes.kept},
        ledger=written.ledger.to_json(),
    )


def decide(unit: Unit, fingerprints: Path, out: OutputFolder, options: IngestOptions) -> Decisions:
    """Return which rows of a unit's fingerprints are kept, and in which shards."""
    kept, sizes = _flags(fingerprints)
    duplicate, near = np.zeros(len(kept), dtype=bool), dict[int, str]()
    if unit.payload["duplicates"]:
        with out.open_ranges(unit.payload["duplicates"]) as file:
            duplicate[unit_duplicates(file, unit.payload["index"])] = True
    if unit.payload["near_duplicates"]:
        with out.open_ranges(unit.payload["near_duplicates"]) as file:
            near = unit_near_duplicates(file, unit.payload["index"])
    kept &= ~duplicate
    kept[list(near)] = False
    # Loose files are one shard.
    ends = [] if unit.payload["kind"] == Kind.FILE else cut(_kept_paths(fingerprints, kept, sizes), options.unit_bytes)
    shards = np.searchsorted(ends, np.cumsum(kept) - 1, side="right")
    return Decisions(fingerprints=fingerprints, kept=kept, duplicate=duplicate, near=near, shards=shards)


def write_shards(
    unit: Unit, decisions: Decisions, out: OutputFolder, options: IngestOptions, detect: Detect | None
) -> Written:
    """Read a unit's inputs again, publish the shards of the documents that are kept, and return what came of it all."""
    ledger, changed, appeared = Ledger(), set[int](), list[Document]()
    reads = bool(decisions.kept.any())  # else there is nothing to read for

    def keep() -> Iterator[tuple[int, Kept]]:
        # Those that are not kept may lack their content.
        documents = read_documents(unit, options, wanted=lambda i: bool(decisions.kept[i])) if reads else iter(())
        for index, (row, document) in enumerate(zip_longest(read_fingerprints(decisions.fingerprints), documents)):
            if row is None:
                appeared.append(document._replace(content=None))
                ledger.add(Column.DEAD, Dead.CHANGED, num_bytes=document.num_bytes)
            elif reads and not _is_same(row, document):
                changed.add(index)
                ledger.add(Column.DEAD, Dead.CHANGED, num_bytes=row.num_bytes)
            elif decisions.kept[index]:
                ledger.add(Column.KEPT, "", num_bytes=row.num_bytes)
                yield int(decisions.shards[index]), Kept(row, document.content or b"")
            else:
                reject = decisions.reject(index, row)
                ledger.add(Column(reject.column), reject.reason, num_bytes=row.num_bytes)

    shards = []
    for shard, group in groupby(keep(), key=itemgetter(0)):
        name = f"documents/part-{unit.key}-{shard:05d}.parquet"
        shards.append(out.publish(name, partial(write_documents, documents=map(itemgetter(1), group), detect=detect)))
    return Written(tuple(shards), ledger, frozenset(changed), tuple(appeared))


def _publish_rejects(unit: Unit, decisions: Decisions, written: Written, out: OutputFolder) -> Iterator[OutputFile]:
    if written.ledger.documents.total > written.ledger.documents.kept:
        write = partial(write_rejects, rejects=_rejects(decisions, written))
        yield out.publish(f"documents/rejects-{unit.key}.parquet", write)


def _rejects(decisions: Decisions, written: Written) -> Iterator[Reject]:
    """Yield what is not kept, in order; what appeared since the first pass comes last."""
    for index, row in enumerate(read_fingerprints(decisions.fingerprints)):
        if index in written.changed:
            detail = "differs from what the first pass read"
            yield decisions.reject(index, row)._replace(column=Column.DEAD, reason=Dead.CHANGED, detail=detail)
        elif not decisions.kept[index]:
            yield decisions.reject(index, row)
    for document in written.appeared:
        detail = "appeared after the first pass"
        yield Reject(document.project, document.path, document.num_bytes, Column.DEAD, Dead.CHANGED, detail)


def _is_same(row: Fingerprint, document: Document | None) -> bool:
    """Return whether a document is the one that the first pass read; a loose file that was not read again is."""
    if document is None or (row.project, row.path) != (document.project, document.path):
        return False
    if document.content is not None:
        return row.num_bytes == len(document.content) and row.doc_id == hashlib.sha256(document.content).hexdigest()
    if document.column == Column.KEPT:
        return True
    return (row.column, row.reason, row.num_bytes) == (document.column, document.reason, document.num_bytes)


def _flags(path: Path) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint64]]:
    """Return for each row of fingerprints whether it passed every filter, and its bytes."""
    table = pq.read_table(path, columns=["column", "num_bytes"])
    kept = pc.equal(table.column("column"), pa.scalar(str(Column.KEPT))).to_numpy()
    return np.array(kept, dtype=bool), table.column("num_bytes").to_numpy()


def _kept_paths(path: Path, kept: npt.NDArray[np.bool_], sizes: npt.NDArray[np.uint64]) -> Iterator[tuple[str, int]]:
    """Yield path and bytes of the rows that are kept."""
    for index, row in enumerate(read_fingerprints(path)):
        if kept[index]:
            yield row.path, int(sizes[index])


# Beam does not resolve annotations that are strings: types that choose a coder are given outright.
@beam.typehints.with_input_types(Unit)
@beam.typehints.with_output_types(UnitReceipt)
class _WriteDocumentsFn(beam.DoFn):
    """Runs units of the second pass."""

    def __init__(self, out: OutputFolder, options: IngestOptions, make_detect: Callable[[], Detect] | None) -> None:
        self._out, self._options, self._make_detect = out, options, make_detect
        self._detect: Detect | None = None

    def setup(self) -> None:
        """Make the detector, once a worker."""
        self._detect = self._make_detect() if self._make_detect and self._options.detect_platforms else None

    def process(self, unit: Unit) -> Iterator[UnitReceipt]:
        """Yield the unit's receipt."""
        write = partial(ingest_unit, out=self._out, options=self._options, detect=self._detect)
        yield count_unit(run_unit(unit, self._out, write))


@dataclass(kw_only=True)
class WriteDocuments(beam.PTransform[beam.PCollection[Unit], beam.PCollection[UnitReceipt]]):
    """Writes the documents of the units that `plan_ingest` made, and yields their receipts.

    Attributes:
        out: The output folder; shards and receipts go to `documents/`.
        options: The options of ingest.
        make_detect: Makes the platform detector on each worker; must pickle. None finds no platforms.
    """

    out: OutputFolder
    options: IngestOptions
    make_detect: Callable[[], Detect] | None = None

    def expand(self, units: beam.PCollection[Unit]) -> beam.PCollection[UnitReceipt]:
        """Apply the second pass to a PCollection of units."""
        writer = _WriteDocumentsFn(self.out, self.options, self.make_detect)
        receipts: beam.PCollection[UnitReceipt] = units | "WriteDocuments" >> beam.ParDo(writer)
        return receipts
