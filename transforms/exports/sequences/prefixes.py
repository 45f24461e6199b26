"""Prefixes: the line that names a document's platforms, in front of its text in each of its segments.

The line is after BOS where the segment begins with it, as in a prompt; so a trainer that separates documents by BOS
gives it to the right one. It takes positions of the sequence: a split document has shorter pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.export_options import SequenceOptions
from transforms.tokens.shards import TokenIds

NO_IDS: TokenIds = np.zeros(0, np.uint16)
"""The prefix of a document whose platforms are not known."""


class Span(NamedTuple):
    """A range of positions in a segment; empty if both are the same."""

    start: int
    end: int


NONE = Span(0, 0)
"""Where the prefix of a segment is that has none."""


def usable_prefix(prefix: TokenIds, options: SequenceOptions) -> TokenIds:
    """Return the prefix of a document's segments: none if it takes more than half of a sequence.

    Args:
        prefix: The document's `prefix_token_ids`.
        options: `length`.
    """
    return prefix if 2 * len(prefix) <= options.length else prefix[:0]


def insert_prefix(ids: TokenIds, prefix: TokenIds, *, bos: int) -> tuple[TokenIds, Span]:
    """Return the ids of a segment with a prefix after BOS, and where in them the prefix is.

    Args:
        ids: The segment.
        prefix: What is inserted.
        bos: How many ids of BOS the segment begins with: 1 or 0.
    """
    if not len(prefix):
        return ids, Span(bos, bos)
    joined = np.concatenate([ids[:bos], prefix.astype(ids.dtype), ids[bos:]])
    return joined, Span(bos, bos + len(prefix))


def clear_spans(mask: npt.NDArray[np.bool_], starts: Iterable[Any], ends: Iterable[Any]) -> None:
    """Set a mask of sequences to false on ranges of positions; `starts` and `ends` have a list for each row."""
    for row, places in enumerate(zip(starts, ends, strict=True)):
        for start, end in zip(*places, strict=True):
            mask[row, start:end] = False


def remove_prefix(ids: TokenIds, place: Span) -> TokenIds:
    """Return the ids of a segment without the prefix that it has at a place."""
    return np.delete(ids, slice(*place)) if place.start < place.end else ids
