"""Tables of counts other than words: partial ones, with the project of each row, and their sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import parse_json
from schemas.errors import IntegrityError
from schemas.tables import MORPHEMES, NAMESPACES, TERMS, required_columns
from transforms.scan.kinds import Family, Kind
from transforms.storage.folder import OutputFolder, naming_damage
from transforms.units.batches import check_columns
from transforms.units.sorted_runs import Run, merge_runs

STATISTICS = required_columns(name=pa.string(), value=pa.uint64())
"""Partial and merged content statistics: summed by name."""

_KEYS = {
    Family.TERMS: ["term", "category"],
    Family.MORPHEMES: ["morpheme", "position"],
    Family.NAMESPACES: ["namespace"],
}
_MERGED = {Family.TERMS: TERMS, Family.MORPHEMES: MORPHEMES, Family.NAMESPACES: NAMESPACES}
_ROW_GROUP_ROWS = 1 << 18


def partial_schema(family: Family) -> pa.Schema:
    """Return the columns of partial counts of any family but words and lines."""
    if family == Family.STATISTICS:
        return STATISTICS
    keys, values = _partial_columns(family)
    return required_columns(**dict.fromkeys(keys, pa.string()), **dict.fromkeys(values, pa.uint64()))


def merged_schema(family: Family) -> pa.Schema:
    """Return the columns of merged counts of any family but words, lines and statistics."""
    return _MERGED[family]


def key_columns(family: Family) -> list[str]:
    """Return the columns by which partial counts of any family but words and lines are sorted."""
    return _partial_columns(family)[0]


def _partial_columns(family: Family) -> tuple[list[str], list[str]]:
    """Return the columns of partial counts that are keys, and those that are added up."""
    if family == Family.STATISTICS:
        return ["name"], ["value"]
    return [*_KEYS[family], "project"], ["hits", "documents"]


def sum_counts(family: Family, runs: Sequence[Run], folder: Path) -> Iterator[pa.Table]:
    """Add up partial counts of one family, projects apart; yield tables of partial counts, sorted bytewise.

    Args:
        family: Any but words and lines.
        runs: Files of partial counts, in any order, each sorted and with each key once; one batch of each is in memory.
        folder: Where to put temporary files.
    """
    keys, values = _partial_columns(family)
    combine = partial(_sum_by, keys=keys, values=values)
    return merge_runs(runs, keys=keys, schema=partial_schema(family), combine=combine, folder=folder)


def merge_counts(family: Family, runs: Sequence[Run], folder: Path) -> pa.Table:
    """Merge partial counts of one family: sums by key, distinct projects, sorted bytewise by key.

    Only the merged names are in memory, whatever the number of projects. Arguments are as in `sum_counts`.
    """
    sums = sum_counts(family, runs, folder)
    if family == Family.STATISTICS:
        return pa.concat_tables([STATISTICS.empty_table(), *sums])
    keys = _KEYS[family]
    counted = pa.concat_tables([_MERGED[family].empty_table(), *(count_projects(table, family) for table in sums)])
    return _sum_by(counted, keys, ["hits", "documents", "projects"])  # blocks may share their border's key


def count_projects(table: pa.Table, family: Family) -> pa.Table:
    """Return a table of partial counts, each key and project once, with the number of projects instead of names."""
    keys = _KEYS[family]
    grouped = table.group_by(keys, use_threads=False).aggregate(
        [("hits", "sum"), ("documents", "sum"), ("project", "count")]
    )
    return grouped.rename_columns([*keys, "hits", "documents", "projects"]).cast(_MERGED[family])


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


def read_counts(out: OutputFolder, family: Family) -> pa.Table:
    """Return the merged counts of OUT of any family but words, lines and statistics.

    Raises:
        IntegrityError: If the file is damaged, or lacks a column.
    """
    name = Kind(family).merged_path
    with out.open_local(name) as path, naming_damage(out.where(name)):
        table = pq.read_table(path, partitioning=None)
        check_columns(table.schema, merged_schema(family))
        return table


def read_statistics(out: OutputFolder) -> dict[str, Any]:
    """Return the merged statistics of OUT.

    Raises:
        IntegrityError: If the file is damaged, or lacks a number that is used.
    """
    name = Kind(Family.STATISTICS).merged_path
    try:
        found: dict[str, Any] = parse_json(out.read_bytes(name))
        numbers = [found["documents"], found["bytes"]["total"]]
        if any(type(number) is not int for number in numbers):
            raise TypeError("a number is none")
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"{out.where(name)}: no statistics of a scan ({type(error).__name__}: {error}); remove it and run again"
        ) from error
    return found


def write_counts(path: Path, table: pa.Table) -> int:
    """Write a table of counts to a Parquet file and return the number of rows."""
    pq.write_table(table, path, compression="zstd", use_dictionary=False, row_group_size=_ROW_GROUP_ROWS)
    return table.num_rows


def write_sums(path: Path, family: Family, runs: Sequence[Run]) -> int:
    """Write what `sum_counts` yields to a Parquet file, itself such a run, and return the number of rows."""
    rows = 0
    with pq.ParquetWriter(path, partial_schema(family), compression="zstd") as writer:
        for table in sum_counts(family, runs, path.parent):
            writer.write_table(table)
            rows += table.num_rows
    return rows


def sum_by_key(table: pa.Table, family: Family) -> pa.Table:
    """Return partial counts of any family but words and lines, added up by key and project, sorted."""
    return _sum_by(table, *_partial_columns(family))


def _sum_by(table: pa.Table, keys: list[str], values: list[str]) -> pa.Table:
    grouped = table.group_by(keys, use_threads=False).aggregate([(value, "sum") for value in values])
    named = grouped.rename_columns([*keys, *values]).sort_by([(key, "ascending") for key in keys])
    return named.cast(table.schema)
