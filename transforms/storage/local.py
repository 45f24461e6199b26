"""OUT on a local or mounted file system.

A file is written below `.cache/tmp`, flushed to disk and renamed: readers see all of it or nothing, even after a crash.
The lock is a lock of the operating system, which is released when its process ends.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from schemas.errors import IntegrityError, LockedError
from schemas.files import make_symlink
from transforms.storage.lock import FolderLock, find_holder
from transforms.storage.log import FileLog
from transforms.storage.protocol import CACHE, LOCK, Holder, Status

_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_NO_LINKS = (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)
"""Errors of a file system without hard links, or that allows no more of this file."""


class LocalStore:
    """A folder."""

    poll_seconds = 0.2
    max_requests = 1
    overwrites = True

    def __init__(self, root: Path) -> None:
        """Keep the folder."""
        self._root = root

    def where(self, name: str) -> str:
        """Return the path of a file."""
        return str(self._root / name)

    def temporary(self) -> Path:
        """Return `.cache/tmp`, created if missing."""
        folder = self._root / CACHE / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def local_folder(self, name: str) -> Path:
        """Return a folder below this one."""
        return self._root / name

    def status(self, name: str) -> Status | None:
        """Return size and modification time; links are no files, nor what is behind one, nor pipes and devices."""
        path = self._root
        try:
            for part in PurePosixPath(name).parts:
                path /= part
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode):
                    return None
        except OSError as error:
            if error.errno not in _NO_FILE:
                raise
            return None
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return None
        return Status(status.st_size, status.st_mtime_ns)

    def present(self, names: Iterable[str]) -> set[str]:
        """Return those of the names that are files."""
        return {name for name in names if (self._root / name).is_file() and not (self._root / name).is_symlink()}

    def read_bytes(self, name: str) -> bytes:
        """Return a file's bytes."""
        return self._file(name).read_bytes()

    def open_local(self, name: str) -> AbstractContextManager[Path]:
        """Return the file itself."""
        return nullcontext(self._file(name))

    def open_local_folder(self, below: str) -> AbstractContextManager[Path]:
        """Return the folder itself."""
        return nullcontext(self._root / below)

    def open_ranges(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """Open the file itself."""
        path: Any = os.fsencode(self._file(name))  # the stubs lack bytes
        return pa.OSFile(path, mode="r")

    def _file(self, name: str) -> Path:
        """Return the path of a file to read; a pipe, for which reading would wait, is none, nor an endless device."""
        path = self._root / name
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))  # Arrow's has no number
        if not stat.S_ISREG(mode):
            raise FileNotFoundError(errno.ENOENT, "a pipe, a socket or a device is no file", str(path))
        return path

    def put(self, name: str, temporary: Path, *, sha256: str) -> None:
        """Flush the file, which is on the same file system, to disk and rename it."""
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        _sync(temporary)
        temporary.replace(target)
        _sync(target.parent)

    def files(self, below: str = "") -> Iterator[str]:
        """Walk the folder; a link to a file is none: what is behind it is outside, and changes without a trace."""
        yield from (name for name, is_file in self._walk(below) if is_file)

    def strangers(self, below: str = "") -> Iterator[str]:
        """Walk the folder; links to folders are not followed."""
        yield from (name for name, is_file in self._walk(below) if not is_file)

    def _walk(self, below: str) -> Iterator[tuple[str, bool]]:
        """Yield what is no folder, sorted within each, and whether it is a file."""
        prefix = f"{below}/" if below else ""
        try:
            with os.scandir(self._root / below) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        folders = []
        for entry in entries:
            if not prefix and entry.name in (CACHE, LOCK):
                is_ours = entry.is_dir if entry.name == CACHE else entry.is_file
                if not is_ours(follow_symlinks=False):
                    yield entry.name, False
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(prefix + entry.name)
            else:
                yield prefix + entry.name, entry.is_file(follow_symlinks=False)
        for folder in folders:
            yield from self._walk(folder)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        (self._root / name).unlink(missing_ok=True)

    def remove_folder(self, below: str) -> None:
        """Remove a folder with everything in it."""
        shutil.rmtree(self._root / below, ignore_errors=True)

    def clear_temporary(self) -> None:
        """Remove `.cache/tmp`."""
        self.remove_folder(f"{CACHE}/tmp")

    def create(self, name: str, data: bytes) -> bool:
        """Open it for exclusive creation: a reader may see it empty for a moment, or for good after a crash."""
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:
                file.write(data)
        except FileExistsError:
            return False
        return True

    def lock(self, name: str = LOCK) -> FolderLock:
        """Take the lock, which the operating system releases when this process ends."""
        return FolderLock(self._root, name)

    def holder(self, name: str = LOCK) -> Holder | None:
        """Return the holder of the lock."""
        return find_holder(self._root, name)

    def open_log(self, name: str) -> FileLog:
        """Append to a file."""
        return FileLog(self._root / name)

    def link(self, name: str, source: str) -> None:
        """Make a hard link, as published files never change, or a copy if the file system has no hard links."""
        target = self._root / name
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(source)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            temporary = self.temporary() / uuid.uuid4().hex
            shutil.copy2(source, temporary)
            temporary.replace(target)

    def folders(self, below: str) -> list[str]:
        """List the folder."""
        try:
            return sorted(entry.name for entry in (self._root / below).iterdir() if entry.is_dir())
        except FileNotFoundError:
            return []

    def read_pointer(self, name: str) -> str | None:
        """Read a symbolic link."""
        path = self._root / name
        if path.exists() and not path.is_symlink():
            raise IntegrityError(
                f"{path}: not a symbolic link, probably because a copy followed links; remove it and link the version "
                f"again: ln -s versions/NAME {path}"
            )
        return str(path.readlink()) if path.is_symlink() else None

    def set_pointer(self, name: str, target: str, *, expected: str | None) -> None:
        """Rename a new symbolic link over the old one."""
        found = self.read_pointer(name)
        if found != expected:
            raise LockedError(
                f"{self.where(name)}: it points to {found}, not to {expected}: another process changed it"
            )
        temporary = self.temporary() / uuid.uuid4().hex
        make_symlink(temporary, target)
        temporary.replace(self._root / name)
        _sync(self._root)


def _sync(path: Path) -> None:
    """Flush a file or a folder's entries to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
