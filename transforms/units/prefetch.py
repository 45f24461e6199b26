"""Prefetching: a thread makes the next items while this one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

_END = object()


def prefetch(items: Iterator[Item], *, depth: int = 1) -> Iterator[Item]:
    """Yield items in their order, made by one thread, up to `depth` of them before they are asked for.

    At most `depth` finished items wait, besides the one in use. An exception from making an item is raised in the
    item's place. A caller that stops early waits for the items under way.

    Args:
        items: Makes the items; only that thread runs it.
        depth: The most items that are made in advance; each is in memory.

    Example:
        >>> list(prefetch(iter([1, 2, 3])))
        [1, 2, 3]
    """
    with ThreadPoolExecutor(1) as thread:
        under_way = deque(thread.submit(next, items, _END) for _ in range(depth))
        while (item := under_way.popleft().result()) is not _END:
            under_way.append(thread.submit(next, items, _END))
            yield item  # type: ignore[misc]  # an item, as it is not the end
