from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from cppmill_core.order.shuffling import EpochOrder, permutation
from hypothesis import given
from hypothesis import strategies as st

GROUPS = st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any)


def rows_in_order(order: EpochOrder) -> list[tuple[int, int]]:
    """Every row, as its row group and its number in it, by position."""
    found = []
    for position in range(order.rows):
        stream, number = order.find(position)
        segment = order.segments[stream][number]
        at = position // order.streams - segment.at
        found.append((segment.group, int(order.rows_of(stream, number)[at])))
    return found


@given(GROUPS, st.integers(), st.integers(0, 3), st.data())
def test_every_row_has_one_position(group_rows: list[int], seed: int, epoch: int, data: st.DataObject) -> None:
    streams = data.draw(st.integers(1, len(group_rows)))
    order = EpochOrder(group_rows, seed, epoch, streams)
    assert sorted(rows_in_order(order)) == [(g, row) for g, rows in enumerate(group_rows) for row in range(rows)]


@given(GROUPS, st.data())
def test_streams_are_cut_without_gaps_and_split_few_row_groups(group_rows: list[int], data: st.DataObject) -> None:
    order = EpochOrder(group_rows, 1, 0, data.draw(st.integers(1, len(group_rows))))
    lengths = [order.stream_rows(stream) for stream in range(order.streams)]
    assert sum(lengths) == sum(group_rows)
    assert max(lengths) - min(lengths) <= 1
    for stream, length in zip(order.segments, lengths, strict=True):
        ends = [segment.at + segment.rows for segment in stream]
        assert [0, *ends][: len(stream)] == [segment.at for segment in stream]
        assert not stream or ends[-1] == length
    assert sum(map(len, order.segments)) <= len(group_rows) + order.streams - 1


def test_another_seed_and_another_epoch_give_another_order() -> None:
    orders = [rows_in_order(EpochOrder([50, 50, 50], *key, 2)) for key in [(1, 0), (1, 1), (2, 0), (1, 0)]]
    assert orders[0] == orders[3]
    assert len({tuple(order) for order in orders}) == 3


def test_without_shuffling_rows_are_in_the_order_of_the_files() -> None:
    order = EpochOrder([3, 0, 2], 7, 5, 1, shuffled=False)
    assert rows_in_order(order) == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)]


def test_the_order_of_a_seed_never_changes() -> None:
    assert rows_in_order(EpochOrder([3, 2, 2], 1, 0, 2)) == [(0, 2), (2, 1), (0, 0), (1, 0), (0, 1), (1, 1), (2, 0)]
    assert permutation(8, "a").tolist() == [7, 6, 1, 2, 4, 3, 0, 5]


@pytest.mark.parametrize("key", ["a", "b", "1 0 groups"])
def test_a_permutation_is_spread_evenly(key: str) -> None:
    size = 20_000
    places = permutation(size, key)
    assert np.array_equal(np.sort(places), np.arange(size))
    assert abs(np.corrcoef(np.arange(size), places)[0, 1]) < 0.03
    assert sum(after == before + 1 for before, after in pairwise(places.tolist())) < 10
