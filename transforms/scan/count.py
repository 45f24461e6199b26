"""Counting: what the C++ lexer sees in each documents shard, as partial counts in separate files.

As many shards are scanned at a time as there are threads. Terms are counted with their project. The partial counts stay
in `counts/parts/`, so that a later run scans only the shards that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.tables import DOCUMENTS
from schemas.units import Stage, Unit, UnitReceipt
from transforms.scan.kinds import Family, part_path
from transforms.scan.tables import write_counts
from transforms.scan.words import write_partitions
from transforms.storage.folder import OutputFolder, naming_damage
from transforms.units.batches import read_columns
from transforms.units.execution import count_unit, run_unit
from transforms.units.flow import Batch, FlatMap, Flow
from transforms.units.prefetch import prefetch

_COLUMNS = pa.schema([DOCUMENTS.field(name) for name in ("project", "content")])

BATCH_UNITS = 1 << 10
"""How many elements are spread over threads at once, at most."""

In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(frozen=True, kw_only=True)
class ScanSettings:
    """What a worker needs to scan.

    Attributes:
        out: The output folder.
        scanner_config: JSON for `cppmill_core.Scanner`: patterns, word partitions, candidates, morphemes.
        word_partitions: Number of partitions of words, and of lines.
        lines: Whether lines are counted, for superwords.
        threads: Threads of a process.
        memory_bytes: What the tables of words, lines and identifiers in a process may take; more goes to temporary
            files.
    """

    out: OutputFolder
    scanner_config: str
    word_partitions: int
    lines: bool = False
    threads: int = 1
    memory_bytes: int


def scan_documents(settings: ScanSettings, batch_units: int = BATCH_UNITS) -> Flow:
    """Return the flow that scans planned units and yields their receipts.

    Not `RunUnits`: the threads and the memory of a process are shared among units that are scanned together.

    Args:
        settings: The scanner's configuration.
        batch_units: How many units are taken at once.
    """
    scan = partial(scan_units, settings=settings)
    return Batch(name="Batch", size=batch_units), FlatMap(name="Scan", function=scan, gives=UnitReceipt)


def scan_units(units: Sequence[Unit], settings: ScanSettings) -> list[UnitReceipt]:
    """Count documents shards, as many at a time as there are threads, the largest first; return their receipts."""
    at_once = max(1, min(settings.threads, len(units)))
    threads, memory_bytes = settings.threads // at_once, settings.memory_bytes // at_once
    scan = partial(scan_unit, settings=settings, threads=threads, memory_bytes=memory_bytes)
    largest_first = sorted(units, key=lambda unit: (-unit.num_bytes, unit.key))
    scanned = map_in_threads(partial(run_unit, out=settings.out, work=scan), largest_first, at_once)
    return [count_unit(finished) for finished in scanned]


def scan_unit(unit: Unit, settings: ScanSettings, *, threads: int, memory_bytes: int) -> UnitReceipt:
    """Count one documents shard, publish its partial counts and return its receipt: one output for each family.

    Args:
        unit: Its payload names the shard: `{"shard": path relative to OUT, "inputs": {shard: SHA-256}}`.
        settings: The scanner's configuration.
        threads: Threads for this shard.
        memory_bytes: Memory for this shard.

    Raises:
        IntegrityError: If the shard is damaged.
    """
    out = settings.out
    out.check_bytes(unit.payload["inputs"])
    scanner = cppmill_core.Scanner(settings.scanner_config, threads, memory_bytes=memory_bytes, spill_dir=out.temporary)
    with out.open_local(unit.payload["shard"]) as shard:
        for batch in read_documents([shard], read_ahead=threads > 1):
            scanner.add(batch)
    writers = dict(sorted(_writers(scanner.finish())))
    outputs = tuple(out.publish(part_path(family, unit.key), write) for family, write in writers.items())
    return UnitReceipt(stage=Stage.SCAN, key=unit.key, outputs=outputs, totals={}, inputs=unit.payload["inputs"])


def _writers(counts: dict[str, Any]) -> Iterator[tuple[Family, Callable[[Path], int]]]:
    """Yield what writes the counts of each family to a file."""
    for name, found in counts.items():
        family = Family(name)
        if family.is_partitioned:
            yield family, partial(write_partitions, words=found)
        else:
            yield family, partial(write_counts, table=pa.Table.from_batches([found]))


def read_documents(shards: Iterable[Path], *, read_ahead: bool) -> Iterator[pa.RecordBatch]:
    """Return the documents of shards: project, content.

    Args:
        shards: Their paths.
        read_ahead: Read the next batch, on a thread of its own, while one is in use.
    """
    batches = (batch for shard in shards for batch in _read_shard(shard))
    return prefetch(batches) if read_ahead else batches


def _read_shard(shard: Path) -> Iterator[pa.RecordBatch]:
    with naming_damage(str(shard)), pq.ParquetFile(shard) as file:
        yield from read_columns(file, _COLUMNS)


def map_in_threads(function: Callable[[In], Out], elements: Iterable[In], threads: int) -> list[Out]:
    """Return what a function gives for each element, in order, computed on `threads` threads."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, elements))
