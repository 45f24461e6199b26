"""Word counts as Parquet: runs, merged row group by row group, whatever their number.

A run is sorted by word and has each word once. The file of a shard holds one run per partition, in its own row groups.
Runs are merged by the native core as they are read, with one batch of each in memory; many of them go through temporary
files (`sorted_runs.few_runs`). Row groups have a fixed number of rows, so the bytes do not depend on the runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.tables import PARTITIONED_WORDS, WORDS
from transforms.units.batches import check_columns, fixed_row_groups
from transforms.units.sorted_runs import few_runs

ROW_GROUP_ROWS = 1 << 18
_BATCH_ROWS = 1 << 14


@dataclass(frozen=True, kw_only=True)
class WordRun:
    """Where a run is.

    Attributes:
        open_file: Opens a Parquet file with the columns of `WORDS`.
        row_groups: Those that hold the run, in order.
    """

    open_file: Callable[[], AbstractContextManager[pa.NativeFile]]
    row_groups: tuple[int, ...]

    def open(self) -> pa.RecordBatchReader:
        """Return a reader of the words and counts."""
        return pa.RecordBatchReader.from_batches(WORDS, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self.row_groups:
            with self.open_file() as source, pq.ParquetFile(source) as file:
                batches = file.iter_batches(
                    _BATCH_ROWS, row_groups=list(self.row_groups), columns=WORDS.names, use_threads=False
                )
                yield from (batch.cast(WORDS) for batch in batches)


def write_words(path: Path, words: Iterable[pa.RecordBatch]) -> int:
    """Write a run of words to a Parquet file and return the number of rows."""
    with _writer(path, WORDS) as writer:
        return sum(_write(writer, table) for table in fixed_row_groups(words, ROW_GROUP_ROWS))


def write_partitions(path: Path, words: Iterable[pa.RecordBatch]) -> int:
    """Write the words of a shard to a Parquet file, one run per partition, and return the number of rows.

    Args:
        path: Where to.
        words: Batches of `PARTITIONED_WORDS`, in order, each of one partition.
    """
    with _writer(path, PARTITIONED_WORDS) as writer:
        partitions = groupby(words, lambda batch: batch.column("partition")[0].as_py())
        return sum(
            _write(writer, table) for _, batches in partitions for table in fixed_row_groups(batches, ROW_GROUP_ROWS)
        )


def find_runs(file: pa.NativeFile, *, where: str) -> dict[int, tuple[int, ...]]:
    """Return the row groups of each partition in a file of `write_partitions`.

    Raises:
        IntegrityError: If the file is of another kind.
        pa.ArrowInvalid: If it lacks a column.
    """
    row_groups: dict[int, list[int]] = {}
    metadata = pq.read_metadata(file)
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(0).statistics
        if statistics is None or not isinstance(statistics.min, int):
            raise IntegrityError(
                f"{where}: row group {number} has no statistics of its partition; delete the file and run again"
            )
        row_groups.setdefault(statistics.min, []).append(number)
    check_columns(metadata.schema.to_arrow_schema(), WORDS)
    return {partition: tuple(groups) for partition, groups in row_groups.items()}


def merge_words(runs: Sequence[WordRun], path: Path) -> int:
    """Merge runs into one Parquet file, adding up the counts of words that recur, and return the number of rows.

    Args:
        runs: Any number, in any order; the file does not depend on it.
        path: Where to; temporary files go into the same folder.
    """
    with few_runs(runs, _merge_to_run, path.parent) as few:
        return write_words(path, cppmill_core.merge_words([run.open() for run in few]))


def _merge_to_run(runs: Sequence[WordRun], path: Path) -> WordRun:
    merge_words(runs, path)
    return WordRun(
        open_file=partial(pa.OSFile, os.fspath(path), mode="r"),
        row_groups=tuple(range(pq.read_metadata(path).num_row_groups)),
    )


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False, write_statistics=schema.names[:1])


def _write(writer: pq.ParquetWriter, table: pa.Table) -> int:
    writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    return table.num_rows
