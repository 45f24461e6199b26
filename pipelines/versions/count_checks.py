"""Whether the counts of a run fit together: merged counts with those of shards, decisions with the counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.digests import parse_json
from schemas.units import Stage
from tokenizer_build.decisions import BY_USE
from transforms.records.checks.unit_checks import RunUnits
from transforms.scan.kinds import PARTS, Family, Kind
from transforms.scan.merge import merge_parts
from transforms.scan.tables import nest_statistics, read_counts
from transforms.scan.words import ROW_GROUP_ROWS, WordRun, find_runs, merge_words
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import temporary_folder
from transforms.tokens.tokenizer import read_manifest
from transforms.units.batches import read_row_groups

_VALUES = {
    Family.WORDS: ("count",),
    Family.LINES: ("count",),
    Family.TERMS: ("hits", "documents"),
    Family.MORPHEMES: ("hits", "documents"),
    Family.NAMESPACES: ("hits", "documents"),
}
"""The columns of each family that are added up."""

_DECISIONS = "tokenizer/decisions.parquet"
_MORPHEME = "morpheme:"


def check_counts(run: RunUnits, *, remerge: bool) -> Iterator[str]:
    """Yield the merged counts whose sums are not those of the counts of shards, and decisions about other counts.

    Args:
        run: The run.
        remerge: Whether to merge words and lines again too, which takes as long as it took the run.
    """
    if not run.by_stage[Stage.BUILD]:
        return  # the tokenizer was given
    files = [name for name in run.files if name.startswith("counts/")]
    parts = [name for name in files if name.startswith(f"{PARTS}/") and name.endswith(".parquet")]
    for family, columns in _VALUES.items():
        of_shards = [name for name in parts if name.startswith(f"{PARTS}/{family}-")]
        merged = [name for name in files if name == f"counts/{family}.parquet" or name.startswith(f"counts/{family}/")]
        expected, found = (_sums(run.out, names, columns) for names in (of_shards, merged))
        if expected != found:
            where = run.out.where(f"counts/{family}")
            yield f"{where}: {', '.join(columns)} add up to {found}, in the counts of shards to {expected}"
        elif not family.is_partitioned:
            yield from _check_merged(run.out, family, of_shards)
        elif remerge:
            yield from _check_words(run.out, family, of_shards, merged)
    yield from _check_statistics(run, [name for name in parts if name.startswith(f"{PARTS}/{Family.STATISTICS}-")])
    if _DECISIONS in run.files:
        yield from _check_decisions(run.out)


def _sums(out: OutputFolder, names: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    sums = dict.fromkeys(columns, 0)
    for name in names:
        with out.open_ranges(name) as file, pq.ParquetFile(file) as table:
            for rows in read_row_groups(table, list(columns)):
                for column in columns:
                    sums[column] += pc.sum(rows.column(column)).as_py() or 0
    return sums


def _check_merged(out: OutputFolder, family: Family, names: Sequence[str]) -> Iterator[str]:
    """Merge the counts of shards again: the number of projects decides which tokens are fixed, and is no sum."""
    merged = read_counts(out, family)
    with temporary_folder() as folder:
        again = merge_parts(family, [(name, []) for name in names], out, Path(folder))
    if not merged.select(again.column_names).cast(again.schema).equals(again):
        yield f"{out.where(f'counts/{family}.parquet')}: not what the counts of shards give when they are merged again"


def _check_words(out: OutputFolder, family: Family, parts: Sequence[str], merged: Sequence[str]) -> Iterator[str]:
    """Merge words or lines again: the tokenizer is learned from each count, and sums do not show an exchange."""
    runs: dict[str, list[WordRun]] = {name: [] for name in merged}
    for name in parts:
        with out.open_ranges(name) as file:
            found = find_runs(file, where=out.where(name))
        for number, row_groups in found.items():
            path = Kind(family, number).merged_path
            runs.setdefault(path, []).append(WordRun(open_file=partial(out.open_ranges, name), row_groups=row_groups))
    for path in sorted(runs):
        with temporary_folder() as folder:
            again = Path(folder) / "words.parquet"
            merge_words(runs[path], again)
            if path not in merged or not _has_same_rows(out, path, again):
                yield f"{out.where(path)}: not what the counts of shards give when they are merged again"


def _has_same_rows(out: OutputFolder, name: str, again: Path) -> bool:
    """Return whether a file of words has the rows of another, compared a row group's worth at a time."""
    with out.open_ranges(name) as file, pq.ParquetFile(file) as written, pq.ParquetFile(again) as merged:
        batches = [table.iter_batches(ROW_GROUP_ROWS, use_threads=False) for table in (written, merged)]
        return all(one is not None and other is not None and one.equals(other) for one, other in zip_longest(*batches))


def _check_statistics(run: RunUnits, names: Sequence[str]) -> Iterator[str]:
    """Derive the statistics again."""
    tables = []
    for name in names:
        with run.out.open_ranges(name) as file:
            tables.append(pq.read_table(file))
    if not tables:
        return
    summed = pa.concat_tables(tables).group_by("name").aggregate([("value", "sum")])
    values = pa.Table.from_arrays([summed.column(name) for name in ("name", "value_sum")], names=["name", "value"])
    merged = parse_json(run.out.read_bytes("counts/statistics.json"))
    if nest_statistics(values) != merged:
        yield f"{run.out.where('counts/statistics.json')}: not the sum of the statistics of shards"


def _check_decisions(out: OutputFolder) -> Iterator[str]:
    """Compare the numbers that candidates were decided by with the counts, and their ids with the manifest."""
    manifest = read_manifest(out)
    ids = {token["token"]: token["id"] for token in manifest["tokens"]}
    counts: dict[tuple[str, str], tuple[int, ...]] = {}
    for name, kind, prefix in (("terms", "category", ""), ("morphemes", "position", _MORPHEME)):
        with out.open_ranges(f"counts/{name}.parquet") as file:
            rows = pq.read_table(file).to_pylist()
        term = name.removesuffix("s")
        counts |= {(row[term], f"{prefix}{row[kind]}"): _numbers(row) for row in rows}
    with out.open_ranges(_DECISIONS) as file:
        decisions = pq.read_table(file).to_pylist()
    for row in decisions:
        name, expected = row["token"], counts.get((row["token"], row["category"]), (0, 0, 0))
        if row["category"].startswith(BY_USE):
            expected = (row["hits"], 0, 0)  # how often the text has a token shows only to who learns again
        if _numbers(row) != expected:
            yield f"{out.where(_DECISIONS)}: {name!r} ({row['category']}) has {_numbers(row)}, counted {expected}"
        if ids.get(name, row["id"]) != row["id"]:
            yield f"{out.where(_DECISIONS)}: {name!r} has id {row['id']}, the manifest says {ids[name]}"


def _numbers(row: dict[str, Any]) -> tuple[int, ...]:
    return row["hits"], row["documents"], row["projects"]
