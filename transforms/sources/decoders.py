"""Decompression of gzip (RFC 1952), xz (liblzma), bzip2 and Zstandard (RFC 8878), as one stream or several in a row.

The decompressors of the standard library do the decoding. Its file objects are not used: those for xz and bzip2 ignore
whatever follows the last stream, and all of them lose what a failing call had decoded.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

from schemas.reasons import Dead
from transforms.sources.document import DamageError
from transforms.sources.files import read_piece

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

PIECE_BYTES = 1 << 18
"""The most that is decoded at a time."""

_INPUT_BYTES = 1 << 16
_CAREFUL_INPUT_BYTES = 1 << 10
_MAX_XZ_MEMORY_BYTES = 1 << 28
_MAX_ZSTD_WINDOW_BYTES = 1 << 27  # what its decompressor allows if nothing else is asked for

DECODER_ERRORS = (zlib.error, lzma.LZMAError, ZstdError, OSError, EOFError, ValueError)
"""What decoders raise for damaged data, and for whole data that need too much memory."""

_TOO_LARGE = (
    (lzma.LZMAError, "Memory usage limit exceeded", _MAX_XZ_MEMORY_BYTES),
    (ZstdError, "requires too much memory", _MAX_ZSTD_WINDOW_BYTES),
)
"""What decoders raise for these, and the memory that there is."""


class _Decoder(Protocol):
    """One compressed stream, as the decompressors of the standard library present it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gunzip:
    """zlib's decompressor with the interface that the others share."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        tail = self._inner.unconsumed_tail
        out = self._inner.decompress(tail + data if tail else data, max_length)
        self.needs_input = not self._inner.unconsumed_tail and len(out) < max_length
        return out


_DECODERS: dict[str, Callable[[], _Decoder]] = {
    "gz": _Gunzip,
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=_MAX_XZ_MEMORY_BYTES),
    "zst": ZstdDecompressor,
}


def decompressed(open_raw: Callable[[], BinaryIO], codec: str) -> Iterator[bytes]:
    """Yield the decoded bytes of a file, in bounded pieces.

    A decoder that fails keeps what it had decoded in that call to itself. The file is then decoded again up to that
    place, and from there byte by byte, so that all but the byte or two that a decoder looks ahead is delivered.

    Args:
        open_raw: Opens the compressed file; called a second time for a damaged one.
        codec: gz, xz, zst or bz2.

    Raises:
        DamageError: Where the data are cut or damaged or need too much memory, or the file cannot be read.
    """
    done = place = 0
    with open_raw() as raw:
        try:
            for piece in _decode(raw, codec):
                done += len(piece)
                yield piece
            return
        except DECODER_ERRORS as error:
            failure: Exception = error
    with open_raw() as raw:
        try:
            for piece in _decode(raw, codec, careful_from=done):
                place += len(piece)
                if place > done:
                    yield piece
        except DECODER_ERRORS as error:
            failure = error
    if excess := describe_excess(failure):
        raise DamageError(Dead.UNSUPPORTED, f"the {codec} stream {excess}") from failure
    reason = Dead.CORRUPT if place else Dead.NOT_AN_ARCHIVE
    raise DamageError(reason, f"the {codec} stream is damaged ({type(failure).__name__})") from failure


def describe_excess(error: Exception) -> str:
    """Return how much memory data need that a decoder refused for it, empty if it refused them for damage."""
    for kind, words, max_bytes in _TOO_LARGE:
        if isinstance(error, kind) and words in str(error):
            return f"needs more than {max_bytes >> 20} MiB of memory to decompress"
    return ""


def _decode(raw: BinaryIO, codec: str, *, careful_from: int | None = None) -> Iterator[bytes]:
    """Yield decoded pieces, of one byte from the place `careful_from` on; zero bytes after a stream are padding."""
    input_bytes = _INPUT_BYTES if careful_from is None else _CAREFUL_INPUT_BYTES
    place, data = 0, read_piece(raw, input_bytes)
    if not data:
        raise DamageError(Dead.NOT_AN_ARCHIVE, "empty file")
    while data:
        decoder = _DECODERS[codec]()
        while not decoder.eof:
            if decoder.needs_input and not data and not (data := read_piece(raw, input_bytes)):
                raise DamageError(Dead.TRUNCATED, f"the {codec} stream ends early")
            feed, data = (data, b"") if decoder.needs_input else (b"", data)
            max_bytes = PIECE_BYTES if careful_from is None else max(1, min(PIECE_BYTES, careful_from - place))
            if piece := decoder.decompress(feed, max_bytes):
                place += len(piece)
                yield piece
        data = decoder.unused_data.lstrip(b"\0")
        while not data and (more := read_piece(raw, input_bytes)):
            data = more.lstrip(b"\0")
