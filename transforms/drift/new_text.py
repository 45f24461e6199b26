"""The documents of a version whose content the version before lacks: their bytes and tokens by project, and their ids.

Only token shards that the version before lacks are read. A shard has mostly old documents where one file changed, so
documents are compared by their content, not shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.tables import PROJECT_SUMS
from transforms.storage.folder import OutputFolder
from transforms.tokens.project_sums import add_project_sums, sum_projects
from transforms.tokens.usage import Counts, flat_ids
from transforms.units.batches import read_row_groups

_COLUMNS = ["doc_id", "project", "num_bytes", "num_tokens", "token_ids"]
_ROWS_A_BATCH = 1024


@dataclass(frozen=True)
class NewText:
    """The documents that a version has and the version before lacks.

    Attributes:
        projects: Their sums by project (`schemas.tables.PROJECT_SUMS`).
        ids: Occurrences by id.
    """

    projects: pa.Table
    ids: Counts


def read_known(before: OutputFolder, lost: Iterable[str]) -> pa.Array[Any]:
    """Return the `doc_id`s in token or documents shards of a version; the next one has others in their place.

    Takes about 100 bytes of memory per document.
    """
    return pa.chunked_array([_read_ids(before, shard) for shard in lost], pa.string()).combine_chunks()


def read_new_text(
    out: OutputFolder, gained: Iterable[str], known: pa.Array[Any], *, vocab_size: int, threads: int
) -> NewText:
    """Read the documents of some token shards of a version but those whose content is known.

    Args:
        out: The version.
        gained: The paths of the token shards that the version before lacks.
        known: What `read_known` returned.
        vocab_size: Number of ids of the version's tokenizer.
        threads: Shards read at once.
    """
    read = partial(_read_shard, out, known, vocab_size)
    sums, ids = [PROJECT_SUMS.empty_table()], np.zeros(vocab_size, np.int64)
    with ThreadPoolExecutor(threads) as pool:
        for part in pool.map(read, gained):
            sums.append(part.projects)
            ids += part.ids
    return NewText(add_project_sums(sums), ids)


def read_new_documents(
    out: OutputFolder, documents: Iterable[str], known: pa.Array[Any], *, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield project and content of the documents of some shards but those whose content is known.

    Args:
        out: The version.
        documents: The paths of documents shards.
        known: What `read_known` returned.
        most_bytes: Stop after so many bytes of content, at the end of a batch.
    """
    read_bytes = 0
    for shard in documents:
        with out.open_local(shard) as path, pq.ParquetFile(path) as file:
            for batch in read_row_groups(file, ["doc_id", "project", "content", "num_bytes"]):
                rows = _new_rows(batch, known)
                yield rows.select(["project", "content"])
                read_bytes += pc.sum(rows["num_bytes"]).as_py() or 0
                if read_bytes >= most_bytes:
                    return


def _new_rows(batch: pa.RecordBatch, known: pa.Array[Any]) -> pa.RecordBatch:
    return batch.filter(pc.invert(pc.is_in(batch["doc_id"], known)))


def _read_ids(before: OutputFolder, shard: str) -> pa.Array[Any]:
    with before.open_ranges(shard) as source, pq.ParquetFile(source) as file:
        return file.read(["doc_id"])["doc_id"].combine_chunks()


def _read_shard(out: OutputFolder, known: pa.Array[Any], vocab_size: int, shard: str) -> NewText:
    sums, ids = [PROJECT_SUMS.empty_table()], np.zeros(vocab_size, np.int64)
    for batch in _batches(out, shard):
        rows = _new_rows(batch, known)
        ids += np.bincount(flat_ids(rows["token_ids"]), minlength=vocab_size)
        sums.append(sum_projects(pa.Table.from_batches([rows])))
    return NewText(add_project_sums(sums), ids)


def _batches(out: OutputFolder, shard: str) -> Iterator[pa.RecordBatch]:
    with out.open_ranges(shard) as source, pq.ParquetFile(source) as file:
        yield from file.iter_batches(batch_size=_ROWS_A_BATCH, columns=_COLUMNS, use_threads=False)
