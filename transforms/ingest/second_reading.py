"""The second reading of a unit's inputs, compared with their fingerprints row by row.

A shard then holds what its unit was planned for; what differs is `dead[changed]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.ledger import Ledger
from schemas.reasons import Column, Dead
from schemas.tables import FINGERPRINTS, LICENSE_SOURCE, REJECTS
from transforms.filters.kept_counts import count_kept, sum_counts
from transforms.ingest.decisions import Decisions
from transforms.sources.batches import Flags, is_equal, set_licenses


class SecondReading:
    """Tells for each document that is read again whether it is kept.

    Attributes:
        ledger: What became of the documents so far.
        counts: What else is counted of those that are kept.
    """

    def __init__(self, decisions: Decisions, ingest: Mapping[str, Any]) -> None:
        """Begin with the first row of the fingerprints; `ingest` is the canonical form of its options."""
        self.ledger, self.counts = Ledger(), sum_counts([], ingest)
        self._decisions, self._ingest, self._first = decisions, ingest, 0
        self._changed, self._appeared = np.zeros(len(decisions.kept), dtype=bool), list[pa.RecordBatch]()

    def compare(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (number of a shard, batch of READ) for what is kept, in order.

        Args:
            batches: Batches of READ: the documents that the first pass found, and whatever has appeared since.
        """
        rows = _Rows(self._decisions.read())
        for batch in batches:
            known, first = rows.take(batch.num_rows), self._first
            same = _are_same(known, batch.slice(0, known.num_rows))
            self._settle(known, ~same)
            self._add_appeared(batch.slice(known.num_rows))
            kept = self._decisions.kept[first : self._first] & same
            documents = _only(_with_licenses(batch, known), kept)
            self.counts = sum_counts([self.counts, count_kept(documents, self._ingest)], self._ingest)
            yield from _by_shard(documents, self._decisions.shards[first : self._first][kept])
        for known in rows.rest():
            self._settle(known, np.ones(known.num_rows, dtype=bool))

    def skip(self) -> None:
        """Take all documents for what they were: none is kept, so there is nothing to read for."""
        for known in self._decisions.read():
            self._settle(known, np.zeros(known.num_rows, dtype=bool))

    def rejects(self) -> Iterator[pa.RecordBatch]:
        """Yield what is not kept, in order, as batches of REJECTS; what appeared since the first pass comes last."""
        first = 0
        for known in self._decisions.read():
            last = first + known.num_rows
            settled = self._decisions.settle(known, first, self._changed[first:last])
            yield settled.filter(pa.array(~is_equal(settled.column("column"), Column.KEPT)))
            first = last
        yield from self._appeared

    def _settle(self, known: pa.RecordBatch, changed: Flags) -> None:
        _count(self.ledger, self._decisions.settle(known, self._first, changed))
        last = self._first + known.num_rows
        self._changed[self._first : last] = changed
        self._first = last

    def _add_appeared(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            texts = {"column": Column.DEAD, "reason": Dead.CHANGED, "detail": "appeared after the first pass"}
            columns = {name: pa.repeat(str(text), batch.num_rows) for name, text in texts.items()}
            arrays = [columns[name] if name in columns else batch.column(name) for name in REJECTS.names]
            self._appeared.append(pa.RecordBatch.from_arrays(arrays, schema=REJECTS))
            _count(self.ledger, self._appeared[-1])


class _Rows:
    """Rows of batches, taken by number."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        first = next(batches, None)
        self._batches, self._left = batches, pa.table(first) if first else FINGERPRINTS.empty_table()

    def take(self, rows: int) -> pa.RecordBatch:
        """Return the next rows, fewer at the end."""
        while self._left.num_rows < rows and (batch := next(self._batches, None)) is not None:
            self._left = pa.concat_tables([self._left, pa.Table.from_batches([batch])])
        taken, self._left = self._left.slice(0, rows), self._left.slice(rows)
        return pa.RecordBatch.from_arrays([column.combine_chunks() for column in taken.columns], schema=taken.schema)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield all other rows."""
        yield from self._left.to_batches()
        yield from self._batches


def _with_licenses(documents: pa.RecordBatch, known: pa.RecordBatch) -> pa.RecordBatch:
    """Return documents that the first pass knows, with the licences that it found, if it looked for any."""
    if LICENSE_SOURCE.name not in known.schema.names:
        return documents
    documents = documents.slice(0, known.num_rows)
    return set_licenses(documents, known.column("license"), known.column(LICENSE_SOURCE.name))


def _are_same(known: pa.RecordBatch, documents: pa.RecordBatch) -> Flags:
    """Return for each row whether it is the document of the first pass; a loose file that is not read again is."""

    def equal(*names: str) -> Flags:
        columns = [pc.equal(known.column(name), documents.column(name)) for name in names]
        flags: Flags = np.logical_and.reduce([column.to_numpy(zero_copy_only=False) for column in columns])
        return flags

    unread = is_equal(documents.column("column"), Column.KEPT) | equal("column", "reason", "num_bytes")
    is_unread = is_equal(documents.column("doc_id"), "")
    same: Flags = equal("project", "path") & np.where(is_unread, unread, equal("num_bytes", "doc_id"))
    if "source_doc_id" in known.schema.names:
        before, now = (batch.column("source_doc_id").to_numpy(zero_copy_only=False) for batch in (known, documents))
        same &= is_unread | (before == now)
    return same


def _only(batch: pa.RecordBatch, kept: Flags) -> pa.RecordBatch:
    """Return the rows that are kept; what comes behind the flags is not."""
    if kept.all():
        return batch.slice(0, len(kept))
    return batch.slice(0, len(kept)).filter(pa.array(kept))


def _by_shard(batch: pa.RecordBatch, shards: npt.NDArray[np.intp]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a batch by the number of the shard, which ascends."""
    if batch.num_rows:
        borders = np.flatnonzero(np.diff(shards)) + 1
        for first, last in pairwise([0, *borders.tolist(), batch.num_rows]):
            yield int(shards[first]), batch.slice(first, last - first)


def _count(ledger: Ledger, settled: pa.RecordBatch) -> None:
    """Add documents, a batch of REJECTS, to a ledger."""
    counts = pa.table(settled).group_by(["column", "reason"]).aggregate([("num_bytes", "sum"), ("num_bytes", "count")])
    for row in counts.to_pylist():
        ledger.add(
            Column(row["column"]), row["reason"], num_bytes=row["num_bytes_sum"], documents=row["num_bytes_count"]
        )
