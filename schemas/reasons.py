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
    MISSING_COLUMN = "missing_column"
    BAD_RECORD = "bad_record"
    BAD_CONTENT = "bad_content"


REASONS: dict[Column, tuple[str, ...]] = {
    Column.FILTERED: tuple(Filtered),
    Column.DEAD: tuple(Dead),
}
"""The reasons that each column of the ledger splits into."""
