"""The one-writer lock of a folder: a lock of the operating system, which is released when its process ends.

A file beside it names the holder, for people. A holder that releases the lock removes that file, so one that is still
there was left by a process that crashed.
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
"""Longer than `find_holder` holds the lock for its look, which must not make a run fail."""


class FolderLock:
    """The lock of a folder, taken when it is made and released by `release` or at the end of a `with` block.

    Raises:
        LockedError: If another process holds it.
        ConfigError: If the folder cannot be written.
    """

    def __init__(self, root: Path) -> None:
        """Take the lock; warn if its last holder crashed."""
        self._root, self._locked = root, True
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
        """Return the lock."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release it."""
        self.release()

    def release(self) -> None:
        """Release it, once."""
        if self._locked:
            self._locked = False
            (self._root / HOLDER).unlink(missing_ok=True)
            self._lock.release()

    def _write_holder(self) -> None:
        path = self._root / HOLDER
        if path.exists():
            logger.warning(
                "%s: lock taken over from %s, which ended without releasing it", self._root, _owner(self._root)
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        path.write_text(json.dumps({"owner": f"{socket.gethostname()}, process {os.getpid()}", "since": since}))


def find_holder(root: Path) -> Holder | None:
    """Return who holds the lock of a folder, None if nobody does; the lock is not changed."""
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
