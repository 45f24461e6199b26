"""The output folder, on a file system or on an object store: publishing, receipts, digests that are remembered.

A file is written to a local temporary file, digested, and given its name as a whole: a reader sees all of it or
nothing. Digests of published files are remembered by size and version (modification time, entity tag). How a file gets
its name, and what the one-writer lock is, depends on the place: `storage_local`, `storage_objects`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from schemas.digests import sha256_file
from schemas.errors import IntegrityError
from schemas.places import is_remote
from schemas.units import OutputFile, Unit, UnitReceipt
from transforms.storage.local import LocalStore
from transforms.storage.log import Log
from transforms.storage.objects import ObjectStore
from transforms.storage.protocol import CACHE, Holder, Lock, Status, Store

__all__ = ["CACHE", "OutputFolder"]

Item = TypeVar("Item")
Found = TypeVar("Found")


class OutputFolder:
    """OUT. Names of files are relative to it.

    Attributes:
        root: A path, made absolute, or a URL (`s3://bucket/prefix`). Travels to workers as this alone.

    Args:
        root: Where OUT is; a folder is created when something is published.
    """

    def __init__(self, root: str | Path) -> None:
        """Name the place; nothing is looked at."""
        remote = is_remote(str(root))
        self.root = str(root).rstrip("/") if remote else str(Path(root).absolute())
        self._store: Store = ObjectStore(self.root) if remote else LocalStore(Path(self.root))
        self._digests: dict[str, tuple[int, int | str, str]] = {}

    def __reduce__(self) -> tuple[type[OutputFolder], tuple[str]]:
        """Travel as the place alone."""
        return OutputFolder, (self.root,)

    def __eq__(self, other: object) -> bool:
        """Compare the places."""
        return isinstance(other, OutputFolder) and other.root == self.root

    def __hash__(self) -> int:
        """Hash the place."""
        return hash(self.root)

    def __repr__(self) -> str:
        """Name the place."""
        return f"OutputFolder({self.root!r})"

    @property
    def poll_seconds(self) -> float:
        """How long to wait between looks for new files: looks at an object store cost requests."""
        return self._store.poll_seconds

    @property
    def temporary(self) -> Path:
        """A local folder, which exists, for what has no name yet: in OUT if that is local, else this process's own."""
        return self._store.temporary()

    def local_folder(self, name: str) -> Path:
        """Return a local folder for what is no part of OUT, as logs: in OUT if that is local, else of the machine."""
        return self._store.local_folder(name)

    def each(self, look: Callable[[Item], Found], items: Iterable[Item]) -> list[Found]:
        """Return what a look at files of OUT gives for each item, in order; several at a time on an object store."""
        if self._store.at_once == 1:
            return list(map(look, items))
        with ThreadPoolExecutor(self._store.at_once) as pool:
            return list(pool.map(look, items))

    def where(self, name: str) -> str:
        """Return what messages call a file: its path or URL."""
        return self._store.where(name)

    def exists(self, name: str) -> bool:
        """Tell whether there is a file."""
        return self._store.status(name) is not None

    def size(self, name: str) -> int:
        """Return the bytes of a file; FileNotFoundError if there is none."""
        return self._status(name).num_bytes

    def present(self, names: Iterable[str]) -> set[str]:
        """Return those names that files have; of an object store the folders of the names are listed."""
        return self._store.present(names)

    def read_bytes(self, name: str) -> bytes:
        """Return the bytes of a file; FileNotFoundError if there is none."""
        return self._store.read_bytes(name)

    def open_local(self, name: str) -> AbstractContextManager[Path]:
        """Give a file as a local path: the file itself, or a private copy that is deleted afterwards.

        Raises:
            FileNotFoundError: If there is none.
        """
        return self._store.open_local(name)

    def open_local_folder(self, below: str) -> AbstractContextManager[Path]:
        """Give a folder and the files in it as a local one: itself, or a private copy that is deleted afterwards."""
        return self._store.open_local_folder(below)

    def open_ranges(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """Give a file to be read in parts: of an object only the ranges that are asked for are fetched.

        Raises:
            FileNotFoundError: If there is none.
        """
        return self._store.open_ranges(name)

    def files(self, below: str = "") -> Iterator[str]:
        """Yield the files below a folder of OUT; of all of OUT without the cache and the lock."""
        return self._store.files(below)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        self._store.remove(name)

    def remove_folder(self, below: str) -> None:
        """Remove all files below a folder."""
        self._store.remove_folder(below)

    def publish(self, name: str, write: Callable[[Path], int]) -> OutputFile:
        """Publish the file that `write` makes at the path it is given.

        Args:
            name: Path relative to OUT.
            write: Writes the file and returns its number of rows.

        Raises:
            IntegrityError: If the name holds a unit's key, and another writer has published other bytes under it.
        """
        handle, temporary = tempfile.mkstemp(dir=self.temporary)
        os.close(handle)
        try:
            rows = write(Path(temporary))
            return self.adopt(name, Path(temporary), rows=rows)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def adopt(self, name: str, temporary: Path, *, rows: int) -> OutputFile:
        """Publish a finished file of the folder `temporary`; it is gone then."""
        digest, size = sha256_file(temporary), temporary.stat().st_size
        self._store.put(name, temporary, sha256=digest)
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
        receipt = self._read_receipt(unit)
        if receipt is None:
            return None
        whole = all(self.digest(output.path) == output.sha256 for output in receipt.outputs)
        return receipt if whole else None

    def withdraw(self, units: Sequence[Unit]) -> None:
        """Make sure that units, which are to run because their receipts do not stand, may publish their files again.

        Only for the holder of the lock.
        """
        self._store.withdraw(unit.receipt_path for unit in units)

    def describe(self, name: str, *, rows: int = 0) -> OutputFile:
        """Return the description of a file that exists."""
        status = self._status(name)
        return OutputFile(path=name, sha256=self._digest(name, status), num_bytes=status.num_bytes, rows=rows)

    def digest(self, name: str) -> str | None:
        """Return the SHA-256 of a file, from memory if size and version are unchanged; None if there is no file."""
        status = self._store.status(name)
        return None if status is None else self._digest(name, status)

    def hash(self, name: str) -> str:
        """Return the SHA-256 of a file, whose bytes are all read."""
        with self.open_local(name) as path:
            return sha256_file(path)

    def load_digests(self) -> None:
        """Take up the digests that earlier runs remembered."""
        try:
            entries: dict[str, list[Any]] = json.loads(self.read_bytes(f"{CACHE}/digests.json"))
            self._digests.update({name: (size, version, digest) for name, (size, version, digest) in entries.items()})
        except (FileNotFoundError, ValueError, AttributeError, TypeError):
            self._digests.clear()  # only a memory: what is not in it is read again

    def save_digests(self) -> None:
        """Remember the digests of the files that still exist."""
        standing = self.present(self._digests)
        entries = {name: entry for name, entry in sorted(self._digests.items()) if name in standing}
        self.publish_bytes(f"{CACHE}/digests.json", json.dumps(entries).encode())

    def clear_temporary(self) -> None:
        """Remove what a run that died left unpublished; only for the holder of the lock."""
        self._store.clear_temporary()

    def lock(self) -> Lock:
        """Take the one-writer lock, which a process that died leaves free, at once or after a while.

        Raises:
            LockedError: If another run holds it.
            ConfigError: If OUT cannot be written.
        """
        return self._store.lock()

    def holder(self) -> Holder | None:
        """Return who holds the one-writer lock, None if nobody does; on an object store it may be one that died."""
        return self._store.holder()

    def open_log(self, name: str) -> Log:
        """Begin a log, which is written while it grows and is no part of OUT."""
        return self._store.open_log(name)

    def take(self, source: OutputFolder, names: Iterable[str]) -> None:
        """Give published files of another folder, in the same kind of place, their names here too, sharing their bytes.

        Hard links, or copies within the object store; what has its name already stays.
        """
        self.each(lambda name: self._store.take(name, source.where(name)), names)

    def folders(self, below: str = "") -> list[str]:
        """Return the names of the folders directly below a folder, sorted."""
        return self._store.folders(below)

    def pointed(self, name: str) -> str | None:
        """Return what a pointer (a symbolic link, a small object) names; None if there is none.

        Raises:
            IntegrityError: If there is something else.
        """
        return self._store.pointed(name)

    def point(self, name: str, target: str, *, expected: str | None) -> None:
        """Let a pointer name another thing, at once and only if it names what is expected (None: nothing).

        Raises:
            LockedError: If it names something else: another process has written it.
        """
        self._store.point(name, target, expected=expected)

    def _status(self, name: str) -> Status:
        status = self._store.status(name)
        if status is None:
            raise FileNotFoundError(2, "No such file", self.where(name))
        return status

    def _digest(self, name: str, status: Status) -> str:
        known = self._digests.get(name)
        if known and known[:2] == (status.num_bytes, status.version):
            return known[2]
        digest = status.sha256 or self.hash(name)
        self._digests[name] = (status.num_bytes, status.version, digest)
        return digest

    def _read_receipt(self, unit: Unit) -> UnitReceipt | None:
        try:
            return UnitReceipt.from_bytes(self.read_bytes(unit.receipt_path), where=self.where(unit.receipt_path))
        except (FileNotFoundError, IntegrityError):
            return None
