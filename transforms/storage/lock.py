"""The one-writer lock of a folder: one of the operating system, which that of a dead process does not outlive.

Beside it stands who holds it, for people: a holder that gives the lock back removes that, so what is found there by the
next one tells of a process that died.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
import time
from pathlib import Path

from filelock import FileLock, Timeout

from schemas.errors import ConfigError, LockedError
from transforms.storage.protocol import CACHE, LOCK, Holder

logger = logging.getLogger(__name__)

HOLDER = f"{CACHE}/holder.json"

_LOOK_SECONDS = 1.0
"""Longer than a look at the lock (`holder`) takes, which must keep nobody out."""


class FolderLock:
    """The lock of a folder, held from its making until `release` or the end of a `with` block.

    Args:
        root: The folder; it is made if it is not there.

    Raises:
        LockedError: If another process holds it.
        ConfigError: If the folder cannot be written.
    """

    def __init__(self, root: Path) -> None:
        """Take the lock; say so if its last holder died."""
        self._root, self._held = root, True
        self._lock = FileLock(root / LOCK, thread_local=False)
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=_LOOK_SECONDS)
            self._write_holder()
        except Timeout as error:
            raise LockedError(
                f"{root}: another run is writing here ({_owner(root)}; it holds {LOCK}); wait for it or write elsewhere"
            ) from error
        except OSError as error:
            raise ConfigError(f"--out {root}: cannot be written: {error.strerror or error}") from error

    def __enter__(self) -> FolderLock:
        """Hold it for a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.release()

    def release(self) -> None:
        """Give it back, once."""
        if self._held:
            self._held = False
            (self._root / HOLDER).unlink(missing_ok=True)
            self._lock.release()

    def _write_holder(self) -> None:
        path = self._root / HOLDER
        if path.exists():
            logger.warning(
                "%s: the lock is taken over from %s, which ended without giving it back", self._root, _owner(self._root)
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        path.write_text(json.dumps({"owner": f"{socket.gethostname()}, process {os.getpid()}", "since": since}))


def find_holder(root: Path) -> Holder | None:
    """Return who holds the lock of a folder, None if nobody does; the lock is left as it is."""
    try:
        handle = os.open(root / LOCK, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return Holder(_owner(root))
    finally:
        os.close(handle)
    return None


def _owner(root: Path) -> str:
    try:
        return str(json.loads((root / HOLDER).read_bytes())["owner"])
    except (OSError, ValueError, KeyError, TypeError):
        return "an unknown run"
