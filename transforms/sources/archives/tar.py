"""Members of tar archives, by `tarfile`: ustar, pax and GNU tar's headers, read as a stream, damaged ones too.

`tarfile` goes on at the next good header and does not say what it skipped. That is counted here, and what one
header may hold is bounded. Links, folders and devices are no documents; a file with holes is not read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO, cast

from schemas.reasons import Dead, Filtered
from transforms.sources.document import Archive, DamageError, Document, link_target
from transforms.sources.streams import MemberStream

if sys.version_info >= (3, 14):
    import tarfile
else:
    from backports.zstd import tarfile

_ERRORS: Any = tarfile
"""The errors that `TarFile.next` distinguishes; the stubs leave them out."""

_BLOCK = tarfile.BLOCKSIZE
_MAX_HEADER_BYTES = 1 << 20
_GNU_FOLDER, _GNU_REST = b"D", b"M"
"""GNU tar's types for a folder with a list of its files, and for the rest of a file that another volume begins."""

_GNU_MAGIC, _MAGIC, _PREFIX = b"ustar  \0", slice(257, 265), slice(345, 500)
_HEADER_ERRORS = (tarfile.HeaderError, ValueError, LookupError, OverflowError, RecursionError)


def iter_tar(archive: Archive, stream: MemberStream) -> Iterator[Document]:
    """Yield the members of a tar archive in order.

    Raises:
        DamageError: At its end, for damage that cut no member.
    """
    blocks = _Blocks(stream)
    for header in _headers(blocks):
        archive.count_row()
        yield from _damage_before(archive, blocks, header)
        if _is_file(header):
            header.name = header.name.rstrip("/")
            yield _member(archive, blocks, header)
            if blocks.tell() < header.end:
                return
        elif not header.isdir() and header.type != _GNU_FOLDER:
            archive.leave_alone(header.name, partial(_target, header))
    yield from _damage_at_end(archive, blocks)


def _is_file(header: _Header) -> bool:
    """Return whether a member is a document: a regular file, or of a type that POSIX does not know and with data.

    A name that ends in a slash is a folder's, unless there is data.
    """
    is_unknown = header.type not in (*tarfile.SUPPORTED_TYPES, _GNU_FOLDER)
    is_regular = header.isreg() or (is_unknown and header.size > 0)
    return is_regular and (header.size > 0 or not header.name.endswith("/"))


def _target(header: _Header) -> str | None:
    """Return the name of the member that a link leads to; a hard link names it as it is."""
    if header.islnk():
        return header.linkname
    return link_target(header.name, header.linkname) if header.issym() else None


class _Blocks:
    """A stream as `tarfile` reads headers from it: forward only, with a limit on one header, and notes on damage.

    Attributes:
        stream: The stream.
        headers: Headers that were read, extended ones too.
        block: The last block of a header.
        zero_blocks: Blocks of zeros since the last one: two end an archive, and another may follow.
        damage: Where the first block after a damaged header is, None if none is damaged since the last good one.
        rest: What was left to read when a read reached the end, None before.
    """

    def __init__(self, stream: MemberStream) -> None:
        self.stream = stream
        self.headers = 0
        self.block = b""
        self.zero_blocks = 0
        self.damage: int | None = None
        self.rest: bytes | None = None
        self._place = 0
        self._header_bytes = 0

    def begin_header(self) -> None:
        self._header_bytes = 0

    def tell(self) -> int:
        return self._place

    def seek(self, place: int) -> None:
        self._place += self.stream.skip(place - self._place)
        self.begin_header()

    def read(self, num_bytes: int) -> bytes:
        """Read a part of a header.

        Raises:
            InvalidHeaderError: If it is larger than a header may be.
        """
        self._header_bytes += num_bytes
        if self._header_bytes > _MAX_HEADER_BYTES:
            raise _ERRORS.InvalidHeaderError(f"a header of more than {_MAX_HEADER_BYTES} bytes")
        data = self.block = self.read_content(num_bytes)
        if len(data) < num_bytes:
            self.rest = data
        return data

    def read_content(self, num_bytes: int) -> bytes:
        data = self.stream.read(num_bytes)
        self._place += len(data)
        return data


class _Header(tarfile.TarInfo):
    """The header of a member.

    Attributes:
        stored_bytes: The bytes that are stored for it; fewer than its size if it has holes.
        end: Where these end.
    """

    stored_bytes = 0
    end = 0

    def _proc_member(self, archive: tarfile.TarFile) -> _Header:
        """Note a header; `tarfile` names this method as the one to override.

        GNU tar has times where ustar has a prefix of the name, which `tarfile` does not distinguish.
        """
        if self.size < 0:
            raise _ERRORS.InvalidHeaderError("negative size")
        self.stored_bytes = self.size
        blocks = cast(_Blocks, archive.fileobj)
        blocks.headers += 1
        if blocks.block[_MAGIC] == _GNU_MAGIC and self.type not in tarfile.GNU_TYPES:
            times = blocks.block[_PREFIX].partition(b"\0")[0].decode("utf-8", "surrogateescape")
            self.name = self.name.removeprefix(f"{times}/")
        return cast(_Header, super()._proc_member(archive))  # type: ignore[misc]


class _Search(_Header):
    """How `TarFile.next` gets a header with its extensions: damage is noted before it is passed over."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Header:  # type: ignore[override]
        blocks = cast(_Blocks, archive.fileobj)
        blocks.begin_header()
        try:
            header = _Header.fromtarfile(archive)
        except _ERRORS.EOFHeaderError:
            blocks.zero_blocks += blocks.damage is None
            raise
        except _HEADER_ERRORS as error:
            if blocks.rest is not None:
                raise _ERRORS.TruncatedHeaderError from error
            if blocks.damage is None:
                blocks.damage = blocks.tell()
            raise _ERRORS.InvalidHeaderError from error
        if not header.issparse():
            header.stored_bytes = header.size
        header.end = archive.offset - -header.stored_bytes % _BLOCK
        return header


def _headers(blocks: _Blocks) -> Iterator[_Header]:
    """Yield the members' headers, up to the end or a cut; `tarfile` must not collect them or global headers."""
    source = cast(BinaryIO, blocks)
    try:
        with tarfile.TarFile(
            fileobj=source, tarinfo=_Search, ignore_zeros=True, encoding="utf-8", stream=True
        ) as archive:
            while header := archive.next():
                yield cast(_Header, header)
                archive.pax_headers = {}
    except tarfile.TarError:
        return


def _damage_before(archive: Archive, blocks: _Blocks, header: _Header) -> Iterator[Document]:
    """Yield the entry of what was passed over before a header: a damaged one, or a lone block of zeros in its place."""
    if blocks.damage is not None:
        lost = header.offset - blocks.damage + (_BLOCK if blocks.zero_blocks else 0)
        yield archive.entry(Dead.CORRUPT, "damaged tar header", num_bytes=lost)
    elif blocks.zero_blocks == 1:
        yield archive.entry(Dead.CORRUPT, "a lone block of zeros")
    blocks.damage, blocks.zero_blocks = None, 0


def _damage_at_end(archive: Archive, blocks: _Blocks) -> Iterator[Document]:
    """Yield the entry of a damaged header that no good one follows; raise for an archive that ends too early."""
    if blocks.damage is not None and blocks.headers:
        lost = 0 if blocks.zero_blocks else blocks.tell() - blocks.damage
        yield archive.entry(Dead.CORRUPT, "damaged tar header", num_bytes=lost)
    elif blocks.stream.damage:
        raise blocks.stream.damage
    elif blocks.damage is not None:
        raise DamageError(Dead.NOT_AN_ARCHIVE, "no tar header")
    elif any(blocks.rest or b"") or not blocks.zero_blocks:
        reason = Dead.TRUNCATED if blocks.headers else Dead.NOT_AN_ARCHIVE
        raise DamageError(reason, "ends without an end-of-archive block")


def _member(archive: Archive, blocks: _Blocks, header: _Header) -> Document:
    """Read a regular file, or pass over it when a filter drops it."""
    name, num_bytes, content = header.name, header.stored_bytes, b""
    drop = archive.drops(name) or (Filtered.SIZE if num_bytes > archive.options.max_document_bytes else None)
    if drop or header.issparse():
        blocks.seek(header.end)
    else:
        content = blocks.read_content(num_bytes)
    if (missing := header.end - blocks.tell()) > 0:
        read = max(0, num_bytes - missing)
        damage = blocks.stream.damage or DamageError(Dead.TRUNCATED, f"{read} of {num_bytes} bytes")
        return archive.dead(name, damage.reason, damage.detail, num_bytes=read)
    if drop:
        return archive.filtered(name, drop, num_bytes)
    if header.issparse() or header.type == _GNU_REST:
        detail = "a file with holes" if header.issparse() else "the rest of a file that begins in another volume"
        return archive.dead(name, Dead.UNSUPPORTED, detail, num_bytes=num_bytes)
    return archive.document(name, content)
