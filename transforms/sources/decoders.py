"""Decompressors behind one interface: fed in pieces, giving out bounded pieces."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable
from typing import Protocol

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

_MAX_XZ_MEMORY_BYTES = 1 << 28


class Decoder(Protocol):
    """One compressed stream, as the decompressors of the standard library present it."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""

    @property
    def unused_data(self) -> bytes:
        """What was fed beyond its end."""

    @property
    def needs_input(self) -> bool:
        """Whether more must be fed before more comes out."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Feed `data` and return at most `max_length` decoded bytes."""


class Inflate:
    """zlib's decompressor with the interface that the others share.

    Args:
        wbits: 31 for gzip (RFC 1952), -15 for raw deflate (RFC 1951).
    """

    def __init__(self, *, wbits: int) -> None:
        """Begin a stream."""
        self._inner = zlib.decompressobj(wbits=wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        """What was fed beyond its end."""
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Feed `data` and return at most `max_length` decoded bytes."""
        tail = self._inner.unconsumed_tail
        out = self._inner.decompress(tail + data if tail else data, max_length)
        self.needs_input = not self._inner.unconsumed_tail and len(out) < max_length
        return out


class Stored:
    """Data that are not compressed; whoever feeds it knows where they end."""

    eof = False
    unused_data = b""
    needs_input = True

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return `data`."""
        return data


STREAM_DECODERS: dict[str, Callable[[], Decoder]] = {
    "gz": lambda: Inflate(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=_MAX_XZ_MEMORY_BYTES),
    "zst": ZstdDecompressor,
}
"""How compressed files are decoded, by codec."""

DECODER_ERRORS = (zlib.error, lzma.LZMAError, ZstdError, OSError, EOFError, ValueError)
"""What decoders raise for damaged data."""
