"""The order of an epoch: it depends on the row groups, the seed and the epoch only.

Each epoch permutes the row groups of all files and concatenates them. Their rows are cut into `streams` parts of equal
length. A segment is the part of a row group that is in one stream; its rows are shuffled. Position p of the epoch is
row p // streams of stream p % streams, so one row group per stream is mixed, and in memory, at any time. A rank reads
every `ranks`-th position; if the number of streams is a multiple of the ranks, it reads some of the streams only.

Cutting the order into a fixed number of parts, which are then dealt to any number of readers, is the "elastic
determinism" of MosaicML's StreamingDataset. Permutations sort the outputs of SplitMix64 (Steele, Lea and Flood, 2014),
because numpy's permutations may change between versions.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

__all__ = ["EpochOrder", "Segment", "permutation"]


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Consecutive rows of one row group in one stream.

    Attributes:
        group: Number of the row group, in the order of the files.
        start: The first row, within the row group.
        rows: The number of rows.
        at: The position of the first row in the stream.
    """

    group: int
    start: int
    rows: int
    at: int


@dataclass(frozen=True)
class EpochOrder:
    """The position of each row of a dataset in an epoch.

    Attributes:
        group_rows: Rows of each row group, in the order of the files.
        seed: Any number.
        epoch: Number of the epoch, from 0.
        streams: The number of parts that the rows are cut into; at most the number of row groups.
        shuffled: False for the order of the files, with one stream and no permutation.
    """

    group_rows: Sequence[int]
    seed: int
    epoch: int
    streams: int
    shuffled: bool = True

    @property
    def rows(self) -> int:
        """The number of rows of an epoch."""
        return sum(self.group_rows)

    def stream_rows(self, stream: int) -> int:
        """Return the number of rows of a stream; two streams differ by one row at most."""
        return (self.rows - stream + self.streams - 1) // self.streams

    def find(self, position: int) -> tuple[int, int]:
        """Return the stream of a position of the epoch, and the number of its segment in that stream."""
        at, stream = divmod(position, self.streams)
        return stream, bisect_right(self._starts[stream], at) - 1

    @cached_property
    def segments(self) -> list[list[Segment]]:
        """The segments of each stream, in the order of the epoch."""
        count = len(self.group_rows)
        groups = self._permutation(count, "groups").tolist() if self.shuffled else list(range(count))
        return _cut(groups, self.group_rows, [self.stream_rows(stream) for stream in range(self.streams)])

    @cached_property
    def _starts(self) -> list[list[int]]:
        return [[segment.at for segment in stream] for stream in self.segments]

    def rows_of(self, stream: int, number: int) -> npt.NDArray[np.int64]:
        """Return the rows of a segment, numbered within their row group, in the order of the epoch."""
        segment = self.segments[stream][number]
        rows = np.arange(segment.start, segment.start + segment.rows, dtype=np.int64)
        return rows[self._permutation(segment.rows, f"rows {stream} {number}")] if self.shuffled else rows

    def rows_between(self, start: int, end: int) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield, for each segment, its row group, and the rows and positions of those that are in a range of positions.

        Args:
            start: The first position.
            end: The position behind the last one.
        """
        for stream, segments in enumerate(self.segments):
            for number, segment in enumerate(segments):
                positions = (segment.at + np.arange(segment.rows, dtype=np.int64)) * self.streams + stream
                inside = (start <= positions) & (positions < end)
                if inside.any():
                    yield segment.group, self.rows_of(stream, number)[inside], positions[inside]

    def _permutation(self, size: int, what: str) -> npt.NDArray[np.int64]:
        return permutation(size, f"{self.seed} {self.epoch} {what}")


def permutation(size: int, key: str) -> npt.NDArray[np.int64]:
    """Return the numbers below `size` in an order that depends on `key` only.

    Example:
        >>> permutation(5, "a").tolist()
        [1, 2, 4, 3, 0]
    """
    start = np.frombuffer(hashlib.sha256(key.encode()).digest()[:8], "<u8")[0]
    with np.errstate(over="ignore"):
        mixed = start + np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return np.argsort(mixed, kind="stable").astype(np.int64)


def _cut(groups: Sequence[int], group_rows: Sequence[int], lengths: Sequence[int]) -> list[list[Segment]]:
    """Cut concatenated row groups into streams of the given lengths."""
    ends = list(accumulate(lengths))
    streams: list[list[Segment]] = [[] for _ in lengths]
    stream = reached = 0
    for group in groups:
        start = 0
        while start < group_rows[group]:
            while reached == ends[stream]:
                stream += 1
            rows = min(group_rows[group] - start, ends[stream] - reached)
            at = reached - (ends[stream] - lengths[stream])
            streams[stream].append(Segment(group=group, start=start, rows=rows, at=at))
            start += rows
            reached += rows
    return streams
