"""Whether the counts of shards are laid out as a scan writes them, and are what it counts in the documents.

Merged counts are compared with these (`count_checks`), so what is false in both would contradict nothing else.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from configs.execution import usable_threads
from pipelines.stages.scan import scanner_config
from schemas.options import RunOptions, ScanOptions
from schemas.units import Stage, UnitReceipt
from transforms.records.checks.unit_checks import RunUnits
from transforms.scan.count import read_documents
from transforms.scan.kinds import Family, part_family
from transforms.scan.tables import key_columns
from transforms.storage.folder import naming_damage


def check_parts(run: RunUnits) -> Iterator[str]:
    """Yield the counts of shards that are not in order, in another partition, or of projects that a shard has not."""
    scan = RunOptions.model_validate(run.receipt["configs"]).scan
    for unit in run.by_stage[Stage.SCAN]:
        shard = _read_shard(run, unit)
        for output in unit.outputs if unit.inputs else ():
            where, family = run.out.where(output.path), part_family(output.path)
            with run.out.open_ranges(output.path) as file, pq.ParquetFile(file) as table:
                if family.is_partitioned:
                    yield from (f"{where}: {problem}" for problem in _check_words(table, scan))
                else:
                    rows = table.read(use_threads=False)
                    yield from (f"{where}: {problem}" for problem in _check_rows(rows, family, shard))


def _read_shard(run: RunUnits, unit: UnitReceipt) -> pa.Table | None:
    """Return projects and sizes of the documents of a unit; None if it has no shard, or none in the run any more."""
    found = []
    for counted, digest in unit.inputs.items():
        name = run.find_documents(counted, digest)
        if name is None:
            return None
        with run.out.open_ranges(name) as file, pq.ParquetFile(file) as table:
            found.append(table.read(["project", "num_bytes"], use_threads=False))
    return pa.concat_tables(found) if found else None


def _check_words(table: pq.ParquetFile, scan: ScanOptions) -> Iterator[str]:
    """Check that each row group has words of one partition, ascending, and that partitions ascend."""
    last: tuple[int, bytes] = (-1, b"")
    for number in range(table.num_row_groups):
        rows = table.read_row_group(number, columns=["partition", "word"], use_threads=False)
        words: Any = rows.column("word").combine_chunks()
        partitions: list[Any] = pc.unique(rows.column("partition")).to_pylist()
        partition, first, end = partitions[0], words[0].as_py(), words[-1].as_py()
        if not _ascends(words) or (partition, first) <= last:
            yield f"row group {number}: its words are not in order"
        # Of all words this would take as long as to verify the rest.
        found = (
            {partition} if scan.partition_by_project else {zlib.crc32(w) % scan.word_partitions for w in (first, end)}
        )
        if len(partitions) > 1 or found != {partition} or partition >= scan.word_partitions:
            yield f"row group {number}: its words are not of partition {partition}"
        last = (partition, end)


def _check_rows(rows: pa.Table, family: Family, shard: pa.Table | None) -> Iterator[str]:
    """Check that rows are sorted by their keys, each once, and of the projects, documents and bytes of the shard."""
    keys = key_columns(family)
    names = list(zip(*(rows.column(key).to_pylist() for key in keys), strict=True))
    if any(one >= other for one, other in zip(names, names[1:], strict=False)):
        yield f"its rows are not sorted by {', '.join(keys)}, each of these once"
    if shard is None:
        return
    if "project" in keys:
        counted: list[Any] = pc.unique(rows.column("project")).to_pylist()
        there: list[Any] = pc.unique(shard.column("project")).to_pylist()
        if strange := sorted(set(counted).difference(there)):
            yield f"it counts in project {strange[0]!r}, of which its shard has no document"
    if family is Family.STATISTICS:
        named = dict(zip(*(rows.column(key).to_pylist() for key in ("name", "value")), strict=True))
        for key, found in (("documents", len(shard)), ("bytes", pc.sum(shard.column("num_bytes")).as_py() or 0)):
            if named.get(key) != found:
                yield f"it counts {named.get(key)} {key}, and its shard has {found}"


def _ascends(values: Any) -> bool:  # noqa: ANN401 - an array
    return bool(pc.all(pc.less(values[:-1], values[1:]), min_count=0).as_py())


def check_recounted(
    run: RunUnits, shards: Sequence[UnitReceipt], options: ScanOptions, vocabulary: Path
) -> Iterator[str]:
    """Count every documents shard again, and yield the counts that are others.

    Args:
        run: The run.
        shards: The receipts of the counts of shards.
        options: The options of the scan.
        vocabulary: The vocabulary whose candidates were counted.
    """
    recount = partial(_recount, run=run, config=scanner_config(options, vocabulary))
    with ThreadPoolExecutor(usable_threads()) as pool:
        for problems in pool.map(recount, shards):
            yield from problems


def _recount(unit: UnitReceipt, run: RunUnits, config: str) -> list[str]:
    scanner = cppmill_core.Scanner(config, 1, memory_bytes=1 << 30, spill_dir=run.out.temporary)
    ((counted, digest),) = unit.inputs.items()
    with run.out.open_local(run.find_documents(counted, digest) or counted) as path:
        for batch in read_documents([path], read_ahead=False):
            scanner.add(batch)
    return [problem for name, found in scanner.finish().items() for problem in _compare(run, unit, Family(name), found)]


def _compare(run: RunUnits, unit: UnitReceipt, family: Family, found: Any) -> Iterator[str]:  # noqa: ANN401 - batches
    """Compare the counts of a family with the unit's file of them, a row group at a time."""
    path = next((output.path for output in unit.outputs if part_family(output.path) == family), None)
    again = iter(found) if family.is_partitioned else iter([found])
    if path is None:
        yield f"{run.out.where(unit.path)}: it has no file of {family}"
        return
    where = run.out.where(path)
    with run.out.open_local(path) as local, naming_damage(where), pq.ParquetFile(local) as table:
        written = table.read(use_threads=False)
    counted = pa.Table.from_batches(list(again), written.schema.remove_metadata())
    if not written.combine_chunks().equals(counted.combine_chunks()):
        yield f"{where}: counted again in {next(iter(unit.inputs))}, they are others"
