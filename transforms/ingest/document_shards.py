"""Writing shards of documents and tables of rejects: streamed, in row groups of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.tables import DATA_FORMAT_VERSION, DOCUMENTS, NO_EVIDENCE, REJECTS
from transforms.sources.batches import BATCH_BYTES, BATCH_ROWS
from transforms.units.batches import fixed_row_groups
from transforms.units.prefetch import prefetch

Detect = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Finds platforms: from a batch with `path` and `content` to one with `platform_ids` and `platform_info`."""

ROW_GROUP_BYTES = BATCH_BYTES
"""A row group is closed once its documents have this many bytes."""

_DICTIONARIES = ["project", "license", "platform_info"]


def write_documents(
    path: Path, documents: Iterable[pa.RecordBatch], *, detect: Detect | None, schema: pa.Schema = DOCUMENTS
) -> int:
    """Write a shard of documents, a row group at a time, and return the number of rows.

    While a row group is written, the next one is read and its platforms are found.

    Args:
        path: Where to.
        documents: Batches of READ, in order.
        detect: Finds platforms; without it no document has any.
        schema: The columns, as `documents_schema` gives them.
    """
    schema = schema.with_metadata({"cppmill.format": str(DATA_FORMAT_VERSION)})
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
        for group in prefetch(_to_shard(batch, schema, detect) for batch in _row_groups(documents)):
            writer.write_batch(group)
            rows += group.num_rows
    return rows


def write_rejects(path: Path, rejects: Iterable[pa.RecordBatch]) -> int:
    """Write a table of rejects, batches of REJECTS, and return the number of rows."""
    rows = 0
    with pq.ParquetWriter(path, REJECTS, compression="zstd") as writer:
        for table in fixed_row_groups(rejects, BATCH_ROWS):
            writer.write_table(table)
            rows += table.num_rows
    return rows


def _row_groups(documents: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield documents in batches that are row groups: closed at a number of bytes, or of rows."""
    waiting, waiting_bytes, waiting_rows = list[pa.RecordBatch](), 0, 0
    for batch in documents:
        ends = np.cumsum(batch.column("num_bytes").to_numpy().astype(np.int64))
        first, before = 0, 0
        while first < batch.num_rows:
            full = int(np.searchsorted(ends, before + ROW_GROUP_BYTES - waiting_bytes)) + 1
            last = min(full, first + BATCH_ROWS - waiting_rows, batch.num_rows)
            waiting.append(batch.slice(first, last - first))
            waiting_bytes += int(ends[last - 1]) - before
            waiting_rows += last - first
            first, before = last, int(ends[last - 1])
            if waiting_bytes >= ROW_GROUP_BYTES or waiting_rows == BATCH_ROWS:
                yield _joined(waiting)
                waiting, waiting_bytes, waiting_rows = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _to_shard(documents: pa.RecordBatch, schema: pa.Schema, detect: Detect | None) -> pa.RecordBatch:
    """Return a batch of DOCUMENTS."""
    content = documents.column("content").cast(pa.binary())
    columns = {"content": content, **find_platforms(documents.column("path"), content, detect)}
    arrays = [columns[name] if name in columns else documents.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def find_platforms(paths: pa.Array[Any], content: pa.Array[Any], detect: Detect | None) -> dict[str, pa.Array[Any]]:
    """Return the columns `platform_ids` and `platform_info` of DOCUMENTS; without `detect` no document has any."""
    kinds = {name: DOCUMENTS.field(name).type for name in ("platform_ids", "platform_info")}
    if detect is None:
        nothing: dict[str, Any] = {"platform_ids": [], "platform_info": NO_EVIDENCE}
        return {name: pa.array([nothing[name]] * len(paths), kind) for name, kind in kinds.items()}
    found = detect(pa.RecordBatch.from_arrays([paths, content], names=["path", "content"]))
    return {name: found.column(name).cast(kind) for name, kind in kinds.items()}
