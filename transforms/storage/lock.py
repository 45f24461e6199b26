"""The locks of a folder: locks of the operating system, which are released when their process ends.

A file beside it names the holder, for people. A holder that releases the lock removes that file, so one that is still
there was left by a process that crashed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
import uuid
from pathlib import Path

from filelock import FileLock, Timeout

from schemas.digests import parse_json
from schemas.errors import ConfigError, LockedError, ResourceError
from schemas.logs import module_logger
from schemas.resources import explain_refusal
from transforms.storage.protocol import CACHE, LOCK, Holder

logger = module_logger(__name__)

HOLDER = f"{CACHE}/holder.json"
"""Names the holder of the one-writer lock; beside any other lock there is such a file with its name and `.json`."""

_LOOK_SECONDS = 1.0
"""Longer than `find_holder` holds the lock for its look, which must not make a run fail."""


class FolderLock:
    """A lock of a folder, taken when it is made and released by `release` or at the end of a `with` block.

    Raises:
        LockedError: If another process holds it.
        ConfigError: If the folder cannot be written.
    """

    def __init__(self, root: Path, name: str = LOCK) -> None:
        """Take the lock; warn if its last holder crashed."""
        self._root, self._name, self._locked = root, name, True
        self.token = uuid.uuid4().hex
        self._lock = FileLock(root / name, thread_local=False)
        try:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=_LOOK_SECONDS)
            self._write_holder()
        except Timeout as error:
            raise LockedError(
                f"{root}: another run is writing here ({_read(root, name).owner}; it holds {name}); wait for it or "
                "write elsewhere"
            ) from error
        except OSError as error:
            self._lock.release()
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise ResourceError(str(explain_refusal(error, where=str(root / name), place=root))) from error
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
            _holder_path(self._root, self._name).unlink(missing_ok=True)
            self._lock.release()

    def _write_holder(self) -> None:
        path = _holder_path(self._root, self._name)
        if path.exists():
            logger.warning(
                "%s: lock taken over from %s, which ended without releasing it",
                self._root,
                _read(self._root, self._name).owner,
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # or a link in its place would be followed
        owner = f"{socket.gethostname()}, process {os.getpid()}"
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        path.write_text(json.dumps({"owner": owner, "since": since, "token": self.token}))


def find_holder(root: Path, name: str = LOCK) -> Holder | None:
    """Return who holds a lock of a folder, None if nobody does; the lock is not changed."""
    try:
        handle = os.open(root / name, os.O_RDONLY | os.O_NONBLOCK)  # or a pipe would wait
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return _read(root, name)
    finally:
        os.close(handle)
    return None


def _read(root: Path, name: str) -> Holder:
    """Return what the last holder of a lock wrote."""
    try:
        record = parse_json(_holder_path(root, name).read_bytes())
        return Holder(str(record["owner"]), token=str(record.get("token", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Holder("an unknown run")


def _holder_path(root: Path, name: str) -> Path:
    return root / (HOLDER if name == LOCK else f"{name}.json")
