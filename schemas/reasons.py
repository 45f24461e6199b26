"""Why a document is not in the dataset: the closed list of reasons, in the order in which filters apply.

The first filter that matches counts. `EMPTY` and `DUPLICATE` have ledger columns of their own; the others are under
`filtered` or `dead`.
"""

from __future__ import annotations

from enum import StrEnum


class Column(StrEnum):
    """The ledger's columns besides `in`."""

    KEPT = "kept"
    EMPTY = "empty"
    DUPLICATE = "duplicate"
    FILTERED = "filtered"
    DEAD = "dead"


class Filtered(StrEnum):
    """Reasons of the filters, in their order of application."""

    EXTENSION = "extension"
    SAMPLE = "sample"
    LIMIT = "limit"
    SIZE = "size"
    WIDE_TEXT = "wide_text"
    BINARY = "binary"
    GENERATED = "generated"
    LONG_LINES = "long_lines"
    UNIQUE_LINES = "unique_lines"
    LICENSE = "license"
    MINIFIED = "minified"
    SECRET = "secret"
    CONTAMINATED = "contaminated"
    WITHDRAWN = "withdrawn"
    NEAR_DUPLICATE = "near_duplicate"


class Dead(StrEnum):
    """Reasons for input that could not be used although nothing filtered it."""

    UNREADABLE = "unreadable"
    VANISHED = "vanished"
    CHANGED = "changed"
    NOT_AN_ARCHIVE = "not_an_archive"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    ENCRYPTED = "encrypted"
    UNSUPPORTED = "unsupported"
    EXPANSION = "expansion"
    TIMEOUT = "timeout"
    MISSING_COLUMN = "missing_column"
    BAD_RECORD = "bad_record"
    BAD_CONTENT = "bad_content"


class Lost(StrEnum):
    """What a lossy tokenizer does to a document that is kept and does not come back, the first that applies."""

    NOT_UTF8 = "not_utf8"
    UNKNOWN = "unknown"
    SPACES = "spaces"
    CHARACTERS = "characters"


_UNKNOWN = b"\xe2\x81\x87"
"""U+2047, which SentencePiece decodes the unknown token to."""


def how_lost(document: bytes, decoded: bytes) -> Lost:
    r"""Return what a tokenizer did to a document that it decodes to something else.

    Returns:
        `NOT_UTF8` if the document is not, and what it decodes to is; `UNKNOWN` if it decodes to more unknown tokens
        than it has U+2047; `SPACES` if only whitespace differs; else `CHARACTERS`.

    Example:
        >>> how_lost(b"int  x;\n", b"int x;"), how_lost("\ufb01x".encode(), b"fix")
        (<Lost.SPACES: 'spaces'>, <Lost.CHARACTERS: 'characters'>)
    """
    if _is_utf8(decoded) and not _is_utf8(document):
        return Lost.NOT_UTF8
    if decoded.count(_UNKNOWN) > document.count(_UNKNOWN):
        return Lost.UNKNOWN
    unspaced, back = ("".join(text.decode("utf-8", "replace").split()) for text in (document, decoded))
    return Lost.SPACES if unspaced == back else Lost.CHARACTERS


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


REASONS: dict[Column, tuple[str, ...]] = {
    Column.FILTERED: tuple(Filtered),
    Column.DEAD: tuple(Dead),
}
"""The reasons that each column of the ledger splits into."""
