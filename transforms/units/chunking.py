"""Where units and shards end: content-defined chunking of a list of paths, so that a change redoes a unit or two.

A unit ends after a file when the hash of its path, as a fraction, is below file_bytes / target_bytes; a file above the
target also has a boundary before it. A stretch that is still above a hard bound is cut after the file that came nearest
to ending a unit, and this is repeated. No cut depends on where counting began, so nothing after a change moves. The
idea is content-defined chunking (Muthitacharoen, Chen, Mazières: A Low-bandwidth Network File System, SOSP 2001), with
whole files instead of bytes.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterable
from itertools import pairwise

from schemas.digests import path_fraction

MAX_FILES = 20_000
"""Most files in a unit, so that its plan stays small; a path of 200 characters and more counts for several."""

_BOUND = 4
_PATH_CHARACTERS = 200
_UNREAD = 1e300


def cut(files: Iterable[tuple[str, int]], target_bytes: int, *, max_files: int = MAX_FILES) -> list[int]:
    """Return where the units of a list of files end: the index behind each unit's last file.

    Args:
        files: Relative path (surrogate escapes allowed) and bytes of each file, in order; 0 bytes for one that is not
            read, which then ends no unit.
        target_bytes: Mean size of a unit; no unit of more than one file is above four times it.
        max_files: Hard bound of a unit's files.

    Example:
        >>> cut([("a", 10), ("b", 99), ("c", 10)], 50)
        [1, 2, 3]
    """
    scores, sizes, costs = array("d"), array("q", [0]), array("q", [0])
    ends = set[int]()
    for index, (path, weight) in enumerate(files):
        scores.append(_score(path, weight, target_bytes))
        sizes.append(sizes[-1] + weight)
        costs.append(costs[-1] + 1 + len(path) // _PATH_CHARACTERS)
        if scores[-1] < 1:
            ends.add(index + 1)
        if weight > target_bytes:
            ends.add(index)
    bounds = _Bounds(sizes, costs, _BOUND * target_bytes, max_files)
    stretches = pairwise(sorted(ends | {0, len(scores)}))
    return [end for first, last in stretches for end in _cut_stretch(first, last, scores, bounds)]


def _score(path: str, weight: int, target_bytes: int) -> float:
    """Return how near a file comes to ending a unit: below 1 it does, and the lowest is cut at first."""
    fraction = path_fraction(path)
    return fraction * target_bytes / weight if weight else _UNREAD * (1 + fraction)


class _Bounds:
    """Tells whether a range of files is too large to be one unit."""

    def __init__(self, sizes: array[int], costs: array[int], max_bytes: int, max_files: int) -> None:
        self._sizes, self._costs, self._max_bytes, self._max_files = sizes, costs, max_bytes, max_files

    def broken(self, first: int, last: int) -> bool:
        too_many = self._costs[last] - self._costs[first] > self._max_files
        return last - first > 1 and (too_many or self._sizes[last] - self._sizes[first] > self._max_bytes)


def _cut_stretch(first: int, last: int, scores: array[float], bounds: _Bounds) -> list[int]:
    """Return the ends of a stretch's parts, each within the bounds: it is cut where scores are lowest first."""
    borders = [first, last]
    if bounds.broken(first, last):
        for index in sorted(range(first, last - 1), key=scores.__getitem__):
            place = bisect.bisect_right(borders, index)
            if bounds.broken(borders[place - 1], borders[place]):
                borders.insert(place, index + 1)
    return borders[1:]
