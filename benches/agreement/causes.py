"""Why the lexer and libclang put bytes in different classes: causes with a name, and an example of each.

A cause is found from the text of a difference alone; what no rule names is counted as unexplained, by its two classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

EXAMPLE_BYTES = 60
"""How much of a difference an example shows, and a third of it on either side."""


class ByteClass(StrEnum):
    """What a byte belongs to."""

    REST = "rest"
    COMMENT = "comment"
    STRING = "string"
    IDENTIFIER = "identifier"
    HEADER = "header name"


class Place(NamedTuple):
    """Bytes that have one class for the lexer and another for libclang.

    Attributes:
        source: The document.
        start: Where the bytes begin.
        end: Where they end.
        ours: Their class for the lexer.
        theirs: Their class for libclang.
    """

    source: bytes
    start: int
    end: int
    ours: ByteClass
    theirs: ByteClass

    @property
    def text(self) -> bytes:
        """The bytes."""
        return self.source[self.start : self.end]

    def example(self, name: str) -> str:
        """Return the place for people: the document's name, the offset, the bytes in brackets, and the classes."""
        before = self.source[max(0, self.start - EXAMPLE_BYTES // 3) : self.start]
        after = self.source[self.end : self.end + EXAMPLE_BYTES // 3]
        text = self.text[:EXAMPLE_BYTES] + (b"..." if self.end - self.start > EXAMPLE_BYTES else b"")
        shown = "".join(map(_readable, (before, b"[", text, b"]", after)))
        return f"{name}:{self.start}: {shown} ({self.ours} / {self.theirs} for libclang)"


@dataclass(kw_only=True)
class Difference:
    """What differs for one cause: bytes, places, and the first place as an example."""

    num_bytes: int = 0
    places: int = 0
    example: str = ""

    def add(self, other: Difference) -> None:
        """Add the same cause in other places."""
        self.num_bytes += other.num_bytes
        self.places += other.places
        self.example = self.example or other.example


_SPLICES = re.compile(rb"(?:\\[ \t\v\f]*(?:\r\n|\n|\r))+")
_UNIVERSAL_NAME = re.compile(rb"\\u[0-9A-Fa-f{\\]|\\U[0-9A-Fa-f\\]|\\N\{")
_RAW = re.compile(rb'(?:u8|[uUL])?R"')
_OPENING = re.compile(rb"""(?:u8|[uUL])?R?["']""")


def _is_splice(place: Place) -> bool:
    return place.ours == ByteClass.REST and _SPLICES.fullmatch(place.text) is not None


def _is_open_comment(place: Place) -> bool:
    to_the_end = place.end == len(place.source)
    return (place.ours, place.theirs) == (ByteClass.COMMENT, ByteClass.REST) and to_the_end


def _is_open_literal(place: Place) -> bool:
    if (place.ours, place.theirs) != (ByteClass.STRING, ByteClass.REST) or not _OPENING.match(place.text):
        return False
    return place.end == len(place.source) or place.source[place.end] in b"\r\n" or place.text in (b"''", b"u8''")


def _is_bad_raw_string(place: Place) -> bool:
    return (place.ours, place.theirs) == (ByteClass.STRING, ByteClass.REST) and _RAW.match(place.text) is not None


def _is_header(place: Place) -> bool:
    return ByteClass.HEADER in (place.ours, place.theirs)


def _is_foreign_character(place: Place) -> bool:
    return place.ours == ByteClass.IDENTIFIER and all(byte >= 0x80 for byte in place.text)


def _is_universal_name(place: Place) -> bool:
    line_start = place.source.rfind(b"\n", 0, place.start) + 1
    return _UNIVERSAL_NAME.search(place.source[line_start : place.end + 3]) is not None


CAUSES: dict[str, Callable[[Place], bool]] = {
    "line splice right before a token: libclang's token begins with it, ours does not": _is_splice,
    "block comment without an end: ours runs to the end of the file, libclang has no token": _is_open_comment,
    "literal without an end: ours is a literal up to the line's end, libclang's an unknown token": _is_open_literal,
    "raw string whose delimiter is not valid: ours is a string, libclang's an unknown token": _is_bad_raw_string,
    "header name after a comment, or in a condition of several lines: the check's expression is too simple": _is_header,
    "byte from 0x80 on that is no letter: ours belongs to an identifier, libclang's is an unknown token": (
        _is_foreign_character
    ),
    "universal character name: part of libclang's identifier, for us a backslash and what follows": _is_universal_name,
}
"""Causes by what explains them; the first that holds counts."""


def find_cause(place: Place) -> str:
    """Name the cause of a difference."""
    for cause, holds in CAUSES.items():
        if holds(place):
            return cause
    return f"unexplained: {place.ours} here, {place.theirs} for libclang"


def _readable(text: bytes) -> str:
    return text.decode("latin-1").encode("unicode_escape").decode("ascii")
