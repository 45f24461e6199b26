"""Parts of a table in `.cache`: workers write them; they are merged into one file after the pipeline."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cppmill_core.columns import numbers

from schemas.errors import IntegrityError
from transforms.storage.folder import OutputFolder
from transforms.units.batches import fixed_row_groups
from transforms.units.flow import FlatMap, Flow, GroupByKey
from transforms.units.sorted_runs import merge_runs, read_run

ROW_GROUP_ROWS = 1 << 18
"""Rows that are read together; fewer would make a footer, which every unit reads, large in a large corpus."""

_PLACE = ("unit", "row")
_LIST = "parts.json"
"""The file that has the numbers of the parts beside it."""

_DIGEST = "cppmill.rows"
"""The key of the footer of merged parts that has the SHA-256 of the file's name and the rows."""


def sort_rows(table: pa.Table) -> pa.Table:
    """Return rows, whose first columns are `unit` and `row`, in order."""
    return table.sort_by([(name, "ascending") for name in table.column_names])


def write_rows(path: Path, table: pa.Table) -> int:
    """Write rows so that one unit's rows can be read without the others; return their number."""
    pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    return int(table.num_rows)


def read_rows(file: Path | pa.NativeFile, index: int, columns: list[str] | None = None) -> pa.Table:
    """Return the rows of one input unit; reads no other row groups."""
    return pq.read_table(file, columns=columns, filters=[("unit", "==", index)])


def rows_by_unit(path: Path) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each input unit, with its number; no more than one unit and one batch are in memory."""
    with pq.ParquetFile(path) as file:
        for unit, shares in groupby(_cut_by_unit(file), key=itemgetter(0)):
            yield unit, pa.Table.from_batches([share for _, share in shares])


def row_bytes(rows: pa.Table) -> bytes:
    """Return the row numbers of a unit's rows as bytes, for digests."""
    return b"".join(numbers(chunk).astype("<u4").tobytes() for chunk in rows.column("row").chunks)


def _cut_by_unit(file: pq.ParquetFile) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in file.iter_batches(use_threads=False):
        units, starts = np.unique(numbers(batch.column("unit")), return_index=True)
        ends = np.append(starts[1:], batch.num_rows)
        for unit, start, length in zip(units.tolist(), starts.tolist(), (ends - starts).tolist(), strict=True):
            yield unit, batch.slice(start, length)


def clear_parts(out: OutputFolder, folder: str) -> None:
    """Remove the parts in a folder of OUT; their list by its name, as a listing of the folder may be out of date."""
    out.remove(_list_name(folder))
    out.remove_folder(folder)


def merge_parts(out: OutputFolder, folder: str, schema: pa.Schema, name: str) -> int:
    """Merge all parts in a folder of OUT into a file of OUT, sorted by unit and row, and return its number of rows.

    Holds one batch of each part, of `MAX_RUNS` parts at most. The places, unit and row, must be distinct.
    """

    def write(path: Path) -> int:
        runs = [read_run(partial(out.open_ranges, part), schema) for part in _listed(out, folder)]
        tables = merge_runs(runs, keys=_PLACE, schema=schema, combine=sort_rows, folder=path.parent)
        batches = (batch for table in tables for batch in table.to_batches())
        rows, digest = 0, hashlib.sha256(name.encode())
        with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
            for group in fixed_row_groups(batches, ROW_GROUP_ROWS):
                writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
                rows += group.num_rows
                _add(digest, group)
            writer.add_key_value_metadata({_DIGEST: digest.hexdigest()})
        return rows

    return out.publish(name, write).rows


def is_whole(out: OutputFolder, name: str, schema: pa.Schema) -> bool:
    """Return whether a file that `merge_parts` wrote is there, undamaged and with all its rows, by reading it.

    Checksums of Parquet cover pages. The digest in the footer shows what the footer lost, and that the file has its own
    name, which says what the rows were chosen from. By the footer's statistics `read_rows` finds a unit's rows.
    """
    try:
        with out.open_ranges(name) as file, pq.ParquetFile(file, page_checksum_verification=True) as table:
            if not table.schema_arrow.equals(schema):
                return False
            digest, said = hashlib.sha256(name.encode()), (table.metadata.metadata or {}).get(_DIGEST.encode())
            for number in range(table.num_row_groups):
                group = table.read_row_group(number, use_threads=False)
                if not _says_truth(table.metadata.row_group(number), group):
                    return False
                _add(digest, group)
    except (FileNotFoundError, IntegrityError):
        return False
    return said == digest.hexdigest().encode()


def _says_truth(said: pq.RowGroupMetaData, group: pa.Table) -> bool:
    """Return whether the footer says of a row group how many rows are in it, and of which units."""
    stated, units = said.column(0).statistics, group.column(0)
    expected = (pc.min(units).as_py(), pc.max(units).as_py(), units.null_count, len(units))
    found = None if stated is None else (stated.min, stated.max, stated.null_count, stated.num_values)
    return found == expected and said.num_rows == group.num_rows


def _add(digest: hashlib._Hash, group: pa.Table) -> None:
    """Add the rows of a row group to a digest."""
    for batch in group.combine_chunks().to_batches():
        digest.update(batch.replace_schema_metadata().serialize())


def read_parts(out: OutputFolder, folder: str, schema: pa.Schema) -> pa.Table:
    """Return the rows of all parts in a folder of OUT, one part after the other."""
    return pa.concat_tables([schema.empty_table(), *(_read(out, name, schema) for name in _listed(out, folder))])


def _list_name(folder: str) -> str:
    return f"{folder}/{_LIST}"


def _listed(out: OutputFolder, folder: str) -> list[str]:
    """Return the parts that the flow wrote to a folder, by its list: what a store lists may be out of date."""
    try:
        numbers = json.loads(out.read_bytes(_list_name(folder)))
    except FileNotFoundError:  # no rows, so no parts
        return []
    return [_part_name(folder, number) for number in numbers]


def _part_name(folder: str, number: int) -> str:
    return f"{folder}/part-{number:05d}.parquet"


def _read(out: OutputFolder, name: str, schema: pa.Schema) -> pa.Table:
    with out.open_local(name) as path:
        return pq.read_table(path, schema=schema)


def write_parts(out: OutputFolder, folder: str, schema: pa.Schema) -> Flow:
    """Return the flow that writes batches of rows, each with the number of its part, and yields (part, rows).

    Call `clear_parts` before; `merge_parts` or `read_parts` reads the folder afterwards, by the list of its parts.

    Args:
        out: The output folder.
        folder: Where to in it.
        schema: The rows; its first columns are `unit` and `row`.
    """
    write = partial(_write_part, out=out, folder=folder, schema=schema)
    written = tuple[int, tuple[int, int]]
    return (
        GroupByKey(name="GroupByPart"),
        FlatMap(name="WritePart", function=write, gives=written),
        GroupByKey(name="GroupParts"),
        FlatMap(name="ListParts", function=partial(_list_parts, out=out, folder=folder), gives=tuple[int, int]),
    )


def _write_part(
    part: tuple[int, Iterable[pa.RecordBatch]], out: OutputFolder, folder: str, schema: pa.Schema
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Publish the batches of a part as one sorted file and yield (number of the part, its rows), all with one key."""
    number, batches = part
    table = sort_rows(pa.Table.from_batches(batches, schema))
    out.publish(_part_name(folder, number), partial(write_rows, table=table))
    yield 0, (number, table.num_rows)


def _list_parts(
    grouped: tuple[int, Iterable[tuple[int, int]]], out: OutputFolder, folder: str
) -> Iterator[tuple[int, int]]:
    """Publish the list of the parts, and yield them."""
    parts = sorted(grouped[1])
    out.publish_bytes(_list_name(folder), json.dumps([number for number, _ in parts]).encode())
    yield from parts
