"""Writing shards of documents and tables of rejects: streamed, in row groups of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.tables import DATA_FORMAT_VERSION, DOCUMENTS, REJECTS
from transforms.ingest.fingerprints import Fingerprint

Detect = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Finds platforms: from a batch with `path` and `content` to one with `platform_ids` and `platform_info`."""

ROW_GROUP_BYTES = 16 << 20
"""A row group is closed once its documents have this many bytes."""

_ROW_GROUP_ROWS = 8192
_DICTIONARIES = ["project", "license", "platform_info"]


class Kept(NamedTuple):
    """A document that is kept: its fingerprint and its bytes."""

    row: Fingerprint
    content: bytes


class Reject(NamedTuple):
    """One row of REJECTS."""

    project: str
    path: str
    num_bytes: int
    column: str
    reason: str
    detail: str


def write_documents(path: Path, documents: Iterable[Kept], *, detect: Detect | None) -> int:
    """Write a shard of documents, a row group at a time, and return the number of rows.

    Args:
        path: Where to.
        documents: The documents, in order; held for one row group at a time.
        detect: Finds platforms; without it no document has any.
    """
    schema = DOCUMENTS.with_metadata({"cppmill.format": str(DATA_FORMAT_VERSION)})
    statistics = [name for name in schema.names if name not in ("content", "platform_info", "platform_ids")]
    rows = 0
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=_DICTIONARIES,  # type: ignore[arg-type]  # the stub lacks lists
        write_statistics=statistics,
        write_page_checksum=True,
    ) as writer:
        for group in _row_groups(documents):
            writer.write_batch(_document_batch(group, schema, detect))
            rows += len(group)
    return rows


def write_rejects(path: Path, rejects: Iterable[Reject]) -> int:
    """Write a table of rejects and return the number of rows."""
    rows = 0
    with pq.ParquetWriter(path, REJECTS, compression="zstd") as writer:
        for group in _batches(rejects):
            arrays = [
                pa.array(values, kind.type) for values, kind in zip(zip(*group, strict=True), REJECTS, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=REJECTS))
            rows += len(group)
    return rows


def _row_groups(documents: Iterable[Kept]) -> Iterator[list[Kept]]:
    group, size = list[Kept](), 0
    for document in documents:
        group.append(document)
        size += len(document.content)
        if size >= ROW_GROUP_BYTES or len(group) == _ROW_GROUP_ROWS:
            yield group
            group, size = [], 0
    if group:
        yield group


def _batches(rejects: Iterable[Reject]) -> Iterator[list[Reject]]:
    batch = list[Reject]()
    for reject in rejects:
        batch.append(reject)
        if len(batch) == _ROW_GROUP_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _document_batch(group: list[Kept], schema: pa.Schema, detect: Detect | None) -> pa.RecordBatch:
    """Return a batch of DOCUMENTS."""
    paths = pa.array([kept.row.path for kept in group], pa.string())
    content = pa.array([kept.content for kept in group], pa.binary())
    ids, info = _platforms(paths, content, schema, detect)
    columns: dict[str, pa.Array[Any]] = {
        "doc_id": pa.array([kept.row.doc_id for kept in group], pa.string()),
        "project": pa.array([kept.row.project for kept in group], pa.string()),
        "path": paths,
        "content": content,
        "num_bytes": pa.array([kept.row.num_bytes for kept in group], pa.uint64()),
        "license": pa.array([kept.row.license for kept in group], pa.string()),
        "platform_ids": ids,
        "platform_info": info,
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _platforms(
    paths: pa.Array[Any], content: pa.Array[Any], schema: pa.Schema, detect: Detect | None
) -> tuple[pa.Array[Any], pa.Array[Any]]:
    kind = schema.field("platform_ids").type
    if detect is None:
        return pa.array([[]] * len(paths), kind), pa.array(["{}"] * len(paths), pa.string())
    found = detect(pa.RecordBatch.from_arrays([paths, content], names=["path", "content"]))
    return found.column("platform_ids").cast(kind), found.column("platform_info").cast(pa.string())
