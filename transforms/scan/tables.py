"""Tables of counts other than words: partial ones, with the project of each row, and their sums."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.tables import MORPHEMES, NAMESPACES, TERMS, required
from transforms.scan.kinds import Family
from transforms.storage.folder import OutputFolder

STATISTICS = pa.schema([required("name", pa.string()), required("value", pa.uint64())])
"""Partial and merged content statistics: summed by name."""

MAX_TABLES = 128
"""How many tables are held in memory and added at once."""

_KEYS = {
    Family.TERMS: ["term", "category"],
    Family.MORPHEMES: ["morpheme", "position"],
    Family.NAMESPACES: ["namespace"],
}
_MERGED = {Family.TERMS: TERMS, Family.MORPHEMES: MORPHEMES, Family.NAMESPACES: NAMESPACES}
_ROW_GROUP_ROWS = 1 << 18


def empty_counts(family: Family) -> pa.Table:
    """Return an empty table of partial counts of any family but words and lines."""
    if family == Family.STATISTICS:
        return STATISTICS.empty_table()
    columns: dict[str, pa.DataType] = dict.fromkeys((*_KEYS[family], "project"), pa.string())
    return pa.schema({**columns, "hits": pa.uint64(), "documents": pa.uint64()}).empty_table()


def sum_counts(family: Family, tables: Iterable[pa.Table]) -> pa.Table:
    """Add up partial counts of one family, projects apart, into one table of partial counts, sorted bytewise.

    Args:
        family: Any but words and lines.
        tables: Partial counts in any order, read `MAX_TABLES` at a time; the result does not depend on it.
    """
    schema = empty_counts(family).schema
    if family == Family.STATISTICS:
        keys, values = ["name"], ["value"]
    else:
        keys, values = [*_KEYS[family], "project"], ["hits", "documents"]
    waiting, total = iter(tables), schema.empty_table()
    while read := [table.cast(schema) for table in islice(waiting, MAX_TABLES)]:
        total = _sum_by(pa.concat_tables([total, *read]), keys, values).cast(schema)
    return total


def merge_counts(family: Family, tables: Iterable[pa.Table]) -> pa.Table:
    """Merge partial counts of one family: sums by key, distinct projects, sorted bytewise by key.

    Args:
        family: Any but words and lines.
        tables: Partial counts in any order; the result does not depend on it.
    """
    sums = sum_counts(family, tables)
    if family == Family.STATISTICS:
        return sums
    keys = _KEYS[family]
    grouped = sums.group_by(keys, use_threads=False).aggregate(
        [("hits", "sum"), ("documents", "sum"), ("project", "count")]
    )
    merged = grouped.rename_columns([*keys, "hits", "documents", "projects"])
    return merged.sort_by([(key, "ascending") for key in keys]).cast(_MERGED[family])


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


def read_counts(out: OutputFolder, name: str) -> pa.Table:
    """Return a table of counts of OUT."""
    with out.open_local(name) as path:
        return pq.read_table(path, partitioning=None)


def write_counts(path: Path, table: pa.Table) -> int:
    """Write a table of counts to a Parquet file and return the number of rows."""
    pq.write_table(table, path, compression="zstd", use_dictionary=False, row_group_size=_ROW_GROUP_ROWS)
    return table.num_rows


def _sum_by(table: pa.Table, keys: list[str], values: list[str]) -> pa.Table:
    grouped = table.group_by(keys, use_threads=False).aggregate([(value, "sum") for value in values])
    return grouped.rename_columns([*keys, *values]).sort_by([(key, "ascending") for key in keys])
