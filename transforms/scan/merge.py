"""Merging the counts of all shards into one file per kind.

The engine groups and shuffles references to the files of partial counts, never counts. Words and lines are merged one
partition at a time (`transforms.scan.words`), other counts by one worker per family (`transforms.scan.tables`); both as
they are read, with a batch of each file in memory. If there are more than `MAX_PARTS` shards, groups are merged first,
so no list of references grows with the corpus.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import sha256_json
from schemas.units import UnitReceipt
from transforms.scan.count import BATCH_UNITS, ScanSettings, map_in_threads
from transforms.scan.kinds import PARTS, Family, Kind, part_family
from transforms.scan.tables import merge_counts, nest_statistics, partial_schema, write_counts, write_sums
from transforms.scan.words import WordRun, find_runs, merge_words
from transforms.storage.folder import CACHE, OutputFolder, naming_damage
from transforms.units.flow import Batch, FlatMap, Flow, GroupByKey
from transforms.units.sorted_runs import Run, merges_at_once, read_run

GROUPS = f"{CACHE}/merged"
"""The folder of merged groups, relative to OUT, during a merge."""

MAX_PARTS = 1 << 10
"""How many shards' counts are merged at once, on average; if there are more, groups of this many are merged first."""

PartRows = tuple[str, list[int]]
"""A file of partial counts, relative to OUT, and its row groups of one partition; none for unpartitioned families."""

GroupKey = tuple[str, int]
"""The name of a kind of count and the number of a group of parts."""


def merge_shards(settings: ScanSettings, num_shards: int) -> Flow:
    """Return the flow that merges the partial counts of scanned shards: from unit receipts to paths of merged files.

    Args:
        settings: Output folder and number of word partitions.
        num_shards: How many shards there are; of more than `MAX_PARTS`, groups are merged first.
    """
    refer = FlatMap(name="Refer", function=partial(refer_counts, settings=settings), gives=tuple[str, PartRows])
    groups: Flow = ()
    if (number := count_groups(num_shards)) > 1:
        publish = partial(publish_groups, settings=settings)
        groups = (
            *_list_parts("ByGroup", number),
            FlatMap(name="MergeGroups", function=publish, gives=tuple[str, PartRows]),
        )
    merge = FlatMap(name="Merge", function=partial(publish_merged, settings=settings), gives=str)
    return refer, *groups, *_list_parts("ByKind", 1), merge


def _list_parts(name: str, groups: int) -> Flow:
    """Return the flow that brings together the references to parts of a group of a kind, several groups at a time."""
    key = partial(key_part, groups=groups)
    return (
        FlatMap(name=f"Key{name}", function=key, gives=tuple[GroupKey, PartRows]),
        GroupByKey(name=f"Group{name}"),
        FlatMap(name=f"List{name}", function=_sorted_parts, gives=tuple[str, list[PartRows]]),
        Batch(name=f"Batch{name}", size=BATCH_UNITS),
    )


def _sorted_parts(grouped: tuple[GroupKey, Iterable[PartRows]]) -> Iterator[tuple[str, list[PartRows]]]:
    (kind, _), parts = grouped
    yield kind, sorted(parts)


def refer_counts(receipt: UnitReceipt, settings: ScanSettings) -> Iterator[tuple[str, PartRows]]:
    """Yield where the counts of a scanned shard are, with every kind, so that each merged file is written.

    Raises:
        IntegrityError: If a file of them is damaged.
    """
    settings.out.check_bytes(receipt.files)
    for output in receipt.outputs:
        family = part_family(output.path)
        if not family.is_partitioned:
            yield Kind(family).name, (output.path, [])
            continue
        with settings.out.open_ranges(output.path) as file:
            runs = find_runs(file, where=settings.out.where(output.path))
        for number in range(settings.word_partitions):
            yield Kind(family, number).name, (output.path, list(runs.get(number, ())))


def count_groups(num_shards: int) -> int:
    """Return in how many groups the parts of this many shards are merged first; 1 if all are merged at once."""
    return max(1, math.ceil(num_shards / MAX_PARTS))


def key_part(counted: tuple[str, PartRows], groups: int) -> Iterator[tuple[GroupKey, PartRows]]:
    """Yield a part, which comes with the name of its kind, keyed by its group, which its path decides."""
    kind, part = counted
    yield (kind, zlib.crc32(part[0].encode()) % groups), part


def publish_groups(groups: Sequence[tuple[str, list[PartRows]]], settings: ScanSettings) -> list[tuple[str, PartRows]]:
    """Merge the parts of groups into parts, several groups at a time, and refer to these, by name of kind."""
    return map_in_threads(partial(_publish_group, out=settings.out), groups, _at_once(groups, settings))


def publish_merged(kinds: Sequence[tuple[str, list[PartRows]]], settings: ScanSettings) -> list[str]:
    """Merge the parts of each kind and publish them, several kinds at a time; return the paths."""
    return map_in_threads(partial(_publish_kind, out=settings.out), kinds, _at_once(kinds, settings))


def _at_once(merges: Sequence[tuple[str, list[PartRows]]], settings: ScanSettings) -> int:
    """Return on how many threads to merge."""
    return merges_at_once(settings.threads, max((len(parts) for _, parts in merges), default=0))


def _publish_group(group: tuple[str, list[PartRows]], out: OutputFolder) -> tuple[str, PartRows]:
    """Publish the sum of a group's parts under a name of its own, unless it is there."""
    kind, parts = group
    name = f"{GROUPS}/{kind}-{sha256_json(parts)}.parquet"
    family = Kind.parse(kind).family
    if family.is_partitioned:
        if not out.exists(name):
            with _naming_parts(kind, out):
                out.publish(name, partial(merge_words, _runs(parts, out)))
        with out.open_ranges(name) as file:
            return kind, (name, list(range(pq.read_metadata(file).num_row_groups)))
    if not out.exists(name):
        with _naming_parts(kind, out):
            out.publish(name, partial(write_sums, family=family, runs=_table_runs(family, parts, out)))
    return kind, (name, [])


def _naming_parts(kind: str, out: OutputFolder) -> AbstractContextManager[None]:
    """Name the counts of shards in errors of merging them: which of the files is not sorted is not known."""
    return naming_damage(f"{out.where(PARTS)}/{kind.partition('-')[0]}-*.parquet")


def _publish_kind(counted: tuple[str, list[PartRows]], out: OutputFolder) -> str:
    """Publish the merged counts of a kind and return their path."""
    name, parts = counted
    with _naming_parts(name, out):
        return _publish_sum(Kind.parse(name), parts, out)


def _publish_sum(kind: Kind, parts: list[PartRows], out: OutputFolder) -> str:
    if kind.family.is_partitioned:
        return out.publish(kind.merged_path, partial(merge_words, _runs(parts, out))).path
    table = merge_parts(kind.family, parts, out, out.temporary)
    if kind.family is Family.STATISTICS:
        data = json.dumps(nest_statistics(table), indent=1, sort_keys=True).encode()
        return out.publish_bytes(kind.merged_path, data).path
    return out.publish(kind.merged_path, partial(write_counts, table=table)).path


def merge_parts(family: Family, parts: Iterable[PartRows], out: OutputFolder, folder: Path) -> pa.Table:
    """Merge partial counts of OUT, of a family that is not partitioned; temporary files go into a folder."""
    return merge_counts(family, _table_runs(family, parts, out), folder)


def _runs(parts: Iterable[PartRows], out: OutputFolder) -> list[WordRun]:
    return [
        WordRun(open_file=partial(out.open_ranges, path), row_groups=tuple(row_groups))
        for path, row_groups in parts
        if row_groups
    ]


def _table_runs(family: Family, parts: Iterable[PartRows], out: OutputFolder) -> list[Run]:
    return [read_run(partial(out.open_ranges, path), partial_schema(family)) for path, _ in parts]
