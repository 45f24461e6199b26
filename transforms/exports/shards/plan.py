"""The plan of training shards: the stretch of a split's stream in each file, and the token shards that hold it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from transforms.exports.shards.splits import SPLITS, Split


@dataclass(frozen=True, kw_only=True)
class FilePlan:
    """One file to be written.

    Attributes:
        split: The split.
        index: Which file of the split, from 0.
        begin: The place in the stream of its first token.
        end: The place after its last.
        parts: Positions of the token shards that it is in, each with the place where that begins in the stream.
    """

    split: Split
    index: int
    begin: int
    end: int
    parts: tuple[tuple[int, int], ...]


def plan_files(counts: Sequence[dict[str, Any]], *, more: int, shard_tokens: int) -> Iterator[FilePlan]:
    """Yield the files of all splits: each of exactly `shard_tokens` tokens, the last one of a split of what is left.

    Args:
        counts: {split: {documents, tokens}} of each token shard, in order.
        more: How many tokens more each document has in the stream than in the dataset.
        shard_tokens: Tokens of a file.

    Example:
        >>> counts = [{"train": {"documents": 1, "tokens": 5}, "val": {"documents": 0, "tokens": 0}}] * 2
        >>> [(plan.begin, plan.end, plan.parts) for plan in plan_files(counts, more=0, shard_tokens=6)]
        [(0, 6, ((0, 0), (1, 5))), (6, 10, ((1, 5),))]
    """
    for split in SPLITS:
        sizes = [count[split]["tokens"] + more * count[split]["documents"] for count in counts]
        places = list(accumulate(sizes, initial=0))
        first = 0
        for index, begin in enumerate(range(0, places[-1], shard_tokens)):
            end = min(begin + shard_tokens, places[-1])
            while places[first + 1] <= begin:
                first += 1
            parts = []
            shard = first
            while shard < len(sizes) and places[shard] < end:
                if sizes[shard]:
                    parts.append((shard, places[shard]))
                shard += 1
            yield FilePlan(split=split, index=index, begin=begin, end=end, parts=tuple(parts))
