"""The size of the largest page of a column of a Parquet file, which whoever reads the column holds whole.

It is read from the headers of the pages, because a footer need not be true.
"""

from __future__ import annotations

from typing import BinaryIO

from transforms.storage.thrift import I32, Fields

_UNCOMPRESSED, _COMPRESSED = 2, 3
"""The numbers of the fields in the header of a page."""

_FIRST_READ_BYTES, _MAX_HEADER_BYTES = 1 << 10, 16 << 20
"""What is read of a header at first, and how long Arrow lets one be: it may hold values, as statistics."""


def largest_page(file: BinaryIO, place: int, num_bytes: int) -> int:
    """Return the bytes of the largest page of a column, decompressed; 0 if it has none.

    Pages from a damaged header on are not looked at: whoever reads them ends there too.

    Args:
        file: The Parquet file.
        place: Where the column begins.
        num_bytes: Its size in the file.
    """
    largest, end = 0, place + num_bytes
    while 0 <= place < end:
        try:
            uncompressed, compressed, length = _read_header(file, place)
        except (IndexError, ValueError):
            break
        largest, place = max(largest, uncompressed), place + length + compressed
    return largest


def _read_header(file: BinaryIO, place: int) -> tuple[int, int, int]:
    """Return the sizes of a page, decompressed and in the file, and that of its header."""
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


def _parse_header(fields: Fields) -> tuple[int, int, int]:
    """Return the same of the header that comes next.

    Raises:
        IndexError: If the data end before it.
        ValueError: If it is not in the compact protocol of Thrift, or has sizes that cannot be.
    """
    sizes = {_UNCOMPRESSED: 0, _COMPRESSED: 0}
    for number, kind in fields.of_struct():
        if number in sizes and kind == I32:
            sizes[number] = fields.whole_number()
        else:
            fields.skip(kind)
    if not all(0 <= size < 1 << 31 for size in sizes.values()):
        raise ValueError(f"a page of {sizes[_UNCOMPRESSED]} bytes, {sizes[_COMPRESSED]} in the file")
    return sizes[_UNCOMPRESSED], sizes[_COMPRESSED], fields.at
