"""Members of zip archives, by `zipfile`: stored, deflate, bzip2 and Zstandard, each checked against size and CRC-32.

An archive whose directory is missing or damaged is one dead document: its members are not searched for. Of several
archives in one file, only the last directory is read, and what is before it is one dead document too. Encrypted members
and archives in several files are not read. `zipfile` holds the directory, about a kilobyte for each member.
"""

from __future__ import annotations

import io
import re
import stat
import struct
import sys
import zlib
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, cast

from schemas.reasons import Dead, Filtered
from transforms.sources.decoders import DECODER_ERRORS, PIECE_BYTES, describe_excess
from transforms.sources.document import Archive, DamageError, Document, link_target

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

_MAX_RATIO = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
_MAX_OTHER_RATIO = 100_000
_SLACK_BYTES = 1 << 10
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_ZSTANDARD)
_ENCRYPTED = 1 | 1 << 6 | 1 << 13
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_OTHER = re.compile(
    _LOCAL + rb"[\x0a-\x3f]\0..[\0\x08\x09\x0c\x0e\x5d\x5f\x62]\0|" + _END + rb"\0\0\0\0.{14}", re.DOTALL
)
"""The header of a member, with a version and a method that there are, or the end of an archive in one file."""

_LOCAL_HEADER = struct.Struct("<4s22x2H")
_CENTRAL_BYTES = 46
_END_BYTES = 22
_MAX_END_BYTES = _END_BYTES + 0xFFFF
_COUNTED_ELSEWHERE = 0xFFFF
_MAX_DIRECTORY_BYTES = 64 << 20
_NOWHERE = -1
_DIRECTORY_ERRORS = (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, EOFError, struct.error)
_MEMBER_ERRORS = (*DECODER_ERRORS, zipfile.BadZipFile, NotImplementedError)


def iter_zip(archive: Archive, file: BinaryIO) -> Iterator[Document]:
    """Yield the members of a zip archive in the order of its directory.

    Raises:
        DamageError: If it has no directory that can be read, or expands beyond measure.
    """
    tail = _tail(file)
    entries, place = _directory(file, tail)
    places = [info.header_offset for info in entries if info.header_offset != _NOWHERE]
    yield from _other_archives(archive, file, tail, min(places, default=0 if entries else place))
    for info in entries:
        archive.count_row()
        name = _name(info)
        if name.endswith("/") and not info.file_size:
            continue
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            archive.leave_alone(name, partial(_target, archive, file, info, name))
            continue
        yield _member(archive, file, info, name.rstrip("/"))


def needs_zstandard(file: BinaryIO) -> bool:
    """Return whether members are compressed in a way that Python's own `zipfile` reads from 3.14 on.

    Raises:
        DamageError: If there is no directory that can be read.
    """
    return any(info.compress_type == zipfile.ZIP_ZSTANDARD for info in _directory(file, _tail(file))[0])


def _target(archive: Archive, file: BinaryIO, info: zipfile.ZipInfo, name: str) -> str | None:
    """Return the name of the member that a symbolic link, which holds it as its content, leads to."""
    content = _member(archive, file, info, name).content if stat.S_ISLNK(info.external_attr >> 16) else None
    return link_target(name, content.decode("utf-8", "surrogateescape")) if content else None


def _directory(file: BinaryIO, tail: bytes) -> tuple[list[zipfile.ZipInfo], int]:
    """Return the entries of the directory, those of members that cannot be before it `_NOWHERE`, and where it begins.

    Raises:
        DamageError: If there is none, or it cannot be read.
    """
    end = tail.rfind(_END)
    try:
        with zipfile.ZipFile(cast(BinaryIO, _NamesAsBytes(file))) as opened:
            entries, place = opened.filelist, opened.start_dir
    except _DIRECTORY_ERRORS as error:
        file.seek(0)
        reason = Dead.CORRUPT if end >= 0 else Dead.TRUNCATED
        if file.read(len(_LOCAL)) != _LOCAL:
            reason = Dead.NOT_AN_ARCHIVE
        raise DamageError(reason, f"no readable directory ({type(error).__name__})") from error
    count = int.from_bytes(tail[end + 10 : end + 12], "little")
    if count not in (len(entries) % 0x10000, _COUNTED_ELSEWHERE):
        raise DamageError(Dead.CORRUPT, f"the directory has {len(entries)} entries and not {count}")
    for info in entries:
        if info.header_offset not in range(place):
            info.header_offset = _NOWHERE
    return entries, place


def _other_archives(archive: Archive, file: BinaryIO, tail: bytes, first: int) -> Iterator[Document]:
    """Yield an entry for another archive before the first member, and for one behind the end; they may be cut.

    Other bytes may be there too, such as a program that unpacks the archive.
    """
    if first > 0 and _holds_archive(file, first):
        yield archive.entry(Dead.CORRUPT, "another zip archive before its first member", num_bytes=first)
    end = tail.rfind(_END)
    behind = tail[end + _END_BYTES + int.from_bytes(tail[end + _END_BYTES - 2 : end + _END_BYTES], "little") :]
    if _OTHER.search(behind):
        yield archive.entry(Dead.CORRUPT, "another zip archive behind its end", num_bytes=len(behind))


def _holds_archive(file: BinaryIO, end: int) -> bool:
    """Return whether the bytes up to a place have the header of a member, or the end of a directory that is there."""
    file.seek(0)
    place, data = 0, b""
    while piece := file.read(min(PIECE_BYTES, end - place)):
        data = data[-_END_BYTES:] + piece
        place += len(piece)
        for found in _OTHER.finditer(data):
            if found[0].startswith(_LOCAL):
                return True
            size = int.from_bytes(data[found.start() + 12 : found.start() + 16], "little")
            start = place - len(data) + found.start() - size
            if size and start >= 0 and _begins(file, start, _CENTRAL):
                return True
            file.seek(place)
    return False


def _begins(file: BinaryIO, place: int, magic: bytes) -> bool:
    file.seek(place)
    return file.read(len(magic)) == magic


def _tail(file: BinaryIO) -> bytes:
    """Return the end of a file, where the record that leads to the directory is."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - _MAX_END_BYTES))  # not every server says before how long it is
    return file.read(_MAX_END_BYTES)


class _NamesAsBytes(io.RawIOBase):
    """A zip file as `zipfile` reads its directory: all names are cp437, where each byte is a character.

    One name that says it is UTF-8 and is not would otherwise cost the whole archive.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_SET and offset < 0:
            raise ValueError("negative offset")
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1, /) -> bytes:
        if size > _MAX_DIRECTORY_BYTES:
            raise DamageError(Dead.UNSUPPORTED, f"a directory of more than {_MAX_DIRECTORY_BYTES} bytes")
        data = self._file.read(size)
        return _without_utf8_flags(data) if data.startswith(_CENTRAL) else data


def _without_utf8_flags(directory: bytes) -> bytes:
    """Return a directory without bit 11 of the flags of its entries."""
    changed, place = bytearray(directory), 0
    while directory.startswith(_CENTRAL, place) and place + _CENTRAL_BYTES <= len(directory):
        changed[place + 9] &= ~8
        place += _CENTRAL_BYTES + sum(struct.unpack_from("<3H", directory, place + 28))
    return bytes(changed)


def _name(info: zipfile.ZipInfo) -> str:
    """Return a member's name; bytes that are not UTF-8 become surrogate escapes, whatever the flag says."""
    return info.orig_filename.encode("cp437").split(b"\0")[0].decode("utf-8", "surrogateescape")


def _member(archive: Archive, file: BinaryIO, info: zipfile.ZipInfo, name: str) -> Document:
    """Read a member, or say why not."""
    size = _credible_bytes(archive, info)
    drop = archive.drops(name) or (Filtered.SIZE if size > archive.options.max_document_bytes else None)
    if drop:
        archive.grow(size)
        return archive.filtered(name, drop, size)
    if info.flag_bits & _ENCRYPTED:
        return archive.dead(name, Dead.ENCRYPTED, "encrypted", num_bytes=size)
    if info.compress_type not in _METHODS:
        return archive.dead(name, Dead.UNSUPPORTED, f"compression method {info.compress_type}", num_bytes=size)
    data = _open(file, info)
    if data is None:
        return archive.dead(name, Dead.CORRUPT, "no local header where the directory says", num_bytes=0)
    return _read(archive, data, info, name)


def _credible_bytes(archive: Archive, info: zipfile.ZipInfo) -> int:
    """Return the size that a header claims, or less where so much cannot come out of its data."""
    ratio = _MAX_RATIO.get(info.compress_type, _MAX_OTHER_RATIO)
    return min(info.file_size, ratio * min(info.compress_size, archive.num_bytes) + _SLACK_BYTES)


def _open(file: BinaryIO, info: zipfile.ZipInfo) -> zipfile.ZipExtFile | None:
    """Return a member's decoded data, None if there is no local header where the directory says.

    `ZipFile.open` would also refuse members that overlap or whose two names differ: a directory that is wrong about
    one member must not cost another. Size and CRC are left to `_read`, which counts what came before they failed.
    """
    if info.header_offset == _NOWHERE:
        return None
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or not header.startswith(_LOCAL):
        return None
    _, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
    file.seek(name_bytes + extra_bytes, io.SEEK_CUR)
    unchecked = zipfile.ZipInfo(info.filename)
    unchecked.compress_type, unchecked.compress_size = info.compress_type, info.compress_size
    unchecked.file_size = info.file_size + 1
    return zipfile.ZipExtFile(cast("zipfile._ClosableZipStream", file), "r", unchecked)


def _read(archive: Archive, data: zipfile.ZipExtFile, info: zipfile.ZipInfo, name: str) -> Document:
    """Return a member whose size and CRC-32 are right, or the entry of one that is damaged or too large."""
    max_bytes, parts = archive.options.max_document_bytes, list[bytes]()
    num_bytes = crc = 0
    problem = None
    try:
        while piece := data.read1(PIECE_BYTES):
            archive.grow(len(piece))
            crc = zlib.crc32(piece, crc)
            num_bytes += len(piece)
            if num_bytes <= max_bytes:
                parts.append(piece)
            else:
                parts.clear()
    except EOFError:
        problem = Dead.TRUNCATED, "the data end early"
    except _MEMBER_ERRORS as error:
        excess = describe_excess(error)
        problem = (Dead.UNSUPPORTED, excess) if excess else (Dead.CORRUPT, f"damaged data ({type(error).__name__})")
    if not problem and num_bytes != info.file_size:
        problem = Dead.CORRUPT, f"{num_bytes} bytes and not {info.file_size} as its header claims"
    if not problem and crc != info.CRC:
        problem = Dead.CORRUPT, "CRC-32 differs"
    if problem:
        return archive.dead(name, *problem, num_bytes=num_bytes)
    if num_bytes > max_bytes:
        return archive.filtered(name, Filtered.SIZE, num_bytes)
    return archive.document(name, b"".join(parts))
