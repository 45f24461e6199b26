"""Small token shards, with a column of each kind, whose rows are numbered."""

from __future__ import annotations

import hashlib
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cppmill_core.loader import Loader, Place

FOOTER = {"cppmill.tokenizer": "ab" * 32, "cppmill.vocab_size": "100"}
FILES = [[5, 1, 7], [4], [9, 2, 2, 3], [1]]
ROWS = 34


def write_shards(folder: Path, files: list[list[int]], **footer: str) -> Path:
    """Write shards whose row groups have the given numbers of rows; the column `number` counts all rows."""
    number = 0
    for index, groups in enumerate(files):
        schema = row_table(0, 1).schema.with_metadata(FOOTER | footer)
        with pq.ParquetWriter(folder / f"part-{index}.parquet", schema) as writer:
            for rows in groups:
                writer.write_table(row_table(number, rows).cast(schema), row_group_size=max(rows, 1))
                number += rows
    return folder


def row_table(first: int, rows: int) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table(
        {
            "number": pa.array(numbers, pa.uint64()),
            "path": pa.array([f"{n}.h" for n in numbers]),
            "token_ids": pa.array([[n % 100] * (n % 5) for n in numbers], pa.list_(pa.uint16())),
            "pair": pa.array([[n % 2 == 0, True] for n in numbers], pa.list_(pa.bool_(), 2)),
            "names": pa.array([[str(n), "ü"][: n % 3] for n in numbers], pa.list_(pa.string())),
            "doc_id": pa.array([digest(n) for n in numbers]),
            "doc_ids": pa.array([[digest(n), digest(0)][: n % 3] for n in numbers], pa.list_(pa.string())),
            "license": pa.array([None if n % 2 else "MIT" for n in numbers], pa.string()),
        }
    )


def digest(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def places(ranks: int, workers: int) -> list[list[Place]]:
    return [[Place(rank=r, ranks=ranks, worker=w, workers=workers) for w in range(workers)] for r in range(ranks)]


def numbers(loader: Loader) -> list[list[int]]:
    """The rows of each step."""
    return [batch["number"].tolist() for batch in loader.batches()]


def steps_of_ranks(loader: Loader, ranks: int, workers: int) -> list[list[list[int]]]:
    """The steps of each rank, taken from its workers in turn, as torch's DataLoader does."""
    found = []
    for row in places(ranks, workers):
        turns = zip_longest(*[numbers(loader.at(place)) for place in row])
        found.append([step for turn in turns for step in turn if step is not None])
    return found


def in_order(ranks: list[list[list[int]]]) -> list[int]:
    """The rows of all ranks in the order of the epoch."""
    found: list[int] = []
    for step in zip_longest(*ranks, fillvalue=[]):
        rows = [row for turn in zip_longest(*step) for row in turn]
        found += [row for row in rows if row is not None]
    return found


def loader_of(dataset: Any, batch_rows: int = 1, **options: Any) -> Loader:
    return Loader(dataset, columns=["number"], batch_rows=batch_rows, **options)
