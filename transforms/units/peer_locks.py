"""The locks that the peers of a run hold as long as they take part in it.

Nothing here needs Beam, so `cppmill status` can name the peers without importing it.
"""

from __future__ import annotations

from transforms.storage.folder import CACHE, OutputFolder

PEERS = f"{CACHE}/peers"
"""The folder of the locks, relative to OUT: `NUMBER.lock`."""


def peer_lock(number: int) -> str:
    """Return the name of the lock of a peer, relative to OUT."""
    return f"{PEERS}/{number}.lock"


def peer_locks(out: OutputFolder) -> list[str]:
    """Return the names of the locks of all peers that there have been; on an object store, of those not released."""
    return [name for name in out.files(PEERS) if name.endswith(".lock")]
