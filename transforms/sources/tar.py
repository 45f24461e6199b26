"""Members of tar archives, read as a stream, damaged ones too.

Headers are POSIX.1-2001 (ustar and pax) and GNU tar's; `tarfile.TarInfo.frombuf` decodes one block. The standard
library's reader stops in silence at a header that is cut or damaged in the middle, and holds extended headers of any
size in memory: this one goes on at the next good header, counts the damage, and bounds what it holds. Links, folders
and devices are no documents.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from schemas.reasons import Dead, Filtered
from transforms.sources.document import Archive, DamageError, Document
from transforms.sources.streams import MemberStream

_BLOCK = tarfile.BLOCKSIZE
_MAX_EXTENDED_BYTES = 1 << 20
_MAGIC = b"ustar"
_PAX_TYPES = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_NO_DATA_TYPES = (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
_FILE_TYPES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)


@dataclass
class _Extended:
    """What extended headers say of the member that follows."""

    name: str = ""
    num_bytes: int | None = None
    sparse: bool = False


class _BadHeaderError(Exception):
    """A block that should be a header and is none."""


def iter_tar(archive: Archive, stream: MemberStream) -> Iterator[Document]:
    """Yield the members of a tar archive in order.

    Raises:
        DamageError: At its end, for damage that cut no member.
    """
    yield from _TarReader(archive, stream).documents()


class _TarReader:
    """One pass over a tar archive."""

    def __init__(self, archive: Archive, stream: MemberStream) -> None:
        self._archive, self._stream = archive, stream
        self._zero_blocks = 0  # in a row, up to here: two end an archive, and another may follow
        self._headers = 0
        self._cut = False  # the damage at the end has its entry already

    def documents(self) -> Iterator[Document]:
        """Yield the members, then raise for damage at the end."""
        extended = _Extended()
        block = self._stream.read(_BLOCK)
        while len(block) == _BLOCK:
            try:
                if not any(block):
                    self._zero_blocks += 1
                else:
                    info = self._header(block)
                    yield from self._lone_zero_block()
                    if not self._extends(info, extended):
                        yield from self._member(info, extended, block)
                        extended = _Extended()
            except (_BadHeaderError, tarfile.HeaderError):
                lost, block = self._resynchronise()
                yield from self._lost(lost, more=bool(block))
                extended = _Extended()
                continue
            block = self._stream.read(_BLOCK)
        self._finish(block)

    def _header(self, block: bytes) -> tarfile.TarInfo:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if info.size < 0:
            raise _BadHeaderError
        self._headers += 1
        return info

    def _lone_zero_block(self) -> Iterator[Document]:
        """Yield an entry where one block was wiped in the middle: a header may have stood there."""
        if self._zero_blocks == 1:
            yield self._archive.entry(Dead.CORRUPT, "a lone block of zeros")
        self._zero_blocks = 0

    def _extends(self, info: tarfile.TarInfo, extended: _Extended) -> bool:
        """Take up a header that only says something of the next one."""
        if info.type in _PAX_TYPES:
            _read_pax(self._extension(info), extended)
        elif info.type == tarfile.GNUTYPE_LONGNAME:
            name = self._extension(info).split(b"\0")[0]
            extended.name = name.decode("utf-8", "surrogateescape")
        elif info.type in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
            self._stream.skip(_padded(info.size))
        else:
            return False
        return True

    def _extension(self, info: tarfile.TarInfo) -> bytes:
        if info.size > _MAX_EXTENDED_BYTES:
            raise _BadHeaderError
        return self._stream.read(_padded(info.size))[: info.size]

    def _member(self, info: tarfile.TarInfo, extended: _Extended, block: bytes) -> Iterator[Document]:
        """Yield the member of a header if it is a file, and pass over its data."""
        name = extended.name or info.name
        num_bytes = info.size if extended.num_bytes is None else extended.num_bytes
        if info.type == tarfile.GNUTYPE_SPARSE or extended.sparse:
            self._skip_sparse_headers(info, block)
            yield self._file(name, num_bytes, sparse=True)
        elif info.type in _FILE_TYPES and not name.endswith("/"):
            yield self._file(name, num_bytes)
        elif info.type not in _NO_DATA_TYPES:
            self._stream.skip(_padded(num_bytes))
        if info.type not in (*_FILE_TYPES, tarfile.GNUTYPE_SPARSE, tarfile.DIRTYPE):
            self._archive.leave_alone()

    def _skip_sparse_headers(self, info: tarfile.TarInfo, block: bytes) -> None:
        """Pass over the further headers of GNU tar's old form of a file with holes."""
        more = info.type == tarfile.GNUTYPE_SPARSE and bool(block[482])
        while more:
            block = self._stream.read(_BLOCK)
            more = len(block) == _BLOCK and bool(block[504])

    def _file(self, name: str, num_bytes: int, *, sparse: bool = False) -> Document:
        """Read a regular file, or pass over it when a filter drops it."""
        archive, stream = self._archive, self._stream
        drop = archive.drops(name) or (Filtered.SIZE if num_bytes > archive.options.max_document_bytes else None)
        content = b"" if drop or sparse else stream.read(num_bytes)
        read = stream.skip(num_bytes) if drop or sparse else len(content)
        if read < num_bytes:
            return self._cut_member(name, read, num_bytes)
        stream.skip(_padded(num_bytes) - num_bytes)
        if drop:
            return archive.filtered(name, drop, num_bytes)
        if sparse:
            return archive.dead(name, Dead.UNSUPPORTED, "a file with holes", num_bytes=num_bytes)
        return archive.document(name, content)

    def _cut_member(self, name: str, read: int, num_bytes: int) -> Document:
        self._cut = True
        damage = self._stream.damage or DamageError(Dead.TRUNCATED, f"{read} of {num_bytes} bytes")
        return self._archive.dead(name, damage.reason, damage.detail, num_bytes=read)

    def _resynchronise(self) -> tuple[int, bytes]:
        """Pass over blocks up to the next good header; return the bytes passed over and the header."""
        lost = 0
        while len(block := self._stream.read(_BLOCK)) == _BLOCK:
            if block.startswith(_MAGIC, 257) and _is_header(block):
                return lost, block
            lost += _BLOCK
        return lost + len(block), b""

    def _lost(self, lost: int, *, more: bool) -> Iterator[Document]:
        """Yield the entry of a damaged header and what could not be read behind it."""
        if not self._headers and not more:
            damage = self._stream.damage or DamageError(Dead.NOT_AN_ARCHIVE, "no tar header")
            raise damage
        self._cut = not more
        if self._zero_blocks:  # the block that is no header was data behind a wiped one, or follows the end
            lost = lost + _BLOCK if more else 0
        yield self._archive.entry(Dead.CORRUPT, "damaged tar header", num_bytes=lost)
        self._zero_blocks = 0

    def _finish(self, rest: bytes) -> None:
        """Raise for an archive that ends in the wrong place, unless a member has taken the blame."""
        if self._cut:
            return
        if self._stream.damage:
            raise self._stream.damage
        if any(rest) or not self._zero_blocks:
            reason = Dead.TRUNCATED if self._headers else Dead.NOT_AN_ARCHIVE
            raise DamageError(reason, "ends without an end-of-archive block")


def _padded(num_bytes: int) -> int:
    """Return a size rounded up to whole blocks."""
    return -(-num_bytes // _BLOCK) * _BLOCK


def _is_header(block: bytes) -> bool:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape").size >= 0
    except tarfile.HeaderError:
        return False


def _read_pax(data: bytes, extended: _Extended) -> None:
    r"""Take name, size and sparseness from pax records `<length> <key>=<value>\n`."""
    start = 0
    while start < len(data) and data[start]:
        space = data.find(b" ", start, start + 10)
        length_text = data[start:space] if space > start else b""
        end = start + int(length_text) if length_text.isdigit() else 0
        if not space < end <= len(data):
            raise _BadHeaderError
        key, _, value = data[space + 1 : end - 1].partition(b"=")
        _take_record(key, value, extended)
        start = end


def _take_record(key: bytes, value: bytes, extended: _Extended) -> None:
    if key == b"path":
        extended.name = value.split(b"\0")[0].decode("utf-8", "surrogateescape")
    elif key == b"size":
        if not value.isdigit() or len(value) > 18:
            raise _BadHeaderError
        extended.num_bytes = int(value)
    elif key.startswith(b"GNU.sparse."):
        extended.sparse = True
