"""Scan: count what the C++ lexer sees in documents shards, shard by shard, and merge the counts.

As many shards are scanned at a time as there are threads. The partial counts stay in `counts/parts/`, terms with their
project, so that a later run counts only the shards that changed. What is grouped and shuffled are references to these
files, never counts: words are merged a partition at a time, as they are read (`transforms.scan.words`). Of more than
`MAX_PARTS` shards, groups are merged first, so that no list of references grows with the corpus.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import apache_beam as beam
import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import sha256_json
from schemas.tables import MORPHEMES, NAMESPACES, TERMS, required
from schemas.units import OutputFile, Stage, Unit, UnitReceipt
from transforms.scan.words import MAX_RUNS, WordRun, find_runs, merge_words, write_partitions
from transforms.storage.folder import CACHE, OutputFolder
from transforms.units.execution import count_unit, run_unit
from transforms.units.prefetch import ahead

GROUPS = f"{CACHE}/merged"
"""Where merged groups stand, relative to OUT, while a merge is under way."""

MAX_PARTS = 1 << 10
"""How many shards' counts are merged at once, on average; those of more are merged in groups of so many first."""

STATISTICS = pa.schema([required("name", pa.string()), required("value", pa.uint64())])
"""Partial and merged content statistics: summed by name."""

PartRows = tuple[str, list[int]]
"""A file of partial counts, relative to OUT, and the row groups of the words that are meant; none of other kinds."""

GroupKey = tuple[str, int]
"""A kind of count and the number of a group of parts."""

_PARTITIONED = ("words", "units")
"""What is merged a partition at a time; there are always words."""
_KEYS = {
    "terms": ["term", "category"],
    "morphemes": ["morpheme", "position"],
    "namespaces": ["namespace"],
}
_MERGED = {"terms": TERMS, "morphemes": MORPHEMES, "namespaces": NAMESPACES}
_BATCH_UNITS = 1 << 10
"""How many elements are spread over threads at once, at most."""

In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(frozen=True, kw_only=True)
class ScanSettings:
    """What a worker needs to scan.

    Attributes:
        out: The output folder.
        scanner_config: JSON for `cppmill_core.Scanner`: patterns, word partitions, candidates, morphemes.
        word_partitions: Number of word partitions.
        units: Whether units are counted.
        threads: Threads of a process.
        memory_bytes: What the tables of words, units and identifiers in a process may take; more goes to temporary
            files.
    """

    out: OutputFolder
    scanner_config: str
    word_partitions: int
    units: bool = False
    threads: int = 1
    memory_bytes: int = 2 << 30


def scan_units(units: Sequence[Unit], settings: ScanSettings) -> list[UnitReceipt]:
    """Count documents shards, as many at a time as there are threads, the largest first; return their receipts."""
    at_once = max(1, min(settings.threads, len(units)))
    threads, memory_bytes = settings.threads // at_once, settings.memory_bytes // at_once
    scan = partial(scan_unit, settings=settings, threads=threads, memory_bytes=memory_bytes)
    largest_first = sorted(units, key=lambda unit: (-unit.num_bytes, unit.key))
    scanned = map_in_threads(partial(run_unit, out=settings.out, work=scan), largest_first, at_once)
    return [count_unit(finished) for finished in scanned]


def scan_unit(unit: Unit, settings: ScanSettings, *, threads: int, memory_bytes: int) -> UnitReceipt:
    """Count one documents shard, publish its partial counts and return its receipt.

    Args:
        unit: Its payload names the shard: `{"shard": path relative to OUT, "inputs": {shard: SHA-256}}`.
        settings: The scanner's configuration.
        threads: Threads for this shard.
        memory_bytes: Memory for this shard.

    Returns:
        The receipt; one output for each kind of count.
    """
    scanner = cppmill_core.Scanner(
        settings.scanner_config, threads, memory_bytes=memory_bytes, spill_dir=settings.out.temporary
    )
    with settings.out.open_local(unit.payload["shard"]) as shard:
        for batch in read_documents([shard], read_ahead=threads > 1):
            scanner.add(batch)
    counts = scanner.finish()
    partitioned = [kind for kind in _PARTITIONED if kind in counts]
    writers: dict[str, Callable[[Path], int]] = {
        kind: partial(write_partitions, words=counts.pop(kind)) for kind in partitioned
    }
    writers |= {kind: parquet_writer(pa.Table.from_batches([batch])) for kind, batch in counts.items()}
    outputs = tuple(_publish_part(unit, kind, write, settings.out) for kind, write in sorted(writers.items()))
    return UnitReceipt(stage=Stage.SCAN, key=unit.key, outputs=outputs, totals={}, inputs=unit.payload["inputs"])


def read_documents(shards: Iterable[Path], *, read_ahead: bool) -> Iterator[pa.RecordBatch]:
    """Return the documents of shards: project, content.

    Args:
        shards: Their paths.
        read_ahead: Read the next batch, on a thread of its own, while one is in use.
    """
    batches = (batch for shard in shards for batch in _read_shard(shard))
    return ahead(batches) if read_ahead else batches


def _read_shard(shard: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(shard) as file:
        for number in range(file.num_row_groups):  # each has about 16 MB; batches of rows may have any size
            yield from file.read_row_group(number, columns=["project", "content"], use_threads=False).to_batches()


def refer_counts(receipt: UnitReceipt, settings: ScanSettings) -> Iterator[tuple[str, PartRows]]:
    """Yield where the counts of a scanned shard stand, by kind: all kinds, so that each merged file is written."""
    for output in receipt.outputs:
        kind = Path(output.path).name.split("-")[0]
        if kind not in _PARTITIONED:
            yield kind, (output.path, [])
            continue
        with settings.out.open_ranges(output.path) as file:
            runs = find_runs(file, where=settings.out.where(output.path))
        for number, name in enumerate(partition_kinds(kind, settings.word_partitions)):
            yield name, (output.path, list(runs.get(number, ())))


def merge_counts(kind: str, tables: Iterable[pa.Table]) -> pa.Table:
    """Merge partial counts of one kind: sums by key, distinct projects, sorted bytewise by key.

    Args:
        kind: `terms`, `morphemes`, `namespaces` or `statistics`.
        tables: Partial counts in any order; the result does not depend on it.
    """
    sums = sum_counts(kind, tables)
    if kind == "statistics":
        return sums
    keys = _KEYS[kind]
    grouped = sums.group_by(keys, use_threads=False).aggregate(
        [("hits", "sum"), ("documents", "sum"), ("project", "count")]
    )
    merged = grouped.rename_columns([*keys, "hits", "documents", "projects"])
    return merged.sort_by([(key, "ascending") for key in keys]).cast(_MERGED[kind])


def sum_counts(kind: str, tables: Iterable[pa.Table]) -> pa.Table:
    """Add up partial counts of one kind, projects apart, into one table of partial counts, sorted bytewise.

    Args:
        kind: `terms`, `morphemes`, `namespaces` or `statistics`.
        tables: Partial counts in any order, read `MAX_RUNS` at a time; the result does not depend on it.
    """
    schema = empty_counts(kind).schema
    keys, values = (["name"], ["value"]) if kind == "statistics" else ([*_KEYS[kind], "project"], ["hits", "documents"])
    waiting, total = iter(tables), empty_counts(kind)
    while read := [table.cast(schema) for table in islice(waiting, MAX_RUNS)]:
        total = _sum_by(pa.concat_tables([total, *read]), keys, values).cast(schema)
    return total


def partition_kinds(kind: str, word_partitions: int) -> list[str]:
    """Return the kinds of the partitions of `words` or `units`, in order."""
    return [f"{kind}-{number:03d}" for number in range(word_partitions)]


def count_kinds(settings: ScanSettings) -> list[str]:
    """Return every kind of count."""
    kinds = _PARTITIONED if settings.units else _PARTITIONED[:1]
    partitions = [name for kind in kinds for name in partition_kinds(kind, settings.word_partitions)]
    return [*partitions, *_KEYS, "statistics"]


def empty_counts(kind: str) -> pa.Table:
    """Return an empty table of partial counts of one kind but words."""
    if kind == "statistics":
        return STATISTICS.empty_table()
    columns: dict[str, pa.DataType] = dict.fromkeys((*_KEYS[kind], "project"), pa.string())
    return pa.schema({**columns, "hits": pa.uint64(), "documents": pa.uint64()}).empty_table()


def merged_path(kind: str) -> str:
    """Return where the merged counts of one kind stand, relative to OUT."""
    family, _, number = kind.partition("-")
    if family in _PARTITIONED:
        return f"counts/{family}/part-{number}.parquet"
    return "counts/statistics.json" if kind == "statistics" else f"counts/{kind}.parquet"


def nest_statistics(statistics: pa.Table) -> dict[str, Any]:
    """Return statistics as nested JSON: the name `bytes.code` becomes `{"bytes": {"code": value}}`.

    Where `style.snake` and `style.snake.documents` both occur, the first becomes `{"style": {"snake": {"total": …}}}`.
    """
    values = dict(zip(*statistics.to_pydict().values(), strict=True))
    folders = {name.rpartition(".")[0] for name in values}
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *path, leaf = (f"{name}.total" if name in folders else name).split(".")
        branch = tree
        for folder in path:
            branch = branch.setdefault(folder, {})
        branch[leaf] = value
    return tree


@dataclass(kw_only=True)
class ScanDocuments(beam.PTransform[beam.PCollection[Unit], beam.PCollection[UnitReceipt]]):
    """Scan planned units: PCollection[Unit] to PCollection[UnitReceipt]."""

    settings: ScanSettings

    def expand(self, units: beam.PCollection[Unit]) -> beam.PCollection[UnitReceipt]:
        """Scan the units of a bundle together."""
        receipts: beam.PCollection[UnitReceipt] = (
            units
            | "Batch" >> beam.BatchElements(min_batch_size=_BATCH_UNITS, max_batch_size=_BATCH_UNITS)
            | "Scan" >> beam.FlatMap(scan_units, self.settings).with_output_types(UnitReceipt)
        )
        return receipts


@dataclass(kw_only=True)
class MergeCounts(beam.PTransform[beam.PCollection[UnitReceipt], beam.PCollection[str]]):
    """Merge the partial counts of scanned shards and publish them: PCollection[UnitReceipt] to PCollection[str].

    Attributes:
        settings: Output folder and number of word partitions.
        num_shards: How many shards there are; of more than `MAX_PARTS`, groups are merged first.
    """

    settings: ScanSettings
    num_shards: int

    def expand(self, receipts: beam.PCollection[UnitReceipt]) -> beam.PCollection[str]:
        """Refer to the parts, merge groups of them where there are many, then all of a kind."""
        parts = receipts | "Refer" >> beam.FlatMap(refer_counts, self.settings).with_output_types(tuple[str, PartRows])
        groups = count_groups(self.num_shards)
        if groups > 1:
            publish = beam.FlatMap(publish_groups, self.settings).with_output_types(tuple[str, PartRows])
            parts = parts | "ByGroup" >> _ListParts(groups=groups) | "MergeGroups" >> publish
        published: beam.PCollection[str] = (
            parts
            | "ByKind" >> _ListParts(groups=1)
            | "Merge" >> beam.FlatMap(publish_merged, self.settings).with_output_types(str)
        )
        return published


@dataclass(kw_only=True)
class _ListParts(beam.PTransform[beam.PCollection[tuple[str, PartRows]], beam.PCollection[list[Any]]]):
    """Bring references to parts together: the sorted parts of a group of a kind, several groups at a time."""

    groups: int

    def expand(self, parts: beam.PCollection[tuple[str, PartRows]]) -> beam.PCollection[list[Any]]:
        """Group by kind and group, list, batch."""
        listed: beam.PCollection[list[Any]] = (
            parts
            | "Key" >> beam.Map(key_part, groups=self.groups).with_output_types(tuple[GroupKey, PartRows])
            | "Group" >> beam.GroupByKey()
            | "List" >> beam.MapTuple(_list_parts).with_output_types(tuple[str, list[PartRows]])
            | "Batch" >> beam.BatchElements(min_batch_size=_BATCH_UNITS, max_batch_size=_BATCH_UNITS)
        )
        return listed


def count_groups(num_shards: int) -> int:
    """Return in how many groups the parts of so many shards are merged first; 1 if all are merged at once."""
    return max(1, math.ceil(num_shards / MAX_PARTS))


def key_part(counted: tuple[str, PartRows], groups: int) -> tuple[GroupKey, PartRows]:
    """Return a part, which comes with its kind, behind the group that it is merged in; its path decides which."""
    kind, part = counted
    return (kind, zlib.crc32(part[0].encode()) % groups), part


def _list_parts(key: GroupKey, parts: Iterable[PartRows]) -> tuple[str, list[PartRows]]:
    return key[0], sorted(parts)


def publish_groups(groups: Sequence[tuple[str, list[PartRows]]], settings: ScanSettings) -> list[tuple[str, PartRows]]:
    """Merge the parts of groups into parts, several groups at a time, and refer to these, by kind."""
    return map_in_threads(partial(_publish_group, out=settings.out), groups, settings.threads)


def _publish_group(group: tuple[str, list[PartRows]], out: OutputFolder) -> tuple[str, PartRows]:
    """Publish the sum of a group's parts under a name of its own, unless it stands."""
    kind, parts = group
    name = f"{GROUPS}/{kind}-{sha256_json(parts)}.parquet"
    words = kind.partition("-")[0] in _PARTITIONED
    if not out.exists(name):
        write = (
            partial(merge_words, _runs(parts, out)) if words else parquet_writer(sum_counts(kind, _tables(parts, out)))
        )
        out.publish(name, write)
    if not words:
        return kind, (name, [])
    with out.open_ranges(name) as file:
        return kind, (name, list(range(pq.read_metadata(file).num_row_groups)))


def publish_merged(kinds: Sequence[tuple[str, list[PartRows]]], settings: ScanSettings) -> list[str]:
    """Merge the parts of each kind and publish them, as many kinds at a time as there are threads; return the paths."""
    return map_in_threads(partial(_publish_kind, out=settings.out), kinds, settings.threads)


def _publish_kind(counted: tuple[str, list[PartRows]], out: OutputFolder) -> str:
    kind, parts = counted
    name = merged_path(kind)
    if kind.partition("-")[0] in _PARTITIONED:
        return out.publish(name, partial(merge_words, _runs(parts, out))).path
    table = merge_counts(kind, _tables(parts, out))
    if kind == "statistics":
        return out.publish_bytes(name, json.dumps(nest_statistics(table), indent=1, sort_keys=True).encode()).path
    return out.publish(name, parquet_writer(table)).path


def read_counts(out: OutputFolder, name: str) -> pa.Table:
    """Return a table of counts of OUT."""
    with out.open_local(name) as path:
        return pq.read_table(path, partitioning=None)


def _runs(parts: Iterable[PartRows], out: OutputFolder) -> list[WordRun]:
    return [
        WordRun(open_file=partial(out.open_ranges, path), row_groups=tuple(row_groups))
        for path, row_groups in parts
        if row_groups
    ]


def _tables(parts: Iterable[PartRows], out: OutputFolder) -> Iterator[pa.Table]:
    return (read_counts(out, path) for path, _ in parts)


def _publish_part(unit: Unit, kind: str, write: Callable[[Path], int], out: OutputFolder) -> OutputFile:
    return out.publish(f"counts/parts/{kind}-{unit.key}.parquet", write)


def map_in_threads(function: Callable[[In], Out], elements: Iterable[In], threads: int) -> list[Out]:
    """Return what a function gives for each element, in order, computed on `threads` threads."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, elements))


def parquet_writer(table: pa.Table) -> Callable[[Path], int]:
    """Return what `OutputFolder.publish` wants to write `table` as Parquet."""

    def write(path: Path) -> int:
        pq.write_table(table, path, compression="zstd", use_dictionary=False, row_group_size=1 << 18)
        return table.num_rows

    return write


def _sum_by(table: pa.Table, keys: list[str], values: list[str]) -> pa.Table:
    grouped = table.group_by(keys, use_threads=False).aggregate([(value, "sum") for value in values])
    return grouped.rename_columns([*keys, *values]).sort_by([(key, "ascending") for key in keys])
