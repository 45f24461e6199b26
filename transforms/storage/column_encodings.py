"""The encodings of columns of a Parquet file, read from its footer.

Arrow knows them too, but where the footer contradicts itself about a column, asking Arrow about that column ends the
process instead of raising an exception.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from typing import BinaryIO

DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY = 6, 7
"""Encodings of text, by their numbers in the format."""

_TAIL_BYTES = 8
_MAX_DEPTH = 64
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(1, 14)
_FIXED_BYTES = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8, _UUID: 16}
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
    fields, groups = _Fields(file.read(length)), []
    try:
        for number, kind in fields.of_struct():
            if (number, kind) == (_ROW_GROUPS, _LIST):
                groups = [frozenset(_of_group(fields, places)) for _ in fields.structs_of_list()]
            else:
                fields.skip(kind)
    except IndexError as error:
        raise ValueError("the footer ends too early") from error
    return groups


def _of_group(fields: _Fields, places: Container[int]) -> Iterator[int]:
    """Yield the encodings of columns of the row group that comes next."""
    for number, kind in fields.of_struct():
        if (number, kind) != (_COLUMNS, _LIST):
            fields.skip(kind)
            continue
        for place in fields.structs_of_list():
            if place in places:
                yield from _of_column(fields)
            else:
                fields.skip(_STRUCT)


def _of_column(fields: _Fields) -> Iterator[int]:
    for number, kind in fields.of_struct():
        if (number, kind) != (_COLUMN_METADATA, _STRUCT):
            fields.skip(kind)
            continue
        for inner, inner_kind in fields.of_struct():
            if (inner, inner_kind) == (_ENCODINGS, _LIST):
                size, of = fields.list_header()
                if of != _I32:
                    raise ValueError("encodings are no whole numbers")
                for _ in range(size):
                    yield fields.whole_number()
            else:
                fields.skip(inner_kind)


class _Fields:
    """Bytes in the compact protocol of Thrift, read from the first to the last."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def of_struct(self) -> Iterator[tuple[int, int]]:
        """Yield number and kind of each field of a struct; the caller reads or skips its value."""
        number = 0
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self.whole_number()
            yield number, header & 15

    def list_header(self) -> tuple[int, int]:
        """Return size and kind of the entries of a list."""
        header = self._byte()
        return (self._varint() if header >> 4 == 15 else header >> 4), header & 15

    def structs_of_list(self) -> Iterator[int]:
        """Yield the place of each struct of a list; the caller reads it."""
        size, kind = self.list_header()
        if kind != _STRUCT:
            raise ValueError("a list has no structs")
        yield from range(size)

    def whole_number(self) -> int:
        """Return a signed number."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass over the value of a field."""
        if kind not in (_TRUE, _FALSE):  # the header has the value
            self._skip_entry(kind, depth)

    def _skip_entry(self, kind: int, depth: int) -> None:
        """Pass over an entry of a list, or the value of a field that is no boolean."""
        if depth > _MAX_DEPTH:
            raise ValueError("nested too deeply")
        if kind in _FIXED_BYTES:
            self._pass(_FIXED_BYTES[kind])
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _BINARY:
            self._pass(self._varint())
        elif kind in (_LIST, _SET):
            size, of = self.list_header()
            for _ in range(size):
                self._skip_entry(of, depth + 1)
        elif kind == _MAP:
            size = self._varint()
            of = self._byte() if size else 0
            for _ in range(size):
                self._skip_entry(of >> 4, depth + 1)
                self._skip_entry(of & 15, depth + 1)
        elif kind == _STRUCT:
            for _, inner in self.of_struct():
                self.skip(inner, depth + 1)
        else:
            raise ValueError(f"there is no kind of value {kind}")

    def _pass(self, size: int) -> None:
        self._at += size
        if self._at > len(self._data):
            raise IndexError

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) > 127:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift
