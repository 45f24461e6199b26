"""Plans of units, from which pipelines on engines start.

A plan is a Parquet file of units. A pipeline starts from at most 1,000 row ranges of it, expands them into units on
the workers and reshuffles: nothing in the pipeline graph grows with the corpus.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.units import Unit
from transforms.storage.folder import CACHE, OutputFolder

MAX_RANGES = 1000
"""The most elements that a pipeline is created with."""

_PLAN = pa.schema([pa.field("unit", pa.binary(), nullable=False)])


@dataclass(frozen=True, kw_only=True)
class PlanRange:
    """One row group of a plan file of an output folder, and the SHA-256 of the units in it."""

    out: OutputFolder
    name: str
    row_group: int
    sha256: str


def write_plan(out: OutputFolder, program: str, units: Sequence[Unit]) -> list[PlanRange]:
    """Write the plan of `units` below `.cache/plans` and return its ranges, at most 1,000.

    Args:
        out: The output folder.
        program: Names the file: a stage, or a pass of one.
        units: What is to run, in order.
    """
    if not units:
        return []
    rows = [unit.to_bytes() for unit in units]
    step = math.ceil(len(rows) / MAX_RANGES)
    groups = [rows[start : start + step] for start in range(0, len(rows), step)]
    digests = [_digest(group) for group in groups]
    name = f"{CACHE}/plans/{program}-{hashlib.sha256(''.join(digests).encode()).hexdigest()}.parquet"

    def write(path: Path) -> int:
        with pq.ParquetWriter(path, _PLAN, compression="zstd", use_dictionary=False, write_statistics=False) as writer:
            for group in groups:
                writer.write_batch(pa.record_batch([pa.array(group, pa.binary())], schema=_PLAN))
        return len(rows)

    out.publish(name, write)
    return [PlanRange(out=out, name=name, row_group=index, sha256=digest) for index, digest in enumerate(digests)]


def expand_plan_range(plan_range: PlanRange) -> Iterator[Unit]:
    """Yield the units of one range of a plan file.

    Raises:
        IntegrityError: If the plan file is not the one that the range was made for.
    """
    with plan_range.out.open_ranges(plan_range.name) as file, pq.ParquetFile(file) as plan:
        rows: list[Any] = plan.read_row_group(plan_range.row_group).column("unit").to_pylist()
    found = _digest(rows)
    if found != plan_range.sha256:
        raise IntegrityError(
            f"{plan_range.out.where(plan_range.name)}: row group {plan_range.row_group} has digest {found}, not "
            f"{plan_range.sha256}; run again"
        )
    yield from map(Unit.from_bytes, rows)


def _digest(rows: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(len(row).to_bytes(8, "big"))
        digest.update(row)
    return digest.hexdigest()
