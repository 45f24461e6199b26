"""Connected components of a graph, by array operations.

Each edge hooks the larger label of its two ends to the smaller one, then all labels are shortened; both are repeated
until nothing changes (Shiloach and Vishkin, 1982), which takes as many rounds as the logarithm of a component's size.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Nodes = npt.NDArray[np.int64]


def connected_components(count: int, first: Nodes, second: Nodes) -> Nodes:
    """Return for each node the smallest node of its component.

    Args:
        count: How many nodes there are, numbered from 0.
        first: One end of each edge.
        second: The other end.

    Example:
        >>> connected_components(5, np.array([3, 4]), np.array([1, 3])).tolist()
        [0, 1, 2, 1, 1]
    """
    labels = np.arange(count)
    while True:
        left, right = labels[first], labels[second]
        if np.array_equal(left, right):
            return labels
        np.minimum.at(labels, np.maximum(left, right), np.minimum(left, right))
        while not np.array_equal(shorter := labels[labels], labels):
            labels = shorter
