"""Runs of n words as 64-bit numbers, of a text of any length, by numpy.

A word is a run of letters, digits, `_` and bytes beyond ASCII, in lower case. Everything else only separates words. So
layout, punctuation and comment marks have no effect: `for (int i = 0;` and `FOR( int i=0 ;` are the same four words.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

PIECE_BYTES = 1 << 20
"""So much of a text is looked at at once. A piece ends with a line, or after twice as much."""

_WORDS = bytes(
    byte if chr(byte).isalnum() and byte < 128 or byte == ord("_") or byte >= 128 else 0 for byte in range(256)
).lower()
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)


class Ngrams(NamedTuple):
    """The n-grams of a piece of a text, in order.

    Attributes:
        hashes: One of each.
        starts: Where the words of the piece begin in the text: n-gram `k` begins with word `k`.
        end: Where the piece ends in the text; a word that continues after it is cut.
    """

    hashes: Hashes
    starts: npt.NDArray[np.int64]
    end: int


def iter_ngrams(text: bytes, words: int) -> Iterator[Ngrams]:
    r"""Yield the n-grams of a text, piece by piece; none is missed between two that end with a line.

    The hash of words w is the hash of the bytes w1 0 w2 0 … wn 0 as a polynomial modulo 2^64 at an odd number, mixed as
    splitmix64 does: a difference of prefix sums, divided by a power, so that it costs the same whatever its length.

    Example:
        >>> [len(found.hashes) for found in iter_ngrams(b"int main() {\n  return 0;\n}\n", 3)]
        [2]
    """
    start, end = 0, 0
    while end < len(text):
        near = end + PIECE_BYTES
        end = text.find(b"\n", near, near + PIECE_BYTES) + 1 or min(near + PIECE_BYTES, len(text))
        begins, hashes = _piece(text[start:end], words)
        yield Ngrams(hashes, begins + start, end)
        shared = int(begins[1 - words]) + start if words > 1 and len(begins) >= words else end
        start = max(shared, end - PIECE_BYTES)


def hash_words(piece: bytes) -> Hashes:
    """Return the hash of each word of a piece, as the n-grams of one word have it."""
    return _piece(piece, 1)[1]


def _piece(text: bytes, words: int) -> tuple[npt.NDArray[np.int64], Hashes]:
    """Return where the words of a text begin, and its n-grams."""
    folded = np.frombuffer(text.translate(_WORDS) + b"\0", dtype=np.uint8)
    is_word = folded != 0
    kept = is_word.copy()
    kept[1:] |= is_word[:-1]
    packed = folded[kept]
    ends = np.flatnonzero(packed == 0) + 1
    places = np.flatnonzero(is_word & ~np.concatenate(([False], is_word[:-1])))
    bounds = np.concatenate((np.zeros(1, dtype=np.int64), ends))
    powers, inverses = _powers()
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum((packed + np.uint64(1)) * powers[: len(packed)])))[bounds]
    if len(ends) < words:
        return places, np.zeros(0, dtype=np.uint64)
    last = len(ends) - words + 1
    return places, _mix((sums[words:] - sums[:last]) * inverses[bounds[:last]])


def _mix(values: Hashes) -> Hashes:
    """Return numbers whose bits all depend on all bits, as the last step of splitmix64 does."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


@cache
def _powers() -> tuple[Hashes, Hashes]:
    """Return the powers of the base and of its inverse, as many as the longest piece takes."""
    return _series(_BASE), _series(_INVERSE)


def _series(base: int) -> Hashes:
    factors = np.full(3 * PIECE_BYTES + 1, base, dtype=np.uint64)
    factors[0] = 1
    series: Hashes = np.multiply.accumulate(factors)
    return series
