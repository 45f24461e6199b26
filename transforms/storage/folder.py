"""The output folder, on a file system or on an object store: publishing files, unit receipts, remembered digests.

A file is written to a local temporary file, digested and published atomically. Digests of published files are
remembered by size and version (modification time, entity tag). What depends on the place is its `Store`
(`protocol`), which callers use directly for the lock, logs, pointers and the like.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from schemas.digests import sha256_file
from schemas.errors import IntegrityError
from schemas.places import is_remote
from schemas.units import OutputFile, Unit, UnitReceipt
from transforms.storage.local import LocalStore
from transforms.storage.objects import ObjectStore
from transforms.storage.protocol import CACHE, Status, Store

__all__ = ["CACHE", "OutputFolder"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_DIGESTS = f"{CACHE}/digests.json"


class OutputFolder:
    """OUT. Names of files are relative to it.

    Attributes:
        root: An absolute path, or a URL (`s3://bucket/prefix`); all that is pickled.
        store: The place itself; what is the same on every place is an attribute here too: `where`, `files` and so on.

    Args:
        root: Where OUT is; a local folder is created when the first file is published.
    """

    def __init__(self, root: str | Path) -> None:
        """Keep the place; it is not accessed."""
        remote = is_remote(str(root))
        self.root = str(root).rstrip("/") if remote else str(Path(root).absolute())
        self.store: Store = ObjectStore(self.root) if remote else LocalStore(Path(self.root))
        self.where, self.files, self.read_bytes = self.store.where, self.store.files, self.store.read_bytes
        self.open_local, self.open_local_folder = self.store.open_local, self.store.open_local_folder
        self.open_ranges = self.store.open_ranges
        self.remove, self.remove_folder = self.store.remove, self.store.remove_folder
        self._digests: dict[str, tuple[int, int | str, str]] = {}

    def __reduce__(self) -> tuple[type[OutputFolder], tuple[str]]:
        """Pickle the place alone."""
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
    def temporary(self) -> Path:
        """An existing local folder for unpublished files: in OUT if that is local, else this process's own."""
        return self.store.temporary()

    def each(self, look: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return `look(item)` for each item, in order; concurrently on an object store, where each is a request."""
        if self.store.max_requests == 1:
            return list(map(look, items))
        with ThreadPoolExecutor(self.store.max_requests) as pool:
            return list(pool.map(look, items))

    def exists(self, name: str) -> bool:
        """Tell whether a file exists."""
        return self.store.status(name) is not None

    def publish(self, name: str, write: Callable[[Path], int]) -> OutputFile:
        """Publish the file that `write` makes at the path it is given.

        Args:
            name: Path relative to OUT.
            write: Writes the file and returns its number of rows.

        Raises:
            IntegrityError: If the name contains a unit's key and another writer has published other bytes under it.
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
        """Publish a finished file of the folder `temporary`, and remove it there."""
        digest, size = sha256_file(temporary), temporary.stat().st_size
        self.store.put(name, temporary, sha256=digest)
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
        """Return the unit's receipt if it is readable and every output still has its digest, else None."""
        receipt = self._read_receipt(unit.receipt_path)
        if receipt is None or any(self.digest(output.path) != output.sha256 for output in receipt.outputs):
            return None
        return receipt

    def withdraw(self, units: Sequence[Unit]) -> None:
        """Allow units to publish their files again: remove receipts and outputs where they cannot be overwritten.

        Only for the holder of the lock, and for units without a valid receipt.
        """
        if self.store.overwrites:
            return
        for name in self.store.present(unit.receipt_path for unit in units):
            receipt = self._read_receipt(name)
            self.remove(name)
            for output in receipt.outputs if receipt else ():
                self.remove(output.path)

    def describe(self, name: str, *, rows: int = 0) -> OutputFile:
        """Return the description of a file; FileNotFoundError if there is none."""
        status = self.store.status(name)
        if status is None:
            raise FileNotFoundError(2, "No such file", self.where(name))
        return OutputFile(path=name, sha256=self._digest(name, status), num_bytes=status.num_bytes, rows=rows)

    def digest(self, name: str) -> str | None:
        """Return the SHA-256 of a file, remembered if size and version are unchanged; None if there is no file."""
        status = self.store.status(name)
        return None if status is None else self._digest(name, status)

    def hash(self, name: str) -> str:
        """Return the SHA-256 of a file by reading all its bytes."""
        with self.open_local(name) as path:
            return sha256_file(path)

    def load_digests(self) -> None:
        """Load the digests that earlier runs remembered."""
        try:
            entries: dict[str, list[Any]] = json.loads(self.read_bytes(_DIGESTS))
            self._digests.update({name: (size, version, digest) for name, (size, version, digest) in entries.items()})
        except (FileNotFoundError, ValueError, AttributeError, TypeError):
            self._digests.clear()  # only a cache: missing digests are computed again

    def save_digests(self) -> None:
        """Save the digests of the files that still exist."""
        present = self.store.present(self._digests)
        entries = {name: entry for name, entry in sorted(self._digests.items()) if name in present}
        self.publish_bytes(_DIGESTS, json.dumps(entries).encode())

    def link(self, source: OutputFolder, names: Iterable[str]) -> None:
        """Share published files of another folder, in the same kind of place, under the same names.

        By hard links, or copies within the object store; names that exist here stay as they are.
        """
        self.each(lambda name: self.store.link(name, source.where(name)), names)

    def _digest(self, name: str, status: Status) -> str:
        known = self._digests.get(name)
        if known and known[:2] == (status.num_bytes, status.version):
            return known[2]
        digest = status.sha256 or self.hash(name)
        self._digests[name] = (status.num_bytes, status.version, digest)
        return digest

    def _read_receipt(self, name: str) -> UnitReceipt | None:
        try:
            return UnitReceipt.from_bytes(self.read_bytes(name), where=self.where(name))
        except (FileNotFoundError, IntegrityError):
            return None
