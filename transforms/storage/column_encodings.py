"""What the footer of a Parquet file says of its columns: their encodings, places and sizes.

Arrow knows them too, but where the footer contradicts itself about a column, asking Arrow about that column ends the
process instead of raising an exception.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import BinaryIO, NamedTuple

from transforms.storage.thrift import I32, I64, LIST, STRUCT, Fields

DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY = 6, 7
"""Encodings of text, by their numbers in the format."""

_TAIL_BYTES = 8
_MAGIC = b"PAR1"
_SEAM, _SEAM_BYTES = re.compile(b"(?s)(....)" + 2 * _MAGIC), 12
"""Where a file ends and another one begins: the length of the footer, and the bytes that each ends and begins with."""

_SEARCH_BYTES = 1 << 20
_ROW_GROUPS, _COLUMNS, _COLUMN_METADATA, _ENCODINGS = 4, 1, 3, 2
_UNCOMPRESSED, _COMPRESSED, _DATA_PLACE, _DICTIONARY_PLACE = 6, 7, 9, 11
"""The numbers of the fields in the structs of a footer."""


class Chunk(NamedTuple):
    """A column in a row group.

    Attributes:
        encodings: The numbers of its encodings.
        place: Where it begins in the file.
        num_bytes: Its size in the file.
        uncompressed_bytes: Its size without compression.
    """

    encodings: frozenset[int]
    place: int
    num_bytes: int
    uncompressed_bytes: int


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


def has_file_before(file: BinaryIO, groups: Iterable[Mapping[int, Chunk]]) -> bool:
    """Return whether another Parquet file was joined before a Parquet file.

    The places in a footer count from the beginning of its own file, so the columns would be read from the other one. As
    those bytes are then between the last column and the footer, the other file is no longer than that: no more is read
    of the file, usually a few kilobytes.

    Args:
        file: The file.
        groups: All its columns, as of `read_chunks`.
    """
    last = max((chunk.place + chunk.num_bytes for group in groups for chunk in group.values()), default=0)
    end = max(0, _find_footer(file)[0] - last) + len(_MAGIC)
    file.seek(0)
    place, data = 0, b""
    while piece := file.read(min(_SEARCH_BYTES, end - place)):
        data = data[-_SEAM_BYTES + 1 :] + piece
        place += len(piece)
        for seam in _SEAM.finditer(data):
            if 0 < int.from_bytes(seam[1], "little") <= place - len(data) + seam.start() - len(_MAGIC):
                return True
    return False


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
    for number, kind in fields.of_struct():
        if (number, kind) != (_COLUMN_METADATA, STRUCT):
            fields.skip(kind)
            continue
        for inner, inner_kind in fields.of_struct():
            if (inner, inner_kind) == (_ENCODINGS, LIST):
                encodings += _whole_numbers(fields)
            elif inner in sizes and inner_kind == I64:
                sizes[inner] = fields.whole_number()
            else:
                fields.skip(inner_kind)
    place = sizes[_DICTIONARY_PLACE] or sizes[_DATA_PLACE]
    return Chunk(frozenset(encodings), place, sizes[_COMPRESSED], sizes[_UNCOMPRESSED])


def _whole_numbers(fields: Fields) -> list[int]:
    size, of = fields.list_header()
    if of != I32:
        raise ValueError("encodings are no whole numbers")
    return [fields.whole_number() for _ in range(size)]
