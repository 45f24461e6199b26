"""Members of zip archives, damaged ones too: by the directory, or by local headers where it is missing or cut.

Stored, deflate, bzip2 and Zstandard. Sizes that a header claims are checked against what can be true before they are
believed, and content against its size and CRC-32. What a reader does not do: encrypted members, archives in several
files.
"""

from __future__ import annotations

import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from schemas.reasons import Dead, Filtered
from transforms.sources.decoders import DECODER_ERRORS, STREAM_DECODERS, Decoder, Inflate, Stored
from transforms.sources.document import Archive, DamageError, Document
from transforms.sources.zip_directory import (
    Directory,
    DirectoryError,
    Entry,
    NoDirectoryError,
    find_local,
    local_entry,
    locate,
)

_STORED, _DEFLATED, _BZIP2, _ZSTANDARD = 0, 8, 12, 93
_DECODERS: dict[int, Callable[[], Decoder]] = {
    _STORED: Stored,
    _DEFLATED: lambda: Inflate(wbits=-15),
    _BZIP2: STREAM_DECODERS["bz2"],
    _ZSTANDARD: STREAM_DECODERS["zst"],
}
_MAX_RATIO = {_STORED: 1, _DEFLATED: 1032}
_MAX_OTHER_RATIO = 100_000
_SLACK_BYTES = 1 << 10
_ENCRYPTED = 1 | 1 << 6 | 1 << 13
_INPUT_BYTES = 1 << 16
_OUTPUT_BYTES = 1 << 18
_DESCRIPTOR = b"PK\x07\x08"


def iter_zip(archive: Archive, file: BinaryIO) -> Iterator[Document]:
    """Yield the members of a zip archive: in the order of its directory, or of the file where that cannot be read.

    Raises:
        DamageError: At its end, for damage that cut no member.
    """
    try:
        directory = Directory(file, archive.num_bytes)
    except DirectoryError as error:
        reason = Dead.TRUNCATED if isinstance(error, NoDirectoryError) else Dead.CORRUPT
        yield from _iter_local(archive, file, DamageError(reason, str(error)))
        return
    for entry in directory.entries():
        document, _ = _read_entry(archive, file, entry)
        if document:
            yield document


def _iter_local(archive: Archive, file: BinaryIO, damage: DamageError) -> Iterator[Document]:
    """Yield members by their local headers, in the order of the file."""
    place, found, cut = 0, False, False
    while (start := find_local(file, place)) is not None:
        found, place = True, start + 4
        try:
            entry = local_entry(file, start)
        except EOFError:
            continue
        if entry:
            document, end = _read_entry(archive, file, entry)
            if not document or document.reason not in (Dead.CORRUPT, Dead.TRUNCATED):  # else the end is no sure thing
                place = max(place, end)
            if document:
                yield document
                cut = document.reason == Dead.TRUNCATED
    if not found:
        raise DamageError(Dead.NOT_AN_ARCHIVE, damage.detail)
    if not cut:
        raise damage


def _read_entry(archive: Archive, file: BinaryIO, entry: Entry) -> tuple[Document | None, int]:
    """Return what a header stands for, None for a folder or link, and where its data end as far as is known."""
    end = entry.data + entry.compressed
    if entry.name.endswith(b"/"):
        return None, end
    if entry.mode and stat.S_IFMT(entry.mode) not in (0, stat.S_IFREG):
        archive.leave_alone()
        return None, end
    name, size = _name(entry), _credible_bytes(archive, entry)
    drop = archive.drops(name) or (Filtered.SIZE if size > archive.options.max_document_bytes else None)
    if drop and not _is_open_ended(entry):
        archive.grow(size)
        return archive.filtered(name, drop, size), end
    if entry.flags & _ENCRYPTED:
        return archive.dead(name, Dead.ENCRYPTED, "encrypted", num_bytes=size), end
    if entry.method not in _DECODERS or (_is_open_ended(entry) and entry.method == _STORED):
        return archive.dead(name, Dead.UNSUPPORTED, f"compression method {entry.method}", num_bytes=size), end
    return _read_content(archive, file, entry, drop)


def _read_content(archive: Archive, file: BinaryIO, entry: Entry, drop: Filtered | None) -> tuple[Document, int]:
    """Read a member; one of unknown size is read even if it is dropped, to find its end."""
    name = _name(entry)
    located = entry if entry.data else locate(file, entry)
    if located is None:
        return archive.dead(name, Dead.CORRUPT, "no local header where the directory says", num_bytes=0), 0
    outcome = _decode(archive, file, located)
    if outcome.problem:
        return archive.dead(name, *outcome.problem, num_bytes=outcome.num_bytes), outcome.end
    if not drop and outcome.num_bytes > archive.options.max_document_bytes:
        drop = Filtered.SIZE
    if drop:
        return archive.filtered(name, drop, outcome.num_bytes), outcome.end
    return archive.document(name, outcome.content), outcome.end


@dataclass
class _Outcome:
    """What came of decoding a member: its content or a problem, the bytes that came out, and where its data end."""

    content: bytes = b""
    num_bytes: int = 0
    end: int = 0
    problem: tuple[Dead, str] | None = None


def _decode(archive: Archive, file: BinaryIO, entry: Entry) -> _Outcome:
    """Decode a member's data and check them."""
    outcome, decoder, parts = _Outcome(), _DECODERS[entry.method](), list[bytes]()
    pieces = _pieces(file, entry, decoder, outcome)
    crc = 0
    try:
        for piece in pieces:
            archive.grow(len(piece))
            crc = zlib.crc32(piece, crc)
            outcome.num_bytes += len(piece)
            if outcome.num_bytes <= archive.options.max_document_bytes:
                parts.append(piece)
            else:
                parts.clear()
    except DECODER_ERRORS as error:
        outcome.problem = Dead.CORRUPT, f"damaged data ({type(error).__name__})"
    outcome.content = b"".join(parts)
    outcome.problem = outcome.problem or _check(file, entry, outcome, crc)
    return outcome


def _pieces(file: BinaryIO, entry: Entry, decoder: Decoder, outcome: _Outcome) -> Iterator[bytes]:
    """Yield decoded pieces up to the end of the data; sets the outcome's `end`, and its problem if they are cut."""
    open_ended = _is_open_ended(entry)
    outcome.end = entry.data + (0 if open_ended else entry.compressed)
    place, left, num_bytes = entry.data, entry.compressed, 0
    file.seek(place)
    while not decoder.eof and not (entry.method == _STORED and left == 0):
        data = b""
        if decoder.needs_input:
            data = file.read(_INPUT_BYTES if open_ended else min(_INPUT_BYTES, left))
            if not data:
                reason = Dead.CORRUPT if left == 0 and not open_ended else Dead.TRUNCATED
                outcome.problem = reason, "the data end early"
                return
            place, left = place + len(data), left - len(data)
        piece = decoder.decompress(data, _OUTPUT_BYTES)
        num_bytes += len(piece)
        yield piece
        if not open_ended and num_bytes > entry.num_bytes:
            outcome.problem = Dead.CORRUPT, f"more than the {entry.num_bytes} bytes that its header claims"
            return
    if open_ended:
        outcome.end = place - len(decoder.unused_data)


def _check(file: BinaryIO, entry: Entry, outcome: _Outcome, crc: int) -> tuple[Dead, str] | None:
    """Compare what came out with what the header, or the descriptor behind the data, says."""
    if not _is_open_ended(entry):
        if outcome.num_bytes != entry.num_bytes:
            return Dead.CORRUPT, f"{outcome.num_bytes} bytes and not {entry.num_bytes} as its header claims"
        return None if crc == entry.crc else (Dead.CORRUPT, "CRC-32 differs")
    file.seek(outcome.end)
    descriptor = file.read(8)
    stated = descriptor[4:8] if descriptor.startswith(_DESCRIPTOR) else descriptor[:4]
    if len(stated) < 4 or int.from_bytes(stated, "little") == crc:
        return None
    return Dead.CORRUPT, "CRC-32 differs"


def _is_open_ended(entry: Entry) -> bool:
    """Tell whether nothing known says how long the data are: a local header whose sizes follow the data."""
    return bool(entry.data) and entry.has_descriptor and entry.compressed == 0


def _credible_bytes(archive: Archive, entry: Entry) -> int:
    """Return the size that a header claims, or less where so much cannot come out of its data."""
    ratio = _MAX_RATIO.get(entry.method, _MAX_OTHER_RATIO)
    return min(entry.num_bytes, ratio * min(entry.compressed, archive.num_bytes) + _SLACK_BYTES)


def _name(entry: Entry) -> str:
    """Return a member's name; bytes that are not UTF-8 become surrogate escapes, whatever the flag says."""
    return entry.name.split(b"\0")[0].decode("utf-8", "surrogateescape")
