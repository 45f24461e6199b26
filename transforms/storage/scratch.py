"""The folder of a process for its temporary files that belong to no output folder; it goes when the process ends.

What a killed process left is removed by the next one.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path

from filelock import FileLock

from schemas.errors import ResourceError

_LOCK = ".lock"
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
_UNNAMED, _UNNAMED_SECONDS = ".new-", 60
_made: dict[int, Callable[[], None]] = {}
"""What removes the folder of a process, by its id."""
_making: dict[int, threading.Lock] = {}
"""What a thread of a process holds while it creates the folder; of a forked one, no other process's thread has it."""


def scratch_folder() -> Path:
    """Return the folder of this process, created on first use."""
    process = os.getpid()
    with _making.setdefault(process, threading.Lock()):
        return _make_folder(process)


@lru_cache(maxsize=1)
def _make_folder(process: int) -> Path:
    """Create the folder of a process; a forked process has another id, and so its own folder.

    It gets its name once its lock is held, so whoever sees the name and a free lock knows that the process has ended.
    """
    new = _make_unnamed(Path(tempfile.gettempdir()) / f"cppmill-{os.getuid()}")
    parent = new.parent
    lock = FileLock(new / _LOCK, thread_local=False)
    try:
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        shutil.rmtree(new, ignore_errors=True)
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            raise
        raise ResourceError(f"{parent}: files cannot be locked there; let TMPDIR name a folder elsewhere") from error
    folder = new.rename(parent / f"{process}-{new.name.removeprefix(_UNNAMED)}")
    _made[process] = partial(_remove, folder, lock)
    atexit.register(remove_scratch)
    _remove_abandoned(parent, keep=folder)
    return folder


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder in this process's own, for a `with` block or until its `cleanup`."""
    return tempfile.TemporaryDirectory(dir=scratch_folder())


def remove_scratch() -> None:
    """Remove the folder of this process if there is one, as where a signal ends it, which runs no exit handler."""
    remove = _made.pop(os.getpid(), None)
    if remove is not None:
        remove()


def _make_unnamed(shared: Path) -> Path:
    """Create a folder in the one of this user's processes, which each of them may remove whenever it is empty.

    Anyone may put a link or a folder of theirs in its place: it is left alone then, and a new one is taken.
    """
    while True:
        with suppress(FileExistsError):
            shared.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            if not _is_private(shared):
                own = tempfile.mkdtemp(prefix=f"{shared.name}-", dir=shared.parent)
                return Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=own))
            new = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=shared))
            if _is_private(shared):  # and stays, as it is not empty any more
                return new


def _is_private(folder: Path) -> bool:
    """Tell whether a folder is one, no link, in which only this user writes."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


def _remove_abandoned(parent: Path, keep: Path) -> None:
    """Remove the folders of ended processes; others may be doing the same at the same time."""
    for folder in parent.iterdir():
        if folder != keep and folder.is_dir() and _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Tell whether the process that created a folder has ended; one without its name yet gets a minute."""
    try:
        if folder.name.startswith(_UNNAMED) and time.time() - folder.stat().st_mtime < _UNNAMED_SECONDS:
            return False
        with (folder / _LOCK).open("rb") as lock:  # `FileLock` would create a folder that is gone by now
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:  # never locked, or removed since it was listed
        pass
    return True


def _remove(folder: Path, lock: FileLock) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()
    with suppress(OSError):  # not empty
        folder.parent.rmdir()
