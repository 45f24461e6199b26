"""Cursors: a segment is cut at one place, and both sides are encoded separately, as a prompt and its completion are.

An editor asks for a completion anywhere, also within what would be one token. A model that has only seen whole texts
has seldom seen a token border there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from cppmill_core import AnyTokenizer

from schemas.export_options import SequenceOptions
from transforms.exports.sequences.fill_in_middle import batches_of_texts, character_start, list_array
from transforms.tokens.shards import TokenIds

NO_CURSOR = 0
"""The cursor of a segment that is not cut."""


def choose_cursor(options: SequenceOptions, name: str, copy: int, first_token: int) -> int | None:
    """Return a number of 64 bits that the length of a segment's text scales to its cursor, None if it is not cut.

    The hash of all arguments decides, independently of `choose_fim`.

    Args:
        options: `cursor_rate`, `seed`.
        name: The document.
        copy: Which copy of it, from 0.
        first_token: Where in the document the segment begins.
    """
    digest = hashlib.sha256(f"cursor/{options.seed}/{name}/{copy}/{first_token}".encode()).digest()
    taken, place = (int.from_bytes(digest[at : at + 8], "big") for at in (0, 8))
    return place if taken < options.cursor_rate * 2**64 else None


def place_cursor(text: bytes, choice: int) -> int:
    """Return where a text is cut, in bytes: between its first and last byte, moved back to where a character begins.

    `NO_CURSOR` if there is no such place before the end of the first character.
    """
    return character_start(text, 1 + (choice * (len(text) - 1) >> 64)) if len(text) > 1 else NO_CURSOR


def encode_sides(texts: Sequence[bytes], cursors: Sequence[int], tokenizer: AnyTokenizer, threads: int) -> list[Any]:
    """Return the ids of each text, encoded before and behind its cursor separately."""
    sides = [side for text, at in zip(texts, cursors, strict=True) for side in (text[:at], text[at:])]
    encoded = tokenizer.encode_batch(sides, threads)
    ids, ends = encoded.flatten().to_numpy(), encoded.offsets.to_numpy()
    return [ids[start:end] for start, end in zip(ends[:-2:2], ends[2::2], strict=True)]


def cut_at_cursors(
    texts: Sequence[TokenIds], choices: Sequence[int], tokenizer: AnyTokenizer, *, threads: int = 1
) -> Iterator[tuple[int, TokenIds]]:
    """Yield the cursor and the new ids of each text, in order; one without a cursor keeps its ids."""
    for batch in batches_of_texts(texts):
        decoded: list[Any] = tokenizer.decode_batch(list_array(texts[batch]), threads).to_pylist()
        cursors = [place_cursor(text, choice) for text, choice in zip(decoded, choices[batch], strict=True)]
        encoded = encode_sides(decoded, cursors, tokenizer, threads)
        for before, cursor, after in zip(texts[batch], cursors, encoded, strict=True):
            yield (cursor, np.asarray(after, before.dtype)) if cursor else (NO_CURSOR, before)
