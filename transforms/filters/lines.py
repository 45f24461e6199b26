"""Filters on lines: one that is too long, or too many that are the same."""

from __future__ import annotations

import io

from pydantic import BaseModel

from schemas.plugins.entry_points import Filter, each_document

_MAX_COUNTED_LINES = 1_000_000


def find_long_line(content: bytes, longest: int) -> str | None:
    """Return how long the longest line is, None if it has at most `longest` bytes."""
    length = longest_line_bytes(content)
    return f"a line of {length} bytes" if length > longest else None


def find_repeated_lines(content: bytes, least: float) -> str | None:
    """Return the share of distinct lines, None if it is at least `least`."""
    ratio = unique_line_ratio(content)
    return f"{ratio:.3f} of the lines are distinct" if ratio < least else None


def longest_line_bytes(content: bytes) -> int:
    """Return the length of the longest line in bytes, without its line feed."""
    return max((len(line) - line.endswith(b"\n") for line in io.BytesIO(content)), default=0)


def unique_line_ratio(content: bytes) -> float:
    """Return the share of distinct lines among those that are not blank, the first million of them.

    Lines are compared without the white space around them. A document of blank lines alone has a ratio of 1.
    """
    seen: set[bytes] = set()
    count = 0
    for line in io.BytesIO(content):
        if stripped := line.strip():
            count += 1
            seen.add(stripped)
            if count == _MAX_COUNTED_LINES:
                break
    return len(seen) / count if count else 1.0


class LongLines(BaseModel):
    """The option of the filter `long_lines`."""

    longest: int


class UniqueLines(BaseModel):
    """The option of the filter `unique_lines`."""

    least: float


LONG_LINES = Filter(
    make=lambda options: each_document(lambda content: find_long_line(content, options.longest)), options=LongLines
)
"""The filter `long_lines`."""

UNIQUE_LINES = Filter(
    make=lambda options: each_document(lambda content: find_repeated_lines(content, options.least)), options=UniqueLines
)
"""The filter `unique_lines`."""
