"""A local folder for the files that a process reads from and writes to an object store, and that goes with it.

It stands in the folder for temporary files (TMPDIR). It is removed when the process ends; what a killed process left is
removed by the next one that makes such a folder, as nobody holds its lock any more.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path

from filelock import FileLock, Timeout

_LOCK = ".lock"


def scratch_folder() -> Path:
    """Return the folder of this process, made when it is first asked for."""
    return _make_folder(os.getpid())


@lru_cache(maxsize=1)
def _make_folder(process: int) -> Path:
    """Make the folder of a process; a forked one has another number, and so a folder of its own."""
    parent = Path(tempfile.gettempdir()) / f"cppmill-{os.getuid()}"
    parent.mkdir(mode=0o700, exist_ok=True)
    with FileLock(parent / _LOCK):
        for folder in parent.iterdir():
            if folder.is_dir() and _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{process}-", dir=parent))
        lock = FileLock(folder / _LOCK, thread_local=False)
        lock.acquire()
    atexit.register(_remove, folder, lock)
    return folder


def _is_left(folder: Path) -> bool:
    """Tell whether the process that made a folder is no more."""
    try:
        with FileLock(folder / _LOCK, timeout=0):
            return True
    except Timeout:
        return False


def _remove(folder: Path, lock: FileLock) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()
