"""What the footer of a Parquet file says of its columns: their encodings, places and sizes.

Arrow knows them too, but where the footer contradicts itself about a column, asking Arrow about that column ends the
process instead of raising an exception.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple

from transforms.storage.thrift import I32, I64, LIST, STRUCT, Fields

DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY = 6, 7
"""Encodings of text, by their numbers in the format."""

_TAIL_BYTES = 8
_MAGIC = b"PAR1"
"""With which a file begins, and ends behind the length of its footer."""

_PAGE_HEADER = b"\x15"
"""With which the header of a page begins, the first of which is behind the magic number."""

_ARROW_SCHEMA = b"\x0cARROW:schema"
"""The key, behind its length, under which Arrow notes its own types of columns; last but for their text and a name."""

_SEARCH_BYTES = 1 << 20
_ROW_GROUPS, _COLUMNS, _COLUMN_METADATA, _ENCODINGS = 4, 1, 3, 2
_INDEX_LENGTHS, _BLOOM_LENGTH = (5, 7), 15
_UNCOMPRESSED, _COMPRESSED, _DATA_PLACE, _DICTIONARY_PLACE = 6, 7, 9, 11
"""The numbers of the fields in the structs of a footer."""


class Chunk(NamedTuple):
    """A column in a row group.

    Attributes:
        encodings: The numbers of its encodings.
        place: Where it begins in the file.
        num_bytes: Its size in the file.
        uncompressed_bytes: Its size without compression.
        index_bytes: The size of its page indexes and its Bloom filter, which are behind all columns.
    """

    encodings: frozenset[int]
    place: int
    num_bytes: int
    uncompressed_bytes: int
    index_bytes: int


def read_chunks(file: BinaryIO, places: Container[int]) -> list[dict[int, Chunk]]:
    """Return what the footer says of some columns by their place, for each row group of a Parquet file.

    Args:
        file: The file, of which Arrow can read the footer.
        places: The places of the columns in the row groups, from 0.

    Raises:
        ValueError: If the footer is not in the compact protocol of Thrift.
    """
    place, length = _find_footer(file)
    file.seek(place)
    fields, groups = Fields(file.read(length)), []
    try:
        for number, kind in fields.of_struct():
            if (number, kind) == (_ROW_GROUPS, LIST):
                groups = [dict(_of_group(fields, places)) for _ in fields.structs_of_list()]
            else:
                fields.skip(kind)
    except IndexError as error:
        raise ValueError("the footer ends too early") from error
    return groups


def without_arrow_types(file: BinaryIO) -> bytes:
    """Return a file of the footer alone in which columns have the types of Parquet, not those that Arrow notes beside.

    Arrow reads text as dictionaries where it notes so, which it cannot do with all encodings.
    """
    place, length = _find_footer(file)
    file.seek(place)
    before, key, behind = file.read(length).rpartition(_ARROW_SCHEMA)
    return b"".join((_MAGIC, before, key.lower(), behind, length.to_bytes(4, "little"), _MAGIC))


def has_file_before(file: BinaryIO, groups: Sequence[Mapping[int, Chunk]]) -> bool:
    """Return whether another Parquet file was joined before a Parquet file, perhaps cut, or with other bytes between.

    The places in a footer count from the beginning of its own file, so the columns would be read from the other one.
    That one is then no longer than what is between the last column and the footer, besides the indexes of columns. Of
    most files that is nothing, and no more is read.

    Args:
        file: The file.
        groups: All its columns, as of `read_chunks`.
    """
    chunks = [chunk for group in groups for chunk in group.values()]
    last = max((chunk.place + chunk.num_bytes for chunk in chunks), default=len(_MAGIC))
    unknown = _find_footer(file)[0] - last - sum(chunk.index_bytes for chunk in chunks)
    end = max(0, unknown) + len(_MAGIC) + 1
    file.seek(0)
    place, data = 0, b""
    while piece := file.read(min(_SEARCH_BYTES, end - place)):
        data = data[-2 * len(_MAGIC) :] + piece
        place += len(piece)
        if any(_is_seam(data, found.start(), place - len(data)) for found in re.finditer(_MAGIC, data)):
            return True
    return False


def _is_seam(data: bytes, at: int, first: int) -> bool:
    """Return whether a magic number ends a file, behind a possible length of its footer, or begins one with a page.

    Args:
        data: A part of a file.
        at: Where the magic number is in it.
        first: Where the part begins.
    """
    length, behind = data[max(0, at - 4) : at], data[at + len(_MAGIC) : at + len(_MAGIC) + 1]
    is_end = len(length) == 4 and 0 < int.from_bytes(length, "little") <= first + at - 4 - len(_MAGIC)
    return is_end or (first + at > 0 and behind == _PAGE_HEADER)


def _find_footer(file: BinaryIO) -> tuple[int, int]:
    """Return where the footer begins, and its size."""
    end = file.seek(-_TAIL_BYTES, os.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    return end - length, length


def _of_group(fields: Fields, places: Container[int]) -> Iterator[tuple[int, Chunk]]:
    """Yield columns of the row group that comes next, with their places."""
    for number, kind in fields.of_struct():
        if (number, kind) != (_COLUMNS, LIST):
            fields.skip(kind)
            continue
        for place in fields.structs_of_list():
            if place in places:
                yield place, _read_column(fields)
            else:
                fields.skip(STRUCT)


def _read_column(fields: Fields) -> Chunk:
    """Return the column that comes next; of what the footer leaves out, the number is 0."""
    encodings, sizes = list[int](), dict.fromkeys((_UNCOMPRESSED, _COMPRESSED, _DATA_PLACE, _DICTIONARY_PLACE), 0)
    index_bytes = 0
    for number, kind in fields.of_struct():
        if number in _INDEX_LENGTHS and kind == I32:
            index_bytes += fields.whole_number()
            continue
        if (number, kind) != (_COLUMN_METADATA, STRUCT):
            fields.skip(kind)
            continue
        for inner, inner_kind in fields.of_struct():
            if (inner, inner_kind) == (_ENCODINGS, LIST):
                encodings += _whole_numbers(fields)
            elif inner in sizes and inner_kind == I64:
                sizes[inner] = fields.whole_number()
            elif (inner, inner_kind) == (_BLOOM_LENGTH, I32):
                index_bytes += fields.whole_number()
            else:
                fields.skip(inner_kind)
    place = sizes[_DICTIONARY_PLACE] or sizes[_DATA_PLACE]
    return Chunk(frozenset(encodings), place, sizes[_COMPRESSED], sizes[_UNCOMPRESSED], index_bytes)


def _whole_numbers(fields: Fields) -> list[int]:
    size, of = fields.list_header()
    if of != I32:
        raise ValueError("encodings are no whole numbers")
    return [fields.whole_number() for _ in range(size)]
