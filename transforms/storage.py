"""The output folder: atomic publishing, digests remembered by size and time, and the one-writer lock.

A file is written below `.cache/tmp`, flushed to disk and renamed to its name: a reader sees all of it or nothing, and
a run that died leaves nothing half-named. Digests of published files are remembered by size and modification time.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from schemas.digests import sha256_file
from schemas.errors import ConfigError, IntegrityError, LockedError
from schemas.units import OutputFile, Unit, UnitReceipt

CACHE = ".cache"
LOCK = ".lock"


@dataclass(frozen=True)
class OutputFolder:
    """OUT, on a local or mounted file system.

    Attributes:
        root: The folder; created when something is published.
    """

    root: Path
    _digests: dict[str, tuple[int, int, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __reduce__(self) -> tuple[type[OutputFolder], tuple[Path]]:
        """Travel to workers as the folder's path alone."""
        return OutputFolder, (self.root,)

    def path(self, name: str) -> Path:
        """Return the path of `name`, a path relative to OUT."""
        return self.root / name

    @property
    def temporary(self) -> Path:
        """The folder of files that have no name yet; it may not exist."""
        return self.path(f"{CACHE}/tmp")

    def publish(self, name: str, write: Callable[[Path], int]) -> OutputFile:
        """Publish the file that `write` makes at the path it is given.

        Args:
            name: Path relative to OUT.
            write: Writes the file and returns its number of rows.
        """
        self.temporary.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.temporary)
        os.close(handle)
        try:
            rows = write(Path(temporary))
            return self.adopt(name, Path(temporary), rows=rows)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def adopt(self, name: str, temporary: Path, *, rows: int) -> OutputFile:
        """Flush a finished temporary file of this file system to disk and rename it to `name`."""
        target = self.path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, size = sha256_file(temporary), temporary.stat().st_size
        temporary.chmod(0o644)
        _sync(temporary)
        temporary.replace(target)
        _sync(target.parent)
        return OutputFile(path=name, sha256=digest, num_bytes=size, rows=rows)

    def publish_bytes(self, name: str, data: bytes) -> OutputFile:
        """Publish `data` as a file."""

        def write(path: Path) -> int:
            path.write_bytes(data)
            return 0

        return self.publish(name, write)

    def publish_receipt(self, receipt: UnitReceipt) -> None:
        """Publish a unit's receipt: this commits its outputs."""
        self.publish_bytes(receipt.path, receipt.to_bytes())

    def find_receipt(self, unit: Unit) -> UnitReceipt | None:
        """Return the unit's receipt if it exists, is whole, and every output still has its digest, else None."""
        path = self.path(unit.receipt_path)
        try:
            receipt = UnitReceipt.from_bytes(path.read_bytes(), where=str(path))
        except (FileNotFoundError, IntegrityError):
            return None
        whole = all(self.digest(output.path) == output.sha256 for output in receipt.outputs)
        return receipt if whole else None

    def describe(self, name: str, *, rows: int = 0) -> OutputFile:
        """Return the description of a file that exists."""
        status = self.path(name).stat()
        return OutputFile(path=name, sha256=self.digest(name) or "", num_bytes=status.st_size, rows=rows)

    def digest(self, name: str) -> str | None:
        """Return the SHA-256 of a file, from memory if size and time are unchanged; None if there is no file."""
        try:
            status = self.path(name).stat()
        except FileNotFoundError:
            return None
        known = self._digests.get(name)
        if known and known[:2] == (status.st_size, status.st_mtime_ns):
            return known[2]
        digest = sha256_file(self.path(name))
        self._digests[name] = (status.st_size, status.st_mtime_ns, digest)
        return digest

    def load_digests(self) -> None:
        """Take up the digests that earlier runs remembered."""
        path = self.path(f"{CACHE}/digests.json")
        try:
            entries: dict[str, list[Any]] = json.loads(path.read_bytes())
            self._digests.update({name: (size, time, digest) for name, (size, time, digest) in entries.items()})
        except (FileNotFoundError, ValueError, AttributeError, TypeError):
            self._digests.clear()  # only a memory: what is not in it is read again

    def save_digests(self) -> None:
        """Remember the digests of the files that still exist."""
        entries = {name: entry for name, entry in sorted(self._digests.items()) if self.path(name).is_file()}
        self.publish_bytes(f"{CACHE}/digests.json", json.dumps(entries).encode())

    def files(self, below: str = "") -> Iterator[str]:
        """Yield the files below a folder of OUT, relative to OUT, sorted; without the cache and the lock."""
        start = self.path(below)
        for folder, folders, names in os.walk(start):
            relative = Path(folder).relative_to(self.root)
            if relative == Path():
                folders[:] = [name for name in folders if name != CACHE]
                names = [name for name in names if name != LOCK]
            folders.sort()
            yield from ((relative / name).as_posix() for name in sorted(names))

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        self.path(name).unlink(missing_ok=True)

    def clear_temporary(self) -> None:
        """Remove what a run that died left unpublished; only for the holder of the lock."""
        shutil.rmtree(self.temporary, ignore_errors=True)

    def lock(self) -> FileLock:
        """Take the one-writer lock, released when the process ends however it ends.

        Raises:
            LockedError: If another run holds it.
            ConfigError: If the folder cannot be written.
        """
        lock = FileLock(self.path(LOCK))
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout as error:
            raise LockedError(
                f"{self.root}: another run is writing here (it holds {LOCK}); wait for it or use another --out"
            ) from error
        except OSError as error:
            raise ConfigError(f"--out {self.root}: cannot be written: {error.strerror or error}") from error
        return lock


def _sync(path: Path) -> None:
    """Flush a file or a folder's entries to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
