"""Finding the members of a zip archive: by its central directory, or by local headers where that is missing or damaged.

Layout and signatures: PKWARE's APPNOTE 6.3.10, sections 4.3 and 4.5.3 (zip64). The directory is read as a stream, one
entry at a time, and is looked through once before it is believed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import BinaryIO

LOCAL = b"PK\x03\x04"
CENTRAL = b"PK\x01\x02"
END = b"PK\x05\x06"
_END64_LOCATOR = b"PK\x06\x07"
_END64 = b"PK\x06\x06"

_LOCAL_HEADER = struct.Struct("<4x5H3I2H")
_CENTRAL_HEADER = struct.Struct("<4x6H3I5H2I")
_END_RECORD = struct.Struct("<4x4H2IH")
_END64_RECORD = struct.Struct("<4xQ2H2I4Q")
_ZIP64_EXTRA = 0x0001
_MAX_COMMENT = 0xFFFF
_MAX_4 = 0xFFFFFFFF
_SEARCH_BYTES = 1 << 16
_TRIED_ENTRIES = 8


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One member, as a header describes it; nothing in it is checked yet.

    Attributes:
        name: The name's bytes.
        flags: General purpose bit flags.
        method: Compression method.
        crc: CRC-32 of the content.
        compressed: Compressed size in bytes.
        num_bytes: Size of the content in bytes.
        offset: Where the local header stands.
        data: Where the data begin, 0 if only the local header can tell.
        mode: Unix mode, 0 if unknown.
    """

    name: bytes
    flags: int
    method: int
    crc: int
    compressed: int
    num_bytes: int
    offset: int
    data: int = 0
    mode: int = 0

    @property
    def has_descriptor(self) -> bool:
        """Whether the sizes stand behind the data and not in the local header."""
        return bool(self.flags & 8)


class DirectoryError(Exception):
    """A central directory that is damaged."""


class NoDirectoryError(DirectoryError):
    """A file without the record at its end that says where the directory is."""


class Directory:
    """The central directory of a zip archive.

    Raises:
        DirectoryError: If there is none, or it cannot be read from end to end.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        """Find the directory of a file of `size` bytes and look through it once."""
        self._file, self._size = file, size
        try:
            self._place()
            entries = sum(1 for _ in self.entries())
        except (struct.error, EOFError) as error:
            raise DirectoryError("the directory is damaged") from error
        if entries % 0x10000 != self._count % 0x10000:
            raise DirectoryError(f"the directory has {entries} entries and not {self._count}")
        if entries and not any(locate(file, entry) for entry in islice(self.entries(), _TRIED_ENTRIES)):
            raise DirectoryError("the directory points to where no member is")

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in order."""
        place, end = self._start, self._start + self._length
        while place < end:
            self._file.seek(place)
            header = read_exactly(self._file, _CENTRAL_HEADER.size)
            if not header.startswith(CENTRAL):
                raise DirectoryError("a directory entry is damaged")
            entry, length = self._entry(header)
            yield entry
            place += _CENTRAL_HEADER.size + length

    def _entry(self, header: bytes) -> tuple[Entry, int]:
        """Return an entry and how many bytes follow its fixed part."""
        (_, _, flags, method, _, _, crc, compressed, size, names, extras, comments, _, _, external, offset) = (
            _CENTRAL_HEADER.unpack(header)
        )
        name, extra = read_exactly(self._file, names), read_exactly(self._file, extras)
        size, compressed, offset = _zip64(extra, size, compressed, offset)
        entry = Entry(
            name=name,
            flags=flags,
            method=method,
            crc=crc,
            compressed=compressed,
            num_bytes=size,
            offset=offset + self._shift,
            mode=external >> 16,
        )
        return entry, names + extras + comments

    def _place(self) -> None:
        """Find where the directory stands, from the record at the end of the file."""
        tail_start = max(0, self._size - _MAX_COMMENT - _END_RECORD.size)
        self._file.seek(tail_start)
        tail = read_exactly(self._file, self._size - tail_start)
        found = tail.rfind(END)
        if found < 0 or len(tail) - found < _END_RECORD.size:
            raise NoDirectoryError("no central directory")
        _, _, _, count, length, start, _ = _END_RECORD.unpack_from(tail, found)
        end = tail_start + found
        locator = end - 20
        if locator >= 0 and self._at(locator, 4) == _END64_LOCATOR:
            end, count, length, start = self._place64(locator)
        self._count, self._length = count, length
        self._shift = end - length - start  # what stands before the archive, in a self-extracting one
        self._start = end - length
        if self._shift < 0 or self._start < 0:
            raise DirectoryError("the directory is not where the archive says")

    def _place64(self, locator: int) -> tuple[int, int, int, int]:
        """Return end, entries, length and start as the zip64 record gives them."""
        place = locator - _END64_RECORD.size
        record = self._at(place, _END64_RECORD.size) if place >= 0 else b""
        if not record.startswith(_END64):
            raise DirectoryError("the zip64 record is damaged")
        *_, count, length, start = _END64_RECORD.unpack(record)
        return place, count, length, start

    def _at(self, place: int, num_bytes: int) -> bytes:
        self._file.seek(place)
        return read_exactly(self._file, num_bytes)


def local_entry(file: BinaryIO, offset: int) -> Entry | None:
    """Read the local header at an offset; None if there is none.

    Raises:
        EOFError: If it is cut.
    """
    file.seek(offset)
    header = file.read(_LOCAL_HEADER.size)
    if not header.startswith(LOCAL):
        return None
    if len(header) < _LOCAL_HEADER.size:
        raise EOFError
    _, flags, method, _, _, crc, compressed, size, names, extras = _LOCAL_HEADER.unpack(header)
    name, extra = read_exactly(file, names), read_exactly(file, extras)
    try:
        size, compressed, _ = _zip64(extra, size, compressed, 0)
    except struct.error:
        return None
    return Entry(
        name=name,
        flags=flags,
        method=method,
        crc=crc,
        compressed=compressed,
        num_bytes=size,
        offset=offset,
        data=offset + _LOCAL_HEADER.size + names + extras,
    )


def locate(file: BinaryIO, entry: Entry) -> Entry | None:
    """Return a directory's entry with the place of its data; None if there is no local header where it says."""
    try:
        local = local_entry(file, entry.offset)
    except EOFError:
        return None
    return None if local is None else replace(entry, data=local.data)


def find_local(file: BinaryIO, start: int) -> int | None:
    """Return where the next local header begins, at or behind `start`."""
    place, kept = start, b""
    file.seek(start)
    while piece := file.read(_SEARCH_BYTES):
        window = kept + piece
        found = window.find(LOCAL)
        if found >= 0:
            return place - len(kept) + found
        place += len(piece)
        kept = window[-3:]
    return None


def read_exactly(file: BinaryIO, num_bytes: int) -> bytes:
    """Return exactly `num_bytes`.

    Raises:
        EOFError: If the file ends before.
    """
    data = file.read(num_bytes)
    if len(data) < num_bytes:
        raise EOFError
    return data


def _zip64(extra: bytes, size: int, compressed: int, offset: int) -> tuple[int, int, int]:
    """Return size, compressed size and offset, from the zip64 extra field where the header's are full."""
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, place)
        if kind == _ZIP64_EXTRA:
            values = list(struct.unpack_from(f"<{length // 8}Q", extra, place + 4))
            size = values.pop(0) if size == _MAX_4 and values else size
            compressed = values.pop(0) if compressed == _MAX_4 and values else compressed
            offset = values.pop(0) if offset == _MAX_4 and values else offset
            break
        place += 4 + length
    return size, compressed, offset
