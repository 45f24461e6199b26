"""The compact protocol of Apache Thrift, in which Parquet writes its footers and page headers."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from typing import Any

Bytes = bytes | mmap.mmap

Struct = dict[int, Any]
"""A struct: values by the number of their field."""

MAX_DEPTH = 64
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)
_FIXED_BYTES = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8, UUID: 16}


def read_struct(data: Bytes, place: int) -> tuple[Struct, int]:
    r"""Return a struct that begins at a place, and where it ends.

    Raises:
        IndexError: If the data end before it.
        ValueError: If it has a type that the protocol does not have, or is nested deeply.

    Example:
        >>> read_struct(b"\x15\x02\x18\x01a\x00", 0)
        ({1: 1, 2: b'a'}, 6)
    """
    fields = Fields(data, place)
    return fields.struct(), fields.at


class Fields:
    """Bytes in the protocol, read from a place to the last.

    Attributes:
        at: Where the next byte is.
    """

    def __init__(self, data: Bytes, at: int = 0) -> None:
        """Begin at a place."""
        self._data, self.at = data, at

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
        if kind != STRUCT:
            raise ValueError("a list has no structs")
        yield from range(size)

    def whole_number(self) -> int:
        """Return a signed number."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int = 0) -> Struct:
        """Return a whole struct."""
        return {number: self._value(kind, depth) for number, kind in self.of_struct()}

    def _value(self, kind: int, depth: int) -> Any:  # noqa: ANN401 - a value of any type
        """Return the value of a field; the header has that of a boolean."""
        return kind == TRUE if kind in (TRUE, FALSE) else self._entry(kind, depth)

    def _entry(self, kind: int, depth: int) -> Any:  # noqa: ANN401 - a value of any type
        """Return an entry of a list, or the value of a field that is no boolean."""
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        if kind in (I16, I32, I64):
            return self.whole_number()
        if kind == DOUBLE:
            return struct.unpack("<d", self._pass(8))[0]
        if kind == BINARY:
            return bytes(self._pass(self._varint()))
        if kind in (LIST, SET):
            size, of = self.list_header()
            return [self._entry(of, depth + 1) for _ in range(size)]
        if kind == STRUCT:
            return self.struct(depth + 1)
        raise ValueError(f"type {kind} at byte {self.at}")

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass over the value of a field."""
        if kind not in (TRUE, FALSE):  # the header has the value
            self._skip_entry(kind, depth)

    def _skip_entry(self, kind: int, depth: int) -> None:
        """Pass over an entry of a list, or the value of a field that is no boolean."""
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        if kind in _FIXED_BYTES:
            self._pass(_FIXED_BYTES[kind])
        elif kind in (I16, I32, I64):
            self._varint()
        elif kind == BINARY:
            self._pass(self._varint())
        elif kind in (LIST, SET):
            size, of = self.list_header()
            for _ in range(size):
                self._skip_entry(of, depth + 1)
        elif kind == MAP:
            size = self._varint()
            of = self._byte() if size else 0
            for _ in range(size):
                self._skip_entry(of >> 4, depth + 1)
                self._skip_entry(of & 15, depth + 1)
        elif kind == STRUCT:
            for _, inner in self.of_struct():
                self.skip(inner, depth + 1)
        else:
            raise ValueError(f"there is no kind of value {kind}")

    def _pass(self, size: int) -> bytes:
        """Return the next bytes."""
        begin, self.at = self.at, self.at + size
        if self.at > len(self._data):
            raise IndexError
        return self._data[begin : self.at]

    def _byte(self) -> int:
        value = self._data[self.at]
        self.at += 1
        return value

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) > 127:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift
