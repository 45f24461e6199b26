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


def read_new_text(
    out: OutputFolder,
    gained: Iterable[str],
    before: OutputFolder,
    lost: Iterable[str],
    *,
    vocab_size: int,
    threads: int,
) -> NewText:
    """Read the documents of some token shards of a version but those whose content is in shards that it lost.

    Takes about 100 bytes of memory per document of the lost shards.

    Args:
        out: The version.
        gained: The paths of the token shards that the version before lacks.
        before: The version before.
        lost: The paths of the token shards that it alone has.
        vocab_size: Number of ids of the version's tokenizer.
        threads: Shards read at once.
    """
    tables = [_read_known(before, shard) for shard in lost]
    known = pa.chunked_array(tables, pa.string()).combine_chunks()
    read = partial(_read_shard, out, known, vocab_size)
    sums, ids = [PROJECT_SUMS.empty_table()], np.zeros(vocab_size, np.int64)
    with ThreadPoolExecutor(threads) as pool:
        for part in pool.map(read, gained):
            sums.append(part.projects)
            ids += part.ids
    return NewText(add_project_sums(sums), ids)


def _read_known(before: OutputFolder, shard: str) -> pa.Array[Any]:
    with before.open_ranges(shard) as source, pq.ParquetFile(source) as file:
        return file.read(["doc_id"])["doc_id"].combine_chunks()


def _read_shard(out: OutputFolder, known: pa.Array[Any], vocab_size: int, shard: str) -> NewText:
    sums, ids = [PROJECT_SUMS.empty_table()], np.zeros(vocab_size, np.int64)
    for batch in _batches(out, shard):
        rows = batch.filter(pc.invert(pc.is_in(batch["doc_id"], known)))
        ids += np.bincount(flat_ids(rows["token_ids"]), minlength=vocab_size)
        sums.append(sum_projects(pa.Table.from_batches([rows])))
    return NewText(add_project_sums(sums), ids)


def _batches(out: OutputFolder, shard: str) -> Iterator[pa.RecordBatch]:
    with out.open_ranges(shard) as source, pq.ParquetFile(source) as file:
        yield from file.iter_batches(batch_size=_ROWS_A_BATCH, columns=_COLUMNS, use_threads=False)
