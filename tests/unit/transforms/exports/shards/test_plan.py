"""The files of a plan cut the stream of each split without gap, and each names the token shards that it lies in."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from transforms.exports.shards.plan import plan_files
from transforms.exports.shards.splits import SPLITS

COUNT = st.tuples(st.integers(0, 4), st.integers(0, 30)).map(
    lambda drawn: {"documents": drawn[0], "tokens": drawn[0] * 3 + drawn[1] if drawn[0] else 0}
)
COUNTS = st.lists(st.fixed_dictionaries(dict.fromkeys(SPLITS, COUNT)))


@given(COUNTS, st.integers(-2, 1), st.integers(1, 20))
def test_files_tile_each_split(counts: list[dict[str, Any]], more: int, shard_tokens: int) -> None:
    plans = list(plan_files(counts, more=more, shard_tokens=shard_tokens))
    for split in SPLITS:
        files = [plan for plan in plans if plan.split == split]
        total = sum(count[split]["tokens"] + more * count[split]["documents"] for count in counts)
        assert [plan.index for plan in files] == list(range(len(files)))
        assert [plan.begin for plan in files[:1]] == ([0] if total else [])
        assert all(left.end == right.begin and left.end - left.begin == shard_tokens for left, right in pairwise(files))
        assert sum(plan.end - plan.begin for plan in files) == total


@given(COUNTS, st.integers(-2, 1), st.integers(1, 20))
def test_a_file_names_the_token_shards_that_it_lies_in(counts: list, more: int, shard_tokens: int) -> None:
    for plan in plan_files(counts, more=more, shard_tokens=shard_tokens):
        sizes = [count[plan.split]["tokens"] + more * count[plan.split]["documents"] for count in counts]
        places = list(accumulate(sizes, initial=0))
        lies_in = [
            (number, place)
            for number, (place, size) in enumerate(zip(places, sizes, strict=False))
            if size and place < plan.end and place + size > plan.begin
        ]
        assert list(plan.parts) == lies_in
