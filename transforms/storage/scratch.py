"""A local folder for the files that a process downloads from and uploads to an object store.

It is made in the folder for temporary files (TMPDIR) and removed when the process ends. What a killed process left is
removed by the next one that makes such a folder, as its lock is free then.
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
    """Return the folder of this process, created on first use."""
    return _make_folder(os.getpid())


@lru_cache(maxsize=1)
def _make_folder(process: int) -> Path:
    """Create the folder of a process; a forked process has another id, and so its own folder."""
    parent = Path(tempfile.gettempdir()) / f"cppmill-{os.getuid()}"
    parent.mkdir(mode=0o700, exist_ok=True)
    with FileLock(parent / _LOCK):
        for folder in parent.iterdir():
            if folder.is_dir() and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{process}-", dir=parent))
        lock = FileLock(folder / _LOCK, thread_local=False)
        lock.acquire()
    atexit.register(_remove, folder, lock)
    return folder


def _is_abandoned(folder: Path) -> bool:
    """Tell whether the process that created a folder has ended."""
    try:
        with FileLock(folder / _LOCK, timeout=0):
            return True
    except Timeout:
        return False


def _remove(folder: Path, lock: FileLock) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()
