"""Merging sorted runs of rows, however many and large, with a batch or two of each in memory.

A run is sorted bytewise by its keys and has each key once. Runs are merged block by block: of every run, the rows up to
the smallest last key in memory are taken, so each block comes before the next one, and rows with equal keys are in one
block. More than `MAX_RUNS` runs, or fewer where few files may be open, go through temporary files.
"""

from __future__ import annotations

import bisect
import resource
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.units.batches import check_columns

MAX_RUNS = 128
"""The most runs, and so open files, of one merge."""

_OTHER_FILES = 24
"""How many files all else may open during a merge."""

_OUTPUT_FILES = 2
"""How many files a merge has open besides its runs."""

BATCH_ROWS = 1 << 12
"""Rows that are read at once of a run; at most one and a half times as many are in memory."""

Run = Iterator[pa.RecordBatch]
Combine = Callable[[pa.Table], pa.Table]
_Key = tuple[Any, ...]
_AnyRun = TypeVar("_AnyRun")


def read_run(open_file: Callable[[], AbstractContextManager[pa.NativeFile]], schema: pa.Schema) -> Run:
    """Yield the rows of a Parquet file in batches; the file is opened when the first is asked for."""
    with open_file() as source, pq.ParquetFile(source) as file:
        check_columns(file.schema_arrow, schema)
        for batch in file.iter_batches(BATCH_ROWS, columns=schema.names, use_threads=False):
            if any(batch.column(field.name).null_count and not field.nullable for field in schema):
                raise pa.ArrowInvalid("it has no value where there must be one")
            yield batch.cast(schema)


def merge_runs(
    runs: Sequence[Run], *, keys: Sequence[str], schema: pa.Schema, combine: Combine, folder: Path
) -> Iterator[pa.Table]:
    """Yield the rows of all runs in order, in tables of any size.

    Args:
        runs: In any order.
        keys: The columns that runs are sorted by; they have no nulls.
        schema: The columns.
        combine: Sorts the rows of a block, and joins those with equal keys if there can be any; it keeps the columns.
        folder: Where to put temporary files.

    Raises:
        pa.ArrowInvalid: If a run is found not to be sorted.
    """

    def store(runs: Sequence[Run], path: Path) -> Run:
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for block in _blocks(runs, keys, schema):
                writer.write_table(combine(block))
        return read_run(partial(pa.OSFile, str(path), mode="r"), schema)

    with few_runs(runs, store, folder) as few:
        yield from map(combine, _blocks(few, keys, schema))


def merges_at_once(threads: int, num_runs: int) -> int:
    """Return how many merges of this many runs, at most one a thread, may have their files open at once."""
    return max(1, min(threads, _free_files() // (min(num_runs, _most_runs()) + _OUTPUT_FILES)))


def _most_runs() -> int:
    return max(2, min(MAX_RUNS, _free_files() - _OUTPUT_FILES))


def _free_files() -> int:
    """Return how many files merges may have open besides those that this process has now, by its limit."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (sys.maxsize if limit == resource.RLIM_INFINITY else limit) - num_open_files() - _OTHER_FILES


def num_open_files() -> int:
    """Return how many files this process has open."""
    return len(list(Path("/dev/fd").iterdir()))


@contextmanager
def few_runs(
    runs: Sequence[_AnyRun], store: Callable[[Sequence[_AnyRun], Path], _AnyRun], folder: Path
) -> Iterator[Sequence[_AnyRun]]:
    """Give as few runs as one merge may have, with the rows of all.

    Args:
        runs: In order.
        store: Merges runs into a file, and returns the run in it.
        folder: Where to put temporary files; they are there until the end of the `with`.
    """
    with tempfile.TemporaryDirectory(dir=folder) as name:
        numbers, most = count(), _most_runs()
        while len(runs) > most:
            groups = [runs[start : start + most] for start in range(0, len(runs), most)]
            runs = [store(group, Path(name, str(next(numbers)))) for group in groups]
        yield runs


def _blocks(runs: Iterable[Run], keys: Sequence[str], schema: pa.Schema) -> Iterator[pa.Table]:
    heads = [_Head(run, keys, schema) for run in runs]
    while heads := [head for head in heads if head.fill()]:
        bound = min(head.last for head in heads)
        taken = [head.take(bound) for head in heads if head.first <= bound]
        if not taken:
            raise pa.ArrowInvalid(f"the rows of a run are not sorted by {', '.join(keys)}")
        yield pa.Table.from_batches(taken)


class _Head:
    """The rows of a run that are in memory; `first` and `last` are the keys of their ends."""

    first: _Key
    last: _Key

    def __init__(self, run: Run, keys: Sequence[str], schema: pa.Schema) -> None:
        self._run, self._keys, self._rows = run, keys, pa.RecordBatch.from_pylist([], schema)

    def fill(self) -> bool:
        """Read on if few rows are left, so that a block has many rows of each run; False at the end of the run."""
        while self._rows.num_rows < max(1, BATCH_ROWS // 2) and (batch := next(self._run, None)) is not None:
            self._rows = pa.concat_batches([self._rows, batch])  # type: ignore[attr-defined]  # the stubs lack it
        if self._rows.num_rows:
            self.first, self.last = self._key(0), self._key(self._rows.num_rows - 1)
        return self._rows.num_rows > 0

    def take(self, bound: _Key) -> pa.RecordBatch:
        """Take the rows up to a key."""
        rows = range(self._rows.num_rows)
        end = bisect.bisect_right(rows, bound, key=self._key) if bound < self.last else len(rows)
        taken, self._rows = self._rows.slice(0, end), self._rows.slice(end)
        return taken

    def _key(self, row: int) -> _Key:
        return tuple(self._rows.column(key)[row].as_py() for key in self._keys)
