"""Documents in batches: the columns that all readers give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables import LICENSE_SOURCE, READ, READ_DIGESTS, UNDIGESTED, altered_schema
from transforms.sources.document import Document

Flags = npt.NDArray[np.bool_]

BATCH_ROWS = 8192
"""The most documents in a batch."""

BATCH_BYTES = 16 << 20
"""A batch is closed once its documents have this many bytes, if these are in memory."""


def batch_documents(
    documents: Iterable[Document | pa.RecordBatch], *, keep: bool, threads: int = 1
) -> Iterator[pa.RecordBatch]:
    """Yield documents in batches, in order.

    Args:
        documents: The documents, one by one or in batches of UNDIGESTED.
        keep: Whether their bytes stay in the batches: READ, else READ_DIGESTS.
        threads: The most threads to digest them with.
    """
    waiting, waiting_bytes = list[Document](), 0
    for document in documents:
        batch = document if isinstance(document, pa.RecordBatch) else None
        if not isinstance(document, pa.RecordBatch):
            waiting.append(document)
            waiting_bytes += len(document.content or b"")
        if waiting and (batch is not None or len(waiting) == BATCH_ROWS or waiting_bytes >= BATCH_BYTES):
            yield to_batch(waiting, keep=keep, threads=threads)
            waiting, waiting_bytes = [], 0
        if batch is not None:
            yield digest_batch(batch, keep=keep, threads=threads)
    if waiting:
        yield to_batch(waiting, keep=keep, threads=threads)


def to_batch(documents: Sequence[Document], *, keep: bool, threads: int = 1) -> pa.RecordBatch:
    """Return documents as a batch of READ, or of READ_DIGESTS unless their bytes are kept."""
    return digest_batch(gather(documents), keep=keep, threads=threads)


def gather(documents: Sequence[Document]) -> pa.RecordBatch:
    """Return documents as a batch of UNDIGESTED."""
    values = dict(zip(Document._fields, zip(*documents, strict=True), strict=True))
    arrays: list[Any] = [pa.array(values[field.name], field.type) for field in UNDIGESTED]
    return pa.RecordBatch.from_arrays(arrays, schema=UNDIGESTED)


def digest_batch(documents: pa.RecordBatch, *, keep: bool, threads: int = 1) -> pa.RecordBatch:
    """Return a batch of UNDIGESTED as one of READ, or of READ_DIGESTS unless the bytes are kept."""
    columns: dict[str, Any] = dict(zip(documents.schema.names, documents.columns, strict=True))
    looked_at = columns["content"].is_valid()
    columns["content"] = pc.fill_null(columns["content"], b"")
    found = cppmill_core.digest_contents(columns["content"], threads=threads)
    columns |= {name: found.column(name) for name in ("doc_id", "has_nul", "is_wide")}
    if documents.column("content").null_count:
        columns["doc_id"] = pc.if_else(looked_at, columns["doc_id"], "")
    schema = READ if keep else READ_DIGESTS
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def replace_contents(documents: pa.RecordBatch, contents: Mapping[int, bytes]) -> pa.RecordBatch:
    """Return a batch of READ with other bytes for some documents, and the column `source_doc_id`.

    Args:
        documents: The batch; if it has the column, a document that was altered before keeps its value.
        contents: The new bytes by row.
    """
    columns: dict[str, Any] = dict(zip(documents.schema.names, documents.columns, strict=True))
    columns.setdefault("source_doc_id", pa.nulls(documents.num_rows, pa.string()))
    if contents:
        rows = sorted(contents)
        flags = np.zeros(documents.num_rows, dtype=bool)
        flags[rows] = True
        mask = pa.array(flags)
        content = pa.array([contents[row] for row in rows], READ.field("content").type)
        found = cppmill_core.digest_contents(content)
        replaced = {name: found.column(name) for name in ("doc_id", "has_nul", "is_wide")}
        replaced |= {"content": content, "num_bytes": pc.binary_length(content).cast(pa.uint64())}
        first = pc.and_(mask, pc.is_null(columns["source_doc_id"]))
        columns["source_doc_id"] = pc.if_else(first, columns["doc_id"], columns["source_doc_id"])
        columns |= {name: pc.replace_with_mask(columns[name], mask, values) for name, values in replaced.items()}
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=altered_schema(READ, altered=True))


def set_licenses(documents: pa.RecordBatch, licenses: pa.Array[Any], sources: pa.Array[Any]) -> pa.RecordBatch:
    """Return a batch of READ with these licences, and where each is from in the column `license_source`."""
    number = documents.schema.get_field_index("license")
    found = documents.set_column(number, documents.schema.field(number), licenses)
    return found.append_column(LICENSE_SOURCE, sources)


def is_equal(column: pa.Array[Any], value: str) -> Flags:
    """Return for each row of a column of strings whether it has a value."""
    flags: Flags = pc.equal(column, pa.scalar(value)).to_numpy(zero_copy_only=False)
    return flags


def to_documents(batch: pa.RecordBatch) -> Iterator[Document]:
    """Yield the documents of a batch of READ or UNDIGESTED."""
    columns: dict[str, Any] = {name: batch.column(name) for name in Document._fields}
    if "doc_id" in batch.schema.names:
        columns["content"] = pc.if_else(pc.not_equal(batch.column("doc_id"), pa.scalar("")), columns["content"], None)
    for values in zip(*(column.to_pylist() for column in columns.values()), strict=True):
        yield Document(*values)
