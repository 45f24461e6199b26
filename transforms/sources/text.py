"""Documents in text files, which a separator divides: its own text is in none of them.

A line feed right behind the separator belongs to it, so that it may have a line of its own. What follows the last
separator is a document if there is anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.reasons import Dead, Filtered
from transforms.sources.decoders import PIECE_BYTES
from transforms.sources.document import Archive, DamageError, Document
from transforms.sources.streams import MemberStream
from transforms.sources.wide_text import MARKS


def iter_text(archive: Archive, stream: MemberStream) -> Iterator[Document]:
    """Yield the documents of a text file in order, named by their numbers.

    Of a document that is too large nothing is held; it is `filtered[size]`.

    Raises:
        DamageError: At its end, for damage that cut no document; at its beginning, for wide text that should be cut.
    """
    separator = (archive.options.document_separator or "").encode()
    for number, (content, num_bytes, is_last) in enumerate(_pieces(stream, separator, archive), start=1):
        archive.count_row()
        if number == 1 and archive.options.convert_wide_text and (content or b"").startswith(MARKS):
            raise DamageError(Dead.UNSUPPORTED, "UTF-16 or UTF-32, which is not searched for the separator; use UTF-8")
        member = f"document-{number}"
        drop = archive.drops(member, has_extension=False)
        if is_last and stream.damage:
            if not num_bytes:
                raise stream.damage
            yield archive.dead(member, stream.damage.reason, stream.damage.detail, num_bytes=num_bytes)
        elif drop:
            yield archive.filtered(member, drop, num_bytes)
        elif content is None:
            yield archive.filtered(member, Filtered.SIZE, num_bytes)
        elif num_bytes or not is_last or number == 1:
            yield archive.document(member, content)


def _pieces(stream: MemberStream, separator: bytes, archive: Archive) -> Iterator[tuple[bytes | None, int, bool]]:
    """Yield what is between separators, None if it is too large, with its bytes and whether it is the last."""
    max_bytes, held, dropped, is_first = archive.options.max_document_bytes, b"", 0, True
    while piece := stream.read1(PIECE_BYTES):
        *whole, held = (held + piece).split(separator)
        for content in whole:
            yield (*_bare(content, dropped, max_bytes, is_first=is_first), False)
            dropped, is_first = 0, False
        if dropped + len(held) > max_bytes + len(separator):
            kept = held[len(held) - len(separator) + 1 :]
            dropped, held = dropped + len(held) - len(kept), kept
    yield (*_bare(held, dropped, max_bytes, is_first=is_first), True)


def _bare(content: bytes, dropped: int, max_bytes: int, *, is_first: bool) -> tuple[bytes | None, int]:
    """Return a document, None if it is too large, and its bytes, without what belongs to the separator before it."""
    ends = [] if is_first or dropped else [end for end in (b"\r\n", b"\n") if content.startswith(end)]
    content = content.removeprefix(ends[0]) if ends else content
    num_bytes = dropped + len(content)
    return (None if num_bytes > max_bytes else content), num_bytes
