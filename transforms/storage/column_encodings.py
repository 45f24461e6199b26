"""The encodings of columns of a Parquet file, read from its footer.

Arrow knows them too, but where the footer contradicts itself about a column, asking Arrow about that column ends the
process instead of raising an exception.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from typing import BinaryIO

from transforms.storage.thrift import I32, LIST, STRUCT, Fields

DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY = 6, 7
"""Encodings of text, by their numbers in the format."""

_TAIL_BYTES = 8
_ROW_GROUPS, _COLUMNS, _COLUMN_METADATA, _ENCODINGS = 4, 1, 3, 2
"""The numbers of the fields in the structs of a footer."""


def read_encodings(file: BinaryIO, places: Container[int]) -> list[frozenset[int]]:
    """Return the numbers of the encodings that some columns have, for each row group of a Parquet file.

    Args:
        file: The file, of which Arrow can read the footer.
        places: The places of the columns in the row groups, from 0.

    Raises:
        ValueError: If the footer is not in the compact protocol of Thrift.
    """
    file.seek(-_TAIL_BYTES, os.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    file.seek(-_TAIL_BYTES - length, os.SEEK_END)
    fields, groups = Fields(file.read(length)), []
    try:
        for number, kind in fields.of_struct():
            if (number, kind) == (_ROW_GROUPS, LIST):
                groups = [frozenset(_of_group(fields, places)) for _ in fields.structs_of_list()]
            else:
                fields.skip(kind)
    except IndexError as error:
        raise ValueError("the footer ends too early") from error
    return groups


def _of_group(fields: Fields, places: Container[int]) -> Iterator[int]:
    """Yield the encodings of columns of the row group that comes next."""
    for number, kind in fields.of_struct():
        if (number, kind) != (_COLUMNS, LIST):
            fields.skip(kind)
            continue
        for place in fields.structs_of_list():
            if place in places:
                yield from _of_column(fields)
            else:
                fields.skip(STRUCT)


def _of_column(fields: Fields) -> Iterator[int]:
    for number, kind in fields.of_struct():
        if (number, kind) != (_COLUMN_METADATA, STRUCT):
            fields.skip(kind)
            continue
        for inner, inner_kind in fields.of_struct():
            if (inner, inner_kind) == (_ENCODINGS, LIST):
                size, of = fields.list_header()
                if of != I32:
                    raise ValueError("encodings are no whole numbers")
                for _ in range(size):
                    yield fields.whole_number()
            else:
                fields.skip(inner_kind)
