"""Counts of documents that are in memory: what a scanner has found, and sums of that, in any order.

The same counts as those of the files of a run (`transforms.scan.merge`), where they are few enough to be held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cppmill_core
import pyarrow as pa

from schemas.tables import WORDS
from transforms.scan.kinds import Family, Kind
from transforms.scan.tables import count_projects, sum_by_key
from transforms.units.batches import bounded_batches


def take_counts(scanner: cppmill_core.Scanner, family: Family) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the counts of a family that a scanner has found since the last time, with the name of their kind.

    Args:
        scanner: Starts anew.
        family: What is wanted of it: words and lines are yielded by partition, others are one kind.
    """
    found = scanner.finish()[str(family)]
    if not family.is_partitioned:
        if found.num_rows:
            yield Kind(family).name, found
        return
    for batch in found:
        yield Kind(family, batch.column("partition")[0].as_py()).name, batch.select(WORDS.names)


def add_counts(family: Family, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return counts added up: partial counts of one kind, as `take_counts` yields them, to one batch, sorted."""
    if family.is_partitioned:
        runs = [pa.RecordBatchReader.from_batches(WORDS, [batch.cast(WORDS)]) for batch in batches]
        return _one_batch(cppmill_core.merge_words(runs).read_all())
    return _one_batch(sum_by_key(pa.Table.from_batches(batches), family))


def finish_counts(family: Family, counts: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the counts of a kind as the merged files of a run have them, in batches of bounded size."""
    table = pa.Table.from_batches([counts])
    if not family.is_partitioned and family is not Family.STATISTICS:
        table = count_projects(table, family)
    yield from bounded_batches(table)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]
