"""Byte streams of input files: opened without following links, decompressed in small steps, ended by damage.

gzip (RFC 1952), xz (liblzma), bzip2 and Zstandard (RFC 8878), each also as several streams one after the other.
What comes before damage is delivered, up to the byte or two that a decoder looks ahead: when it fails, the stream is
decoded again up to that place and then byte by byte, because a decoder that raises keeps what it had decoded in that
call to itself.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import BinaryIO, cast

import fsspec

from schemas.places import is_remote
from schemas.reasons import Dead
from transforms.sources.decoders import DECODER_ERRORS, STREAM_DECODERS, Decoder
from transforms.sources.document import Archive, DamageError

_INPUT_BYTES = 1 << 16
_CAREFUL_INPUT_BYTES = 1 << 10
_OUTPUT_BYTES = 1 << 18
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class NotRegularError(OSError):
    """What was a regular file when it was listed is none now."""


def open_input(root: str, path: str) -> BinaryIO:
    """Open an input for reading: a local one without following a link or waiting on a pipe, any other through fsspec.

    Raises:
        OSError: If it cannot be opened, NotRegularError if it is no regular file any more.
    """
    if is_remote(root):
        system, base = fsspec.core.url_to_fs(root)
        return cast(BinaryIO, system.open(f"{base}/{path}", "rb"))
    descriptor = open_descriptor(root, path)
    return os.fdopen(descriptor, "rb", buffering=_INPUT_BYTES)


def open_descriptor(root: str, path: str) -> int:
    """Open a local input and return its descriptor."""
    descriptor = os.open(f"{root}/{path}", _OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(errno.ENOENT, "no regular file any more")
    return descriptor


def os_error_reason(error: OSError) -> tuple[Dead, str]:
    """Return the reason of the ledger for an error of the file system, and its name."""
    gone = isinstance(error, FileNotFoundError | NotADirectoryError | NotRegularError) or error.errno == errno.ELOOP
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return (Dead.VANISHED if gone else Dead.UNREADABLE), name


class MemberStream:
    """The bytes of an archive, decompressed; reading never raises for damage.

    `damage` says why the stream ended early, None while it is whole. What was read before is right.
    """

    def __init__(self, archive: Archive, open_raw: Callable[[], BinaryIO], codec: str) -> None:
        """Open the file with `open_raw`; `codec` is gz, xz, zst, bz2 or empty."""
        self.damage: DamageError | None = None
        self._source: _Plain | _Decompressed = _Decompressed(open_raw, codec) if codec else _Plain(open_raw)
        self._archive = archive
        self._codec = codec
        self._buffer = b""
        self._start = 0

    def read(self, num_bytes: int) -> bytes:
        """Return the next `num_bytes`, less only at the end or at damage."""
        parts: list[bytes] = []
        while num_bytes > 0 and (piece := self._take(num_bytes)):
            parts.append(piece)
            num_bytes -= len(piece)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def skip(self, num_bytes: int) -> int:
        """Pass over bytes and return how many there were."""
        skipped = 0
        while skipped < num_bytes and (piece := self._take(num_bytes - skipped)):
            skipped += len(piece)
        return skipped

    def read_line(self, max_bytes: int) -> tuple[bytes, int, bool]:
        """Return the next line with its line feed, its length, and whether it is whole.

        Args:
            max_bytes: Of a longer line nothing is held; its length is still counted.
        """
        parts: list[bytes] = []
        length = 0
        while not self._fill():
            end = self._buffer.find(b"\n", self._start) + 1
            piece = self._take((end or len(self._buffer)) - self._start)
            length += len(piece)
            if length <= max_bytes:
                parts.append(piece)
            else:
                parts.clear()
            if end:
                break
        return b"".join(parts), length, length <= max_bytes

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def _take(self, num_bytes: int) -> bytes:
        if self._fill():
            return b""
        piece = self._buffer[self._start : self._start + num_bytes]
        self._start += len(piece)
        return piece

    def _fill(self) -> bool:
        """Make sure that there is something in the buffer; True at the end."""
        if self._start < len(self._buffer):
            return False
        if self.damage:
            return True
        try:
            self._buffer, self._start = self._source.next_piece(), 0
            if self._codec:
                self._archive.grow(len(self._buffer))
        except DamageError as damage:
            self._buffer, self._start, self.damage = b"", 0, damage
        return not self._buffer


class _Plain:
    """A file as it is."""

    def __init__(self, open_raw: Callable[[], BinaryIO]) -> None:
        self._raw = open_raw()

    def next_piece(self, num_bytes: int = _OUTPUT_BYTES) -> bytes:
        try:
            return self._raw.read(num_bytes)
        except OSError as error:
            raise DamageError(*os_error_reason(error)) from error

    def close(self) -> None:
        self._raw.close()


class _Decompressed:
    """A compressed file, decoded."""

    def __init__(self, open_raw: Callable[[], BinaryIO], codec: str) -> None:
        self._open_raw, self._codec = open_raw, codec
        self._produced = 0
        self._careful = False
        self._restart()

    def next_piece(self) -> bytes:
        """Return decoded bytes, none at the end."""
        while True:
            try:
                piece = self._step(1 if self._careful else _OUTPUT_BYTES)
            except DECODER_ERRORS as error:
                if self._careful:
                    raise self._damage(error) from error
                self._return_carefully()
                continue
            if piece is None:
                return b""
            if piece:
                self._produced += len(piece)
                return piece

    def close(self) -> None:
        self._raw.close()

    def _restart(self) -> None:
        self._raw = _Plain(self._open_raw)
        self._decoder: Decoder | None = None
        self._pending = b""
        self._streams = 0

    def _step(self, max_bytes: int) -> bytes | None:
        """Decode one piece; None at the end of the file."""
        if self._decoder is None and not self._begin():
            return None
        decoder = cast(Decoder, self._decoder)
        data = b""
        if decoder.needs_input:
            data, self._pending = self._pending or self._more(), b""
            if not data:
                raise DamageError(Dead.TRUNCATED, f"the {self._codec} stream ends early")
        piece = decoder.decompress(data, max_bytes)
        if decoder.eof:
            self._pending, self._decoder = decoder.unused_data.lstrip(b"\0"), None
        return piece

    def _more(self) -> bytes:
        return self._raw.next_piece(_CAREFUL_INPUT_BYTES if self._careful else _INPUT_BYTES)

    def _begin(self) -> bool:
        """Begin the first stream, or one that follows; zero bytes after a stream are padding."""
        while not self._pending:
            self._pending = self._more()
            if not self._pending:
                return self._nothing_follows()
            if self._streams:
                self._pending = self._pending.lstrip(b"\0")
        self._decoder = STREAM_DECODERS[self._codec]()
        self._streams += 1
        return True

    def _nothing_follows(self) -> bool:
        if not self._streams:
            raise DamageError(Dead.NOT_AN_ARCHIVE, "empty file")
        return False

    def _return_carefully(self) -> None:
        """Decode again up to where an error came, to go on from there byte by byte."""
        self._raw.close()
        self._restart()
        self._careful = True
        again = 0
        try:
            while again < self._produced and (piece := self._step(self._produced - again)) is not None:
                again += len(piece)
        except DECODER_ERRORS as error:
            raise self._damage(error) from error

    def _damage(self, error: Exception) -> DamageError:
        reason = Dead.CORRUPT if self._produced else Dead.NOT_AN_ARCHIVE
        return DamageError(reason, f"the {self._codec} stream is damaged ({type(error).__name__})")
