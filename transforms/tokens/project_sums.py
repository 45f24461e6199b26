"""What each project has in token shards: documents, bytes and tokens, summed from three small columns.

Sums of a dataset follow from those of another one and the shards in which they differ, so no shard is read twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.tables import PROJECT_SUMS
from transforms.storage.folder import OutputFolder

_READ = ["project", "num_bytes", "num_tokens"]
_SUMMED = ["documents", "num_bytes", "num_tokens"]


def read_project_sums(out: OutputFolder, shards: Iterable[str]) -> pa.Table:
    """Return the sums of token shards by project (`schemas.tables.PROJECT_SUMS`), sorted by project."""
    return add_project_sums(out.each(partial(_read_shard, out), shards))


def add_project_sums(tables: Iterable[pa.Table], *, without: pa.Table | None = None) -> pa.Table:
    """Return sums added up by project.

    Args:
        tables: Sums, each project any number of times.
        without: Sums that are taken away; a project that has no document left is left out.
    """
    gone = [] if without is None else [_negated(without)]
    rows = pa.concat_tables([PROJECT_SUMS.empty_table(), *tables, *gone])
    grouped = rows.group_by("project", use_threads=False).aggregate([(name, "sum") for name in _SUMMED])
    sums = grouped.rename_columns(["project", *_SUMMED])
    return sums.filter(pc.field("documents") > 0).sort_by("project").cast(PROJECT_SUMS)


def _read_shard(out: OutputFolder, shard: str) -> pa.Table:
    with out.open_ranges(shard) as source, pq.ParquetFile(source) as file:
        return sum_projects(file.read(columns=_READ))


def sum_projects(rows: pa.Table) -> pa.Table:
    """Return the sums of the rows of token shards by project, in the order in which projects come."""
    grouped = rows.group_by("project", use_threads=False).aggregate(
        [([], "count_all"), ("num_bytes", "sum"), ("num_tokens", "sum")]
    )
    counted = grouped.select(["project", "count_all", "num_bytes_sum", "num_tokens_sum"])
    return counted.rename_columns(["project", *_SUMMED]).cast(PROJECT_SUMS)


def _negated(sums: pa.Table) -> pa.Table:
    columns = [sums["project"], *(pc.negate(sums[name]) for name in _SUMMED)]
    return pa.table(columns, schema=PROJECT_SUMS)
