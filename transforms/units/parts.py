"""Parts of a table in `.cache`: workers write them; they are merged into one file after the pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq

from transforms.storage.folder import OutputFolder

_ROW_GROUP_ROWS = 1 << 16


def sort_rows(table: pa.Table) -> pa.Table:
    """Return rows, whose first columns are `unit` and `row`, in order."""
    return table.sort_by([(name, "ascending") for name in table.column_names])


def write_rows(path: Path, table: pa.Table) -> int:
    """Write rows so that one unit's rows can be read without the others; return their number."""
    pq.write_table(table, path, compression="zstd", row_group_size=_ROW_GROUP_ROWS)
    return int(table.num_rows)


def read_rows(file: Path | pa.NativeFile, index: int, columns: list[str] | None = None) -> pa.Table:
    """Return the rows of one input unit; reads no other row groups."""
    return pq.read_table(file, columns=columns, filters=[("unit", "==", index)])


def merge_parts(out: OutputFolder, folder: str, schema: pa.Schema) -> pa.Table:
    """Return the rows of all parts in a folder of OUT, sorted by unit and row."""
    parts = [_read(out, name, schema) for name in out.files(folder)]
    return sort_rows(pa.concat_tables([schema.empty_table(), *parts]))


def _read(out: OutputFolder, name: str, schema: pa.Schema) -> pa.Table:
    with out.open_local(name) as path:
        return pq.read_table(path, schema=schema)


def write_part(
    part: tuple[int, Iterable[pa.RecordBatch]], out: OutputFolder, folder: str, schema: pa.Schema
) -> tuple[int, int]:
    """Publish the batches of a part as one sorted file and return (number of the part, its rows)."""
    number, batches = part
    table = sort_rows(pa.Table.from_batches(batches, schema))
    out.publish(f"{folder}/part-{number:05d}.parquet", partial(write_rows, table=table))
    return number, table.num_rows


@dataclass(kw_only=True)
class WriteParts(beam.PTransform[beam.PCollection[tuple[int, pa.RecordBatch]], beam.PCollection[tuple[int, int]]]):
    """Writes batches of rows, each with the number of its part, and yields (part, rows).

    The folder must be empty before the pipeline; `merge_parts` reads it afterwards.

    Attributes:
        out: The output folder.
        folder: Where to in it.
        schema: The rows; its first columns are `unit` and `row`.
    """

    out: OutputFolder
    folder: str
    schema: pa.Schema

    def expand(self, rows: beam.PCollection[tuple[int, pa.RecordBatch]]) -> beam.PCollection[tuple[int, int]]:
        """Apply the writing to a PCollection of (part, batch)."""
        write = beam.Map(write_part, self.out, self.folder, self.schema).with_output_types(tuple[int, int])
        counts: beam.PCollection[tuple[int, int]] = rows | "GroupByPart" >> beam.GroupByKey() | "WritePart" >> write
        return counts
