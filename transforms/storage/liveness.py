"""Whether the holder of a lock is alive, seen by looking again and again; the lock is not touched.

In a folder the operating system knows. On an object store a lease that is not renewed belongs to a dead process: it
counts as dead after it was seen unchanged for the lease's duration. Clocks of machines are never compared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from transforms.storage import lease
from transforms.storage.protocol import Holder, Store


class Liveness:
    """What one process has seen of the locks in a place.

    Args:
        store: The place.
        clock: Monotonic seconds.
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without having seen anything."""
        self._store, self._clock = store, clock
        self._seen = dict[str, tuple[Holder, float]]()

    def silent_seconds(self, name: str) -> float:
        """Look at a lock, and return how long its holder has given no sign of life; infinite if nobody holds it."""
        return self._look(name)[1]

    def is_alive(self, name: str, token: str = "") -> bool:
        """Tell whether a lock is held by a living process, and by the one that has a token, if one is given."""
        found, silent_seconds = self._look(name)
        return silent_seconds < lease.LEASE_SECONDS and found is not None and token in ("", found.token)

    def _look(self, name: str) -> tuple[Holder | None, float]:
        holder = self._store.holder(name)
        if holder is None:
            return None, math.inf
        if holder.expires is None:
            return holder, 0.0
        now = self._clock()
        seen, since = self._seen.get(name, (None, now))
        if seen != holder:
            self._seen[name] = (holder, since := now)
        return holder, now - since
