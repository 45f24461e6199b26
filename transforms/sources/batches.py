"""Documents in batches: the columns that all readers give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables import LICENSE_SOURCE, READ, READ_DIGESTS, altered_schema
from transforms.sources.document import Document

Flags = npt.NDArray[np.bool_]

BATCH_ROWS = 8192
"""The most documents in a batch."""

BATCH_BYTES = 16 << 20
"""A batch is closed once its documents have this many bytes, if these are in memory."""

_NAMES = tuple(name for name in READ.names if name in Document._fields and name != "content")


def batch_documents(documents: Iterable[Document], *, keep: bool, threads: int = 1) -> Iterator[pa.RecordBatch]:
    """Yield documents in batches, in order.

    Args:
        documents: The documents.
        keep: Whether their bytes stay in the batches: READ, else READ_DIGESTS.
        threads: The most threads to digest them with.
    """
    waiting, waiting_bytes = list[Document](), 0
    for document in documents:
        waiting.append(document)
        waiting_bytes += len(document.content or b"")
        if len(waiting) == BATCH_ROWS or waiting_bytes >= BATCH_BYTES:
            yield to_batch(waiting, keep=keep, threads=threads)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield to_batch(waiting, keep=keep, threads=threads)


def to_batch(documents: Sequence[Document], *, keep: bool, threads: int = 1) -> pa.RecordBatch:
    """Return documents as a batch of READ, or of READ_DIGESTS unless their bytes are kept."""
    values = dict(zip(Document._fields, zip(*documents, strict=True), strict=True))
    columns: dict[str, Any] = {name: pa.array(values[name], READ.field(name).type) for name in _NAMES}
    content = pa.array([document.content or b"" for document in documents], READ.field("content").type)
    found = cppmill_core.digest_contents(content, threads=threads)
    columns |= {"doc_id": found.column("doc_id"), "content": content}
    columns |= {name: found.column(name) for name in ("has_nul", "is_wide")}
    if None in values["content"]:
        looked_at = pa.array([document.content is not None for document in documents])
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
    """Yield the documents of a batch of READ."""
    columns = (batch.column(name).to_pylist() for name in (*_NAMES, "doc_id", "content"))
    for *values, doc_id, content in zip(*columns, strict=True):
        yield Document(**dict(zip(_NAMES, values, strict=True)), content=content if doc_id else None)
