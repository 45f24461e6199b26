"""The bytes of an archive or JSONL file as one stream: decompressed, ended by damage, limited in growth."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, BinaryIO

from schemas.reasons import Dead
from transforms.sources.decoders import PIECE_BYTES, decompressed
from transforms.sources.document import Archive, DamageError
from transforms.sources.files import read_piece

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


BLOCK_BYTES = 2 << 20
"""About so many bytes of lines are handed out at a time."""


class MemberStream(io.BufferedReader):
    """The bytes of an archive, decompressed; reading never raises for damage.

    Attributes:
        damage: Why the stream ended early, None while it is whole; what was read before may be altered too.
    """

    def __init__(self, archive: Archive, open_raw: Callable[[], BinaryIO], codec: str) -> None:
        """Open the file with `open_raw`; `codec` is gz, xz, zst, bz2 or empty."""
        self._source = _Pieces(_decoded(archive, open_raw, codec) if codec else _plain(archive, open_raw))
        super().__init__(self._source, PIECE_BYTES)

    @property
    def damage(self) -> DamageError | None:
        """Why the stream ended early."""
        return self._source.damage

    def skip(self, num_bytes: int) -> int:
        """Pass over bytes and return how many there were."""
        skipped = 0
        while skipped < num_bytes and (piece := self.read1(min(num_bytes - skipped, PIECE_BYTES))):
            skipped += len(piece)
        return skipped

    def read_line(self, max_bytes: int) -> tuple[bytes, int, bool]:
        """Return the next line with its line feed, its length, and whether it is whole.

        Args:
            max_bytes: Of a longer line nothing is held; its length is still counted.
        """
        line = piece = self.readline(max_bytes + 1)
        length = len(line)
        if length <= max_bytes:
            return line, length, True
        while piece and not piece.endswith(b"\n"):
            piece = self.readline(PIECE_BYTES)
            length += len(piece)
        return b"", length, False

    def line_blocks(self, max_bytes: int) -> Iterator[tuple[bytes, int]]:
        """Yield lines in blocks, with their line feeds, and the bytes of each block; the last may lack its line feed.

        Args:
            max_bytes: A longer line is a block by itself, of which nothing is held; its length is still counted.
        """
        lines, begun, held, length = list[bytes](), list[bytes](), 0, 0
        while piece := self.read1(PIECE_BYTES):
            end = piece.find(b"\n") + 1
            length += end or len(piece)
            if length > max_bytes:
                begun = []
                if not end:
                    continue
                yield from _block(lines)
                yield b"", length
                piece, lines, held = piece[end:], [], 0
                length = len(piece)
            end = piece.rfind(b"\n") + 1
            begun.append(piece[:end] if end else piece)
            if end:
                held += sum(map(len, begun))  # of pieces there may be thousands, one a gzip member
                lines += begun
                begun, length = [piece[end:]], len(piece) - end
                if held >= BLOCK_BYTES:
                    yield from _block(lines)
                    lines, held = [], 0
        yield from _block(lines)
        if length:
            yield b"".join(begun), length


def _block(lines: list[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield lines as one block, if there are any."""
    if lines:
        data = b"".join(lines)
        yield data, len(data)


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file that ends where damage does."""

    def __init__(self, pieces: Generator[bytes]) -> None:
        self.damage: DamageError | None = None
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not self._rest and not self.damage:
            try:
                self._rest = memoryview(next(self._pieces, b""))
            except DamageError as damage:
                self.damage = damage
        target = memoryview(buffer)
        num_bytes = min(len(target), len(self._rest))
        target[:num_bytes] = self._rest[:num_bytes]
        self._rest = self._rest[num_bytes:]
        return num_bytes

    def close(self) -> None:
        self._pieces.close()
        super().close()


def _plain(archive: Archive, open_raw: Callable[[], BinaryIO]) -> Generator[bytes]:
    """Yield a file as it is, all that it had when it was listed: a server may send less, or it may have been cut."""
    done = 0
    with open_raw() as raw:
        while piece := read_piece(raw, PIECE_BYTES):
            done += len(piece)
            yield piece
    if done < archive.num_bytes:
        raise DamageError(Dead.TRUNCATED, f"{done:,} of {archive.num_bytes:,} bytes were there when it was read")


def _decoded(archive: Archive, open_raw: Callable[[], BinaryIO], codec: str) -> Generator[bytes]:
    """Yield a compressed file decoded, as long as it is within the limit."""
    for piece in decompressed(open_raw, codec):
        archive.grow(len(piece))
        yield piece
