"""Scan: count what the C++ lexer sees in documents shards, shard by shard, and merge the counts.

One call into the native core a shard. The partial counts stay in `counts/parts/`, terms with their project, so that a
later run counts only the shards that changed; words leave a shard partitioned by CRC-32 and are merged a partition at
a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.tables import MORPHEMES, NAMESPACES, TERMS, WORDS, required
from schemas.units import OutputFile, Stage, Unit, UnitReceipt
from transforms.batches import bounded_batches
from transforms.storage import OutputFolder

STATISTICS = pa.schema([required("name", pa.string()), required("value", pa.uint64())])
"""Partial and merged content statistics: summed by name."""

_KEYS = {
    "terms": ["term", "category"],
    "morphemes": ["morpheme", "position"],
    "namespaces": ["namespace"],
}
_MERGED = {"terms": TERMS, "morphemes": MORPHEMES, "namespaces": NAMESPACES}


@dataclass(frozen=True, kw_only=True)
class ScanSettings:
    """What a worker needs to scan.

    Attributes:
        out: The output folder.
        scanner_config: JSON for `cppmill_core.Scanner`: pattern, candidates, morphemes.
        word_partitions: Number of word partitions.
        threads: Threads of the native core.
    """

    out: OutputFolder
    scanner_config: str
    word_partitions: int
    threads: int = 1


def scan_unit(unit: Unit, settings: ScanSettings) -> UnitReceipt:
    """Count one documents shard and publish its partial counts, unless they stand.

    Args:
        unit: Its payload names the shard: `{"shard": path relative to OUT, "inputs": {shard: SHA-256}}`.
        settings: The scanner's configuration.

    Returns:
        The published receipt; one output a kind of count.
    """
    standing = settings.out.find_receipt(unit)
    if standing is not None:
        return standing
    scanner = cppmill_core.Scanner(settings.scanner_config, threads=settings.threads)
    with pq.ParquetFile(settings.out.path(unit.payload["shard"])) as shard:
        for batch in shard.iter_batches(batch_size=4096, columns=["project", "content"]):
            scanner.add(batch)
    counts = scanner.finish()
    words = counts.pop("words").read_all()
    tables = {"words": words, **{kind: pa.Table.from_batches([batch]) for kind, batch in counts.items()}}
    outputs = tuple(_publish_part(unit, kind, table, settings.out) for kind, table in sorted(tables.items()))
    receipt = UnitReceipt(stage=Stage.SCAN, key=unit.key, outputs=outputs, totals={}, inputs=unit.payload["inputs"])
    settings.out.publish_receipt(receipt)
    return receipt


def read_partial_counts(receipt: UnitReceipt, settings: ScanSettings) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield a scanned shard's counts as (kind, batch), each batch at most 8 MiB.

    The kind of words is `words-NNN`, one a partition; the others are `terms`, `morphemes`, `namespaces`, `statistics`.
    Every kind comes once at least, empty where nothing was counted, so that each merged file is written.
    """
    for kind in count_kinds(settings.word_partitions):
        yield kind, empty_counts(kind)
    for output in receipt.outputs:
        kind = Path(output.path).name.split("-")[0]
        table = pq.read_table(settings.out.path(output.path), partitioning=None)
        if kind == "words":
            yield from _word_batches(table)
        else:
            yield from ((kind, batch) for batch in bounded_batches(table))


def merge_counts(kind: str, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Merge partial counts of one kind: sums by key, distinct projects, sorted bytewise by key.

    Args:
        kind: `words-NNN`, `terms`, `morphemes`, `namespaces` or `statistics`.
        batches: Partial counts in any order; the result does not depend on it.
    """
    schema = empty_counts(kind).schema
    table = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema)
    if kind.startswith("words"):
        return _sum_by(table, ["word"], ["count"]).cast(WORDS)
    if kind == "statistics":
        return _sum_by(table, ["name"], ["value"]).cast(STATISTICS)
    keys = _KEYS[kind]
    sums = _sum_by(table, [*keys, "project"], ["hits", "documents"])
    grouped = sums.group_by(keys, use_threads=False).aggregate(
        [("hits", "sum"), ("documents", "sum"), ("project", "count")]
    )
    merged = grouped.rename_columns([*keys, "hits", "documents", "projects"])
    return merged.sort_by([(key, "ascending") for key in keys]).cast(_MERGED[kind])


def count_kinds(word_partitions: int) -> list[str]:
    """Return every kind of count, so that each merged file is written even when nothing was counted."""
    return [*(f"words-{number:03d}" for number in range(word_partitions)), *_KEYS, "statistics"]


def empty_counts(kind: str) -> pa.RecordBatch:
    """Return an empty batch of partial counts of one kind."""
    if kind.startswith("words"):
        schema = WORDS
    elif kind == "statistics":
        schema = STATISTICS
    else:
        columns: dict[str, pa.DataType] = dict.fromkeys((*_KEYS[kind], "project"), pa.string())
        schema = pa.schema({**columns, "hits": pa.uint64(), "documents": pa.uint64()})
    return pa.RecordBatch.from_pylist([], schema=schema)


def merged_path(kind: str) -> str:
    """Return where the merged counts of one kind stand, relative to OUT."""
    if kind.startswith("words-"):
        return f"counts/words/part-{kind.removeprefix('words-')}.parquet"
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
        """Scan each unit."""
        scan = beam.Map(scan_unit, self.settings).with_output_types(UnitReceipt)
        receipts: beam.PCollection[UnitReceipt] = units | "Scan" >> scan
        return receipts


@dataclass(kw_only=True)
class MergeCounts(beam.PTransform[beam.PCollection[UnitReceipt], beam.PCollection[str]]):
    """Merge the partial counts of scanned shards and publish them: PCollection[UnitReceipt] to PCollection[str].

    Attributes:
        settings: Output folder and number of word partitions.
    """

    settings: ScanSettings

    def expand(self, receipts: beam.PCollection[UnitReceipt]) -> beam.PCollection[str]:
        """Read the parts, group them by kind, merge, publish."""
        counted = tuple[str, pa.RecordBatch]
        published: beam.PCollection[str] = (
            receipts
            | "Read" >> beam.FlatMap(read_partial_counts, self.settings).with_output_types(counted)
            | "Group" >> beam.GroupByKey()
            | "Merge" >> beam.Map(_publish_merged, self.settings.out).with_output_types(str)
        )
        return published


def _publish_merged(counted: tuple[str, Iterable[pa.RecordBatch]], out: OutputFolder) -> str:
    kind, batches = counted
    table = merge_counts(kind, batches)
    if kind == "statistics":
        return out.publish_bytes(
            merged_path(kind), json.dumps(nest_statistics(table), indent=1, sort_keys=True).encode()
        ).path
    return out.publish(merged_path(kind), parquet_writer(table)).path


def _publish_part(unit: Unit, kind: str, table: pa.Table, out: OutputFolder) -> OutputFile:
    return out.publish(f"counts/parts/{kind}-{unit.key}.parquet", parquet_writer(table))


def parquet_writer(table: pa.Table) -> Callable[[Path], int]:
    """Return what `OutputFolder.publish` wants to write `table` as Parquet."""

    def write(path: Path) -> int:
        pq.write_table(table, path, compression="zstd", use_dictionary=False, row_group_size=1 << 18)
        return table.num_rows

    return write


def _word_batches(table: pa.Table) -> Iterator[tuple[str, pa.RecordBatch]]:
    numbers = table.column("partition").to_numpy()
    for number in sorted(set(numbers.tolist())):
        start, stop = numbers.searchsorted([number, number + 1])
        words = table.slice(start, stop - start).select(["word", "count"])
        yield from ((f"words-{number:03d}", batch) for batch in bounded_batches(words))


def _sum_by(table: pa.Table, keys: list[str], values: list[str]) -> pa.Table:
    grouped = table.group_by(keys, use_threads=False).aggregate([(value, "sum") for value in values])
    return grouped.rename_columns([*keys, *values]).sort_by([(key, "ascending") for key in keys])
