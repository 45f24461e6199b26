"""Connected components are those that following the edges gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transforms.ingest.dedup.components import connected_components

edges = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=40)


@given(edges)
def test_each_node_has_the_smallest_node_that_it_is_connected_with(found: list[tuple[int, int]]) -> None:
    expected = list(range(20))
    for _ in expected:
        for first, second in found:
            expected[first] = expected[second] = min(expected[first], expected[second])
    first, second = (np.array([edge[side] for edge in found], dtype=np.int64) for side in (0, 1))
    assert connected_components(20, first, second).tolist() == expected


def test_a_long_chain_is_one_component() -> None:
    nodes = np.random.default_rng(1).permutation(50_000)
    assert not connected_components(50_000, nodes[:-1], nodes[1:]).any()
