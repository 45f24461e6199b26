"""The pages of a column of a Parquet file: the largest, which whoever reads the column holds whole, and all values.

They are read from the headers of the pages, because a footer need not be true, and because a reader that misses a page
may not say so.
"""

from __future__ import annotations

from typing import BinaryIO, NamedTuple

from transforms.storage.thrift import I32, STRUCT, Fields

_TYPE, _UNCOMPRESSED, _COMPRESSED = 1, 2, 3
"""The numbers of the fields in the header of a page."""

_OF_TYPE = {5: 0, 6: 1, 7: 2, 8: 3}
"""The types of pages, by the number of the field that only their headers have."""

_WITH_ROWS = (0, 3)
"""The types of pages that have rows, in both versions of the format."""

_FIRST_READ_BYTES, _MAX_HEADER_BYTES = 1 << 10, 16 << 20
"""What is read of a header at first, and how long Arrow lets one be: it may hold values, as statistics."""


class Pages(NamedTuple):
    """The pages of a column.

    Attributes:
        largest: The bytes of the largest, decompressed; 0 if there is none.
        num_values: How many values all have, nulls too; None if a header is damaged.
    """

    largest: int
    num_values: int | None


def read_pages(file: BinaryIO, place: int, num_bytes: int) -> Pages:
    """Return what the headers of a column's pages say.

    Pages from a damaged header on are not looked at: whoever reads them ends there too.

    Args:
        file: The Parquet file.
        place: Where the column begins.
        num_bytes: Its size in the file.
    """
    largest, num_values, end = 0, 0, place + num_bytes
    while 0 <= place < end:
        try:
            page = _read_header(file, place)
        except (IndexError, ValueError):
            return Pages(largest, None)
        largest, place = max(largest, page.uncompressed), place + page.length + page.compressed
        num_values += page.num_values
    return Pages(largest, num_values)


class _Header(NamedTuple):
    """The sizes of a page, decompressed and in the file, its values, and the size of its header."""

    uncompressed: int
    compressed: int
    num_values: int
    length: int


def _read_header(file: BinaryIO, place: int) -> _Header:
    size = _FIRST_READ_BYTES
    while True:
        file.seek(place)
        data = file.read(size)
        try:
            return _parse_header(Fields(data))
        except IndexError:
            if len(data) < size or size >= _MAX_HEADER_BYTES:
                raise
        size <<= 7


def _parse_header(fields: Fields) -> _Header:
    """Return the header that comes next.

    Raises:
        IndexError: If the data end before it.
        ValueError: If it is not in the compact protocol of Thrift, or has values that cannot be.
    """
    numbers, kinds, num_values = {_TYPE: -1, _UNCOMPRESSED: 0, _COMPRESSED: 0}, set[int](), 0
    for number, kind in fields.of_struct():
        if number in numbers and kind == I32:
            numbers[number] = fields.whole_number()
        elif number in _OF_TYPE and kind == STRUCT:
            kinds.add(_OF_TYPE[number])
            num_values = int(fields.struct().get(1) or 0)
        else:
            fields.skip(kind)
    if not all(0 <= numbers[name] < 1 << 31 for name in (_UNCOMPRESSED, _COMPRESSED)):
        raise ValueError(f"a page of {numbers[_UNCOMPRESSED]} bytes, {numbers[_COMPRESSED]} in the file")
    if kinds != {numbers[_TYPE]}:
        raise ValueError(f"the header of a page of type {numbers[_TYPE]} is another one's")
    has_rows = numbers[_TYPE] in _WITH_ROWS
    return _Header(numbers[_UNCOMPRESSED], numbers[_COMPRESSED], num_values if has_rows else 0, fields.at)
