"""Best-fit decreasing: segments into sequences of one capacity, with little left over.

The longest segment goes first, each into the fullest sequence that still has room for it ("Fewer Truncations Improve
Language Modeling", Ding and others, 2024). Segments of at most the capacity are never cut.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt


def pack_best_fit(lengths: npt.ArrayLike, capacity: int) -> list[list[int]]:
    """Return which segments share a sequence.

    Rooms are the bits of one number, so that the least that is large enough is found without a search. Of equal
    segments the first goes first, of equal rooms the sequence that was begun first is taken.

    Args:
        lengths: Tokens of each segment, from 1 to `capacity`.
        capacity: Tokens of a sequence.

    Returns:
        The numbers of the segments of each sequence, ascending; sequences by their first segment.

    Raises:
        ValueError: If a segment has no tokens, or more than fit; names the segment.

    Example:
        >>> pack_best_fit([5, 8, 2, 3, 6], capacity=8)
        [[0, 3], [1], [2, 4]]
    """
    sizes = np.asarray(lengths, np.int64)
    if sizes.size and not (sizes.min() > 0 and sizes.max() <= capacity):
        wrong = int(np.argmax((sizes < 1) | (sizes > capacity)))
        raise ValueError(f"segment {wrong} has {sizes[wrong]} tokens: not from 1 to {capacity}, what a sequence holds")
    sequences: list[list[int]] = []
    with_room: dict[int, list[int]] = {}
    rooms = 0  # bit n is set while a sequence has room for exactly n tokens
    for segment in np.argsort(-sizes, kind="stable").tolist():
        length = int(sizes[segment])
        fitting = rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            sequence = heappop(with_room[room])
            if not with_room[room]:
                rooms ^= 1 << room
        else:
            room, sequence = capacity, len(sequences)
            sequences.append([])
        sequences[sequence].append(segment)
        if left := room - length:
            heappush(with_room.setdefault(left, []), sequence)
            rooms |= 1 << left
    return sorted(map(sorted, sequences))
