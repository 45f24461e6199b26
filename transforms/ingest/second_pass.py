"""The second pass of ingest: packs the documents that are kept into shards, and writes down what became of all others.

The inputs are read again and compared with their fingerprints row by row, so that a shard holds what its unit was
planned for; what differs is `dead[changed]`. A unit of loose files is one shard; an archive's documents are cut into
shards by the rule that cuts files into units.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby, zip_longest
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
from transforms.ingest.first_pass import Fingerprint, read_fingerprints
from transforms.sources.document import Document
from transforms.sources.listing import Kind
from transforms.sources.readers import read_documents
from transforms.storage.folder import OutputFolder
from transforms.units.chunking import cut
from transforms.units.execution import count_unit, run_unit


def ingest_unit(unit: Unit, out: OutputFolder, options: IngestOptions, detect: Detect | None) -> UnitReceipt:
    """Write the documents of a unit and its rejects, and return its receipt, which `run_unit` publishes.

    Publishes `documents/part-<key>-<nnnnn>.parquet`, nothing where nothing is kept, and
    `documents/rejects-<key>.parquet` if there are any. Holds one row group of documents at a time. Running it twice
    gives the same bytes.

    Args:
        unit: A unit of `plan_ingest`.
        out: The output folder.
        options: The options of ingest.
        detect: Finds platforms; None finds none.
    """
    outputs = []
    with out.open_local(unit.payload["fingerprints"]) as fingerprints:
        second = _SecondPass(unit, fingerprints, _dropped(unit, out), options)
        for shard, group in groupby(second.kept(), key=lambda item: item[0]):
            name = f"documents/part-{unit.key}-{shard:05d}.parquet"
            documents = (kept for _, kept in group)
            outputs.append(out.publish(name, partial(write_documents, documents=documents, detect=detect)))
        outputs.extend(_publish_rejects(second, unit, out))
    kept_documents, kept_bytes = second.ledger.documents.kept, second.ledger.num_bytes.kept
    return UnitReceipt(
        stage=unit.stage,
        key=unit.key,
        outputs=tuple(outputs),
        totals={"documents": kept_documents, "bytes": kept_bytes},
        ledger=second.ledger.to_json(),
    )


class _Dropped(NamedTuple):
    """The rows of a unit's fingerprints that passed every filter and are not kept.

    Attributes:
        duplicates: Copies.
        near: Near-duplicates, with what to say of each; copies may be among them.
    """

    duplicates: npt.NDArray[np.uint32]
    near: dict[int, str]


def _dropped(unit: Unit, out: OutputFolder) -> _Dropped:
    """Return what is not kept of a unit because of other documents."""
    duplicates, near = np.zeros(0, dtype=np.uint32), dict[int, str]()
    if unit.payload["duplicates"]:
        with out.open_ranges(unit.payload["duplicates"]) as file:
            duplicates = unit_duplicates(file, unit.payload["index"])
    if unit.payload["near_duplicates"]:
        with out.open_ranges(unit.payload["near_duplicates"]) as file:
            near = unit_near_duplicates(file, unit.payload["index"])
    return _Dropped(duplicates, near)


def _publish_rejects(second: _SecondPass, unit: Unit, out: OutputFolder) -> Iterator[OutputFile]:
    if second.ledger.documents.total > second.ledger.documents.kept:
        yield out.publish(f"documents/rejects-{unit.key}.parquet", partial(write_rejects, rejects=second.rejects()))


class _SecondPass:
    """One reading of a unit's inputs beside their fingerprints; its ledger is whole once `kept` has been exhausted."""

    def __init__(self, unit: Unit, fingerprints: Path, dropped: _Dropped, options: IngestOptions) -> None:
        self.ledger = Ledger()
        self._unit, self._options = unit, options
        self._fingerprints = fingerprints
        self._kept, sizes = _flags(self._fingerprints)
        self._duplicate = np.zeros(len(self._kept), dtype=bool)
        self._duplicate[dropped.duplicates] = True
        self._near = dropped.near
        self._kept &= ~self._duplicate
        self._kept[list(self._near)] = False
        self._ends = self._shard_ends(sizes)
        self._changed = set[int]()
        self._appeared = list[Document]()

    def kept(self) -> Iterator[tuple[int, Kept]]:
        """Yield the documents that are kept, each with the number of its shard."""
        place = -1
        for index, (row, document) in enumerate(zip_longest(read_fingerprints(self._fingerprints), self._documents())):
            if row is None:
                self._appeared.append(document._replace(content=None))
                self.ledger.add(Column.DEAD, Dead.CHANGED, num_bytes=document.num_bytes)
                continue
            place += int(self._kept[index])
            if self._reads and not _is_same(row, document):
                self._changed.add(index)
                self.ledger.add(Column.DEAD, Dead.CHANGED, num_bytes=row.num_bytes)
            elif self._kept[index]:
                self.ledger.add(Column.KEPT, "", num_bytes=row.num_bytes)
                yield bisect.bisect_right(self._ends, place), Kept(row, document.content or b"")
            else:
                reject = self._reject(index, row)
                self.ledger.add(Column(reject.column), reject.reason, num_bytes=row.num_bytes)

    def rejects(self) -> Iterator[Reject]:
        """Yield what is not kept, in order; what appeared since the first pass comes last."""
        for index, row in enumerate(read_fingerprints(self._fingerprints)):
            reject = self._reject(index, row)
            if index in self._changed:
                yield reject._replace(
                    column=Column.DEAD, reason=Dead.CHANGED, detail="differs from what the first pass read"
                )
            elif not self._kept[index]:
                yield reject
        for document in self._appeared:
            detail = "appeared after the first pass"
            yield Reject(document.project, document.path, document.num_bytes, Column.DEAD, Dead.CHANGED, detail)

    def _reject(self, index: int, row: Fingerprint) -> Reject:
        """Return what became of a document that is not kept, unless it changed."""
        reject = Reject(row.project, row.path, row.num_bytes, row.column, row.reason, row.detail)
        if index in self._near:
            return reject._replace(column=Column.FILTERED, reason=Filtered.NEAR_DUPLICATE, detail=self._near[index])
        if self._duplicate[index]:
            return reject._replace(column=Column.DUPLICATE, detail=row.doc_id)
        return reject

    @property
    def _reads(self) -> bool:
        """Whether there is anything to read for."""
        return bool(self._kept.any())

    def _documents(self) -> Iterator[Document]:
        if self._reads:
            yield from read_documents(self._unit, self._options, wanted=lambda index: bool(self._kept[index]))

    def _shard_ends(self, sizes: npt.NDArray[np.uint64]) -> list[int]:
        """Return where the shards end, counted in kept documents; one shard for loose files."""
        if self._unit.payload["kind"] == Kind.FILE:
            return []
        return cut(_kept_paths(self._fingerprints, self._kept, sizes), self._options.unit_bytes)


def _is_same(row: Fingerprint, document: Document | None) -> bool:
    """Tell whether a document is the one that the first pass read; a loose file that was not read again is."""
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
