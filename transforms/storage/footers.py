"""Whether the footer and the page headers of a Parquet file are true: columns are written again from their rows.

Readers that filter believe the statistics of a file and pass over its rows, so a false minimum loses documents although
every row is there. Each column with statistics is written again, uncompressed, with the settings that it has. Whatever
does not depend on compression must come out the same: schema, numbers of values, encodings, statistics. Of the others,
texts and lists of ids, a row is written again, for what may be said of them at all; `prove_shard` looks at the
statistics of ids. Places and sizes must cover the file from its first byte to its footer, so nothing else is in it.

Fields are numbered as in `parquet.thrift` of Apache Parquet.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.storage.thrift import Bytes, Struct, read_struct

_MAGIC = b"PAR1"
_WRITER = re.compile(rb"parquet-cpp-arrow version \d[\w.+-]*")

_NUM_ROWS, _GROUPS, _KEY_VALUES, _CREATED_BY = 3, 4, 5, 6
_COLUMNS, _GROUP_BYTES, _GROUP_ROWS, _SORTING, _GROUP_PLACE, _GROUP_COMPRESSED, _ORDINAL = range(1, 8)
_META, _PATH = 3, 3
_CODEC, _NUM_VALUES, _UNCOMPRESSED, _COMPRESSED, _DATA_PLACE, _DICTIONARY_PLACE = 4, 5, 6, 7, 9, 11
_STATISTICS, _ENCODING_STATS = 12, 13
_PAGE_UNCOMPRESSED, _PAGE_COMPRESSED, _PAGE_CRC, _DATA_PAGES = 2, 3, 4, (5, 8)

_LARGE = b"token_ids"
"""A column with statistics that is not written again, because of its size."""

_OF_COLUMN = {1, _PATH}
"""What is said of a column whatever its values are: its type and its name."""

_OF_COMPRESSION = {_CODEC, _UNCOMPRESSED, _COMPRESSED, _DATA_PLACE, _DICTIONARY_PLACE}
_OF_FILE = {_NUM_ROWS, _GROUPS, _KEY_VALUES}
"""What is said of a file that depends on its rows, or that others look at: the keys of its footer."""

_OF_VALUES = range(1, 7)
"""The fields of statistics that say something of values, and not how exact it is: all versions write them alike."""


@dataclass(frozen=True)
class _Page:
    """The header of a page, and where it begins and ends in the file."""

    place: int
    end: int
    header: Struct

    @property
    def num_values(self) -> int:
        """How many values it has, repeated ones and nulls among them; 0 for the values of a dictionary."""
        return sum(self.header[kind][1] for kind in _DATA_PAGES if kind in self.header)

    @property
    def said(self) -> Struct:
        """What does not depend on compression."""
        return _without(self.header, {_PAGE_COMPRESSED, _PAGE_CRC})


def check_footer(path: Path, file: pq.ParquetFile, where: str) -> Iterator[str]:
    """Yield what is false in the footer and the page headers of a Parquet file.

    Args:
        path: The file.
        file: The same, open.
        where: Names it in messages.
    """
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            for problem in _check(data, file):
                yield f"{where}: {problem}"
        except (IndexError, KeyError, ValueError, TypeError, AttributeError, struct.error) as error:
            yield f"{where}: its footer or a page header is not laid out as Parquet ({type(error).__name__}: {error})"


def _check(data: Bytes, file: pq.ParquetFile) -> Iterator[str]:
    footer, start, end = _read_footer(data)
    groups, place = footer[_GROUPS], len(_MAGIC)
    if data[:4] != _MAGIC or data[-4:] != _MAGIC or end != len(data) - 8:
        yield "it does not begin and end as Parquet, or has bytes behind its footer"
    if not _WRITER.fullmatch(footer.get(_CREATED_BY, b"")):
        yield f"it was written by {footer.get(_CREATED_BY, b'').decode(errors='replace')!r}, which no run uses"
    if footer[_NUM_ROWS] != sum(group[_GROUP_ROWS] for group in groups):
        yield f"its footer says {footer[_NUM_ROWS]} rows, and its row groups another number"
    for number, group in enumerate(groups):
        problems = [*_check_group(data, footer, number, file), *_check_places(group, number, place)]
        yield from (f"row group {number}: {problem}" for problem in problems)
        place += sum(chunk[_META][_COMPRESSED] for chunk in group[_COLUMNS])
    if place != start:
        yield "there are bytes before its footer that belong to no column"


def _check_places(group: Struct, number: int, place: int) -> Iterator[str]:
    """Check that the columns of a row group follow one another from a place on, and fill what they say."""
    metas = [chunk[_META] for chunk in group[_COLUMNS]]
    sizes = (sum(meta[_UNCOMPRESSED] for meta in metas), sum(meta[_COMPRESSED] for meta in metas))
    if (group[_GROUP_BYTES], group.get(_GROUP_COMPRESSED, sizes[1])) != sizes:
        yield "its sizes are not those of its columns"
    begin = _begin(metas[0])
    if (group.get(_ORDINAL, number), group.get(_GROUP_PLACE, begin)) != (number, begin):
        yield "its number or its place is another one"
    for meta in metas:
        if _begin(meta) != (place if meta[_COMPRESSED] else 0):
            yield f"column {_name(meta)} does not begin where the one before it ends"
        place += meta[_COMPRESSED]


def _check_group(data: Bytes, footer: Struct, number: int, file: pq.ParquetFile) -> Iterator[str]:
    """Compare what is said of a row group with what is said of its rows where they are written again."""
    group = footer[_GROUPS][number]
    chunks = {_name(chunk[_META]): chunk for chunk in group[_COLUMNS]}
    again = [name for name, chunk in chunks.items() if not group[_GROUP_ROWS] or _is_written_again(chunk[_META])]
    columns = list(dict.fromkeys(name.partition(".")[0] for name in again))
    some = _Written.of_schema(file.schema_arrow, *_settings(chunks))
    every = (
        _Written(file.read_row_group(number, columns=columns, use_threads=False), *_settings(chunks))
        if columns
        else some
    )
    is_same_writer = footer[_CREATED_BY] == some.footer[_CREATED_BY]
    if is_same_writer and _without(footer, _OF_FILE) != _without(some.footer, _OF_FILE):
        yield "its columns are laid out otherwise than a run writes them"
    if group.get(_SORTING):
        yield "its footer says that it is sorted"
    for name, chunk in chunks.items():
        written = every if name in again else some
        problems = list(_check_values(chunk[_META], written.chunks[name][_META])) if name in again else []
        if is_same_writer:
            problems += _check_chunk(data, chunk, written, is_whole=name in again)
        yield from (f"column {name}: {problem}" for problem in problems[:1])


def _is_written_again(meta: Struct) -> bool:
    return _STATISTICS in meta and meta[_PATH][0] != _LARGE


def _settings(chunks: Mapping[str, Struct]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that have a dictionary, and those that have statistics."""
    dictionaries, statistics = (
        tuple(name for name, chunk in chunks.items() if field in chunk[_META])
        for field in (_DICTIONARY_PLACE, _STATISTICS)
    )
    return dictionaries, statistics


class _Written:
    """Rows that are written again, with a row group's settings, as the only row group of a file."""

    def __init__(self, rows: pa.Table, dictionaries: Iterable[str], statistics: Iterable[str]) -> None:
        """Write them."""
        sink = pa.BufferOutputStream()
        settings: Any = {"use_dictionary": list(dictionaries), "write_statistics": list(statistics)}
        with pq.ParquetWriter(sink, rows.schema, compression="none", **settings) as writer:
            writer.write_table(rows.combine_chunks(), row_group_size=rows.num_rows or None)
        self.data = sink.getvalue().to_pybytes()
        self.footer, _, _ = _read_footer(self.data)
        self.chunks = {_name(chunk[_META]): chunk for chunk in self.footer[_GROUPS][0][_COLUMNS]}

    @classmethod
    @lru_cache(maxsize=8)
    def of_schema(cls, schema: pa.Schema, dictionaries: tuple[str, ...], statistics: tuple[str, ...]) -> _Written:
        """Write a row of a table, whatever it holds."""
        row = {field.name: pa.array([_example(field.type)], field.type) for field in schema}
        return cls(pa.table(row, schema=schema), dictionaries, statistics)


def _example(kind: pa.DataType) -> Any:  # noqa: ANN401 - a value of any type
    if isinstance(kind, pa.FixedSizeListType):
        return [_example(kind.value_type)] * kind.list_size
    if isinstance(kind, pa.ListType):
        return [_example(kind.value_type)]
    return (False if pa.types.is_boolean(kind) else 0) if pa.types.is_primitive(kind) else ""


def _check_values(meta: Struct, true: Struct) -> Iterator[str]:
    """Compare what is said of a column's values, in a form that all versions of the writer share."""
    if meta[_NUM_VALUES] != true[_NUM_VALUES]:
        yield f"it has {true[_NUM_VALUES]} values, its footer says {meta[_NUM_VALUES]}"
    said, found = meta.get(_STATISTICS, {}), true.get(_STATISTICS, {})
    if any(said[field] != found.get(field) for field in said if field in _OF_VALUES):
        yield f"its statistics are {said}, its values give {found}"


def _check_chunk(data: Bytes, chunk: Struct, written: _Written, *, is_whole: bool) -> Iterator[str]:
    """Compare everything that is said of a column, if the installed version of the writer wrote it.

    Args:
        data: The file.
        chunk: What its footer says of the column.
        written: Where rows of it were written again.
        is_whole: Whether these are all rows.
    """
    meta, true_chunk = chunk[_META], written.chunks[_name(chunk[_META])]
    true, pages = true_chunk[_META], list(_pages(data, meta))
    values = [page.num_values for page in pages]
    if sum(values) != meta[_NUM_VALUES] or _uncompressed(pages) != meta[_UNCOMPRESSED]:
        yield "its pages have another size or number of values than its footer says"
    first = next((page.place for page, number in zip(pages, values, strict=True) if number), 0)
    if first != meta[_DATA_PLACE]:
        yield "its pages are elsewhere than its footer says"
    ignored, true_pages = set(_OF_COMPRESSION), list(_pages(written.data, true))
    if not is_whole:
        ignored |= meta.keys() - _OF_COLUMN
    elif values != [page.num_values for page in true_pages]:
        ignored.add(_ENCODING_STATS)  # which count pages: these end elsewhere where rows came in other batches
    elif [page.said for page in pages] != [page.said for page in true_pages]:
        yield "the headers of its pages are not those that are written"
    is_known = meta.keys() == true.keys() and _without(chunk, {_META}) == _without(true_chunk, {_META})
    if not is_known or _without(meta, ignored) != _without(true, ignored):
        yield "its footer says of it what is not written"


def _pages(data: Bytes, meta: Struct) -> Iterator[_Page]:
    """Yield the headers of a column's pages, in order."""
    place = _begin(meta)
    last = place + meta[_COMPRESSED]
    while place < last:
        header, end = read_struct(data, place)
        yield _Page(place, end, header)
        place = end + header[_PAGE_COMPRESSED]
    if place != last:
        raise ValueError("a page ends behind its column")


def _begin(meta: Struct) -> int:
    """Return where a column begins; 0 if it has no pages."""
    place: int = meta[_DICTIONARY_PLACE] if _DICTIONARY_PLACE in meta else meta[_DATA_PLACE]
    return place


def _uncompressed(pages: list[_Page]) -> int:
    return sum(page.end - page.place + page.header[_PAGE_UNCOMPRESSED] for page in pages)


def _name(meta: Struct) -> str:
    return b".".join(meta[_PATH]).decode(errors="replace")


def _without(fields: Struct, ignored: set[int]) -> Struct:
    return {number: value for number, value in fields.items() if number not in ignored}


def _read_footer(data: Bytes) -> tuple[Struct, int, int]:
    """Return the footer of a file, where it begins and where it ends."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, end = read_struct(data, start)
    return footer, start, end
