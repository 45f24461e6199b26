"""OUT on a local or mounted file system.

A file is written below `.cache/tmp`, flushed to disk and renamed to its name: a reader sees all of it or nothing, and a
run that died leaves nothing half-named. The lock is one of the operating system: that of a dead process is free.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa
from filelock import FileLock, Timeout

from schemas.errors import ConfigError, LockedError
from transforms.storage_files import CACHE, LOCK, Status


class LocalStore:
    """A folder.

    Args:
        root: Its path; it is created when something is published.
    """

    poll_seconds = 0.2
    at_once = 1

    def __init__(self, root: Path) -> None:
        """Keep the folder."""
        self._root = root

    def where(self, name: str) -> str:
        """Return the path of a file."""
        return str(self._root / name)

    def temporary(self) -> Path:
        """Return `.cache/tmp`, made if it is not there."""
        folder = self._root / CACHE / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def local_folder(self, name: str) -> Path:
        """Return a folder below this one."""
        return self._root / name

    def status(self, name: str) -> Status | None:
        """Return size and modification time."""
        try:
            status = (self._root / name).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Status(status.st_size, status.st_mtime_ns)

    def present(self, names: Iterable[str]) -> set[str]:
        """Return those names that files have."""
        return {name for name in names if (self._root / name).is_file()}

    def read_bytes(self, name: str) -> bytes:
        """Return a file's bytes."""
        return (self._root / name).read_bytes()

    def open_local(self, name: str) -> AbstractContextManager[Path]:
        """Give the file itself."""
        path = self._root / name
        path.stat()
        return nullcontext(path)

    def open_local_folder(self, below: str) -> AbstractContextManager[Path]:
        """Give the folder itself."""
        return nullcontext(self._root / below)

    def open_ranges(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """Open the file itself."""
        return pa.OSFile(os.fspath(self._root / name), mode="r")

    def put(self, name: str, temporary: Path, *, sha256: str) -> None:
        """Flush a finished file of this file system to disk and rename it."""
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.chmod(0o644)
        _sync(temporary)
        temporary.replace(target)
        _sync(target.parent)

    def files(self, below: str) -> Iterator[str]:
        """Walk the folder."""
        for folder, folders, names in os.walk(self._root / below):
            relative = Path(folder).relative_to(self._root)
            if relative == Path():
                folders[:] = [name for name in folders if name != CACHE]
                names = [name for name in names if name != LOCK]
            folders.sort()
            yield from ((relative / name).as_posix() for name in sorted(names))

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        (self._root / name).unlink(missing_ok=True)

    def remove_folder(self, below: str) -> None:
        """Remove a folder with all that is in it."""
        shutil.rmtree(self._root / below, ignore_errors=True)

    def withdraw(self, names: Iterable[str]) -> None:
        """Do nothing: what is renamed takes the place of what stands there."""

    def clear_temporary(self) -> None:
        """Remove `.cache/tmp`."""
        self.remove_folder(f"{CACHE}/tmp")

    def lock(self) -> FileLock:
        """Take the lock, released when the process ends however it ends."""
        lock = FileLock(self._root / LOCK)
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout as error:
            raise LockedError(
                f"{self._root}: another run is writing here (it holds {LOCK}); wait for it or use another --out"
            ) from error
        except OSError as error:
            raise ConfigError(f"--out {self._root}: cannot be written: {error.strerror or error}") from error
        return lock


def _sync(path: Path) -> None:
    """Flush a file or a folder's entries to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
