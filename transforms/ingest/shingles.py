"""Shingles of C++ text: every run of a number of code tokens, as 64-bit hashes that are the same everywhere.

A lexer cuts the tokens. Comments and white space are not tokens, so another licence header or another indentation
changes nothing. Whole batches of documents are hashed by array operations: the sum of table[byte] * P^i over the bytes
of a token, modulo 2^64, is a difference of two prefix sums (Karp and Rabin, 1987), which is mixed as in MurmurHash3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

_FIRST_CODE_KIND = 4
"""A kind of `cppmill_core.lex`: white space, newline and the two kinds of comments come before it."""

_PIECE_BYTES = 1 << 16
"""What stays in a processor's cache while it is hashed."""

_MAX_TOKEN_BYTES = 1 << 16
"""A longer token, a string mostly, is hashed by its beginning."""

_MULTIPLIER = 0x9E3779B97F4A7C15
_STEP = np.uint64(0xD6E8FEB86659FD93)


class Shingles(NamedTuple):
    """The shingles of several documents.

    Attributes:
        hashes: One after the other; a repeated shingle is there twice.
        offsets: Where each document begins, and the end.
    """

    hashes: Hashes
    offsets: Hashes


def mix(values: Hashes) -> Hashes:
    """Return 64-bit numbers with all bits mixed: the finalizer of MurmurHash3, a bijection."""
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(values ^ (values >> np.uint64(33)))


def _powers(base: int) -> Hashes:
    """Return base^0, base^1, … modulo 2^64, for every place in a piece."""
    powers = np.full(_PIECE_BYTES + _MAX_TOKEN_BYTES, base & (1 << 64) - 1, dtype=np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


_BYTES = mix(np.arange(1, 257, dtype=np.uint64) * np.uint64(_MULTIPLIER))
_POWERS = _powers(_MULTIPLIER)
_INVERSES = _powers(pow(_MULTIPLIER, -1, 1 << 64))


def shingle(contents: Sequence[bytes], tokens: int) -> Shingles:
    """Return the hashes of every run of `tokens` code tokens in each document.

    A document with fewer tokens has one shingle of all, one without any has none.

    Example:
        >>> shingle([b"int a; // one", b"int  a;", b"// nothing"], 5).offsets.tolist()
        [0, 1, 2, 2]
    """
    found = [_code_tokens(content, tokens) for content in contents]
    lengths = np.array([len(starts) for starts, _ in found], dtype=np.int64)
    shifts = np.repeat(np.cumsum([0, *map(len, contents)])[: len(contents)], lengths)
    starts, ends = (np.concatenate([shifts[:0], *(places[side] for places in found)]) + shifts for side in (0, 1))
    hashed = _token_hashes(b"".join(contents), starts, ends)
    counts = np.where(lengths > 0, lengths - tokens + 1, 0)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    return Shingles(_runs(hashed, np.cumsum(lengths)[lengths > 0], tokens), offsets)


def _code_tokens(content: bytes, tokens: int) -> tuple[Places, Places]:
    """Return where the code tokens of a document begin and end, followed by empty ones if there are too few."""
    lexed = cppmill_core.lex(content)
    kinds = cast("pa.DictionaryArray[Any, Any]", lexed.column("kind"))
    code = kinds.indices.to_numpy() >= _FIRST_CODE_KIND
    starts, ends = (lexed.column(name).to_numpy()[code].astype(np.int64) for name in ("start", "end"))
    if 0 < len(starts) < tokens:
        padding = np.full(tokens - len(starts), starts[-1])
        return np.concatenate([starts, padding]), np.concatenate([ends, padding])
    return starts, ends


def _token_hashes(text: bytes, starts: Places, ends: Places) -> Hashes:
    """Return the hash of each token, in order of their starts, piece by piece of the text; of an empty one 0."""
    data = np.frombuffer(text, dtype=np.uint8)
    ends = np.minimum(ends, starts + _MAX_TOKEN_BYTES)
    hashes = np.empty(len(starts), dtype=np.uint64)
    for base in range(0, len(data), _PIECE_BYTES):
        inside = slice(*np.searchsorted(starts, [base, base + _PIECE_BYTES]))
        first, last = starts[inside] - base, ends[inside] - base
        codes = _BYTES[data[base : base + last.max(initial=0)]]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(codes * _POWERS[: len(codes)])])
        hashes[inside] = (sums[last] - sums[first]) * _INVERSES[first]
    return mix(hashes)


def _runs(hashed: Hashes, ends: Places, tokens: int) -> Hashes:
    """Return the hash of each run of tokens that lies within a document; `ends` are the ends of the documents."""
    count = max(0, len(hashed) - tokens + 1)
    runs = np.zeros(count, dtype=np.uint64)
    for place in range(tokens):
        runs = runs * _STEP + hashed[place : place + count]
    within = np.ones(count, dtype=bool)
    crossing = (ends[:, None] - np.arange(1, tokens)).ravel()
    within[crossing[crossing < count]] = False
    return mix(runs[within])
