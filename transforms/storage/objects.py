"""OUT on an object store, of any kind that `urls.OBJECTS` has.

A file is written to a local temporary file and uploaded: readers see all of an object or nothing. A name that contains
a unit's key is created only if it is free, so of two writers of a unit one wins and the other finds its own digest
there; all other names are overwritten, by the holder of the lock or on its behalf. Objects are read by downloading them
to a private file, or by ranges. The digest of each file is in the metadata of its object.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from schemas.digests import parse_json, sha256_file
from schemas.errors import ConfigError, IntegrityError, LockedError, StoreError
from transforms.storage.lease import Lease, read_holder
from transforms.storage.log import ObjectLog
from transforms.storage.protocol import CACHE, LOCK, ConflictError, Holder, Status, is_keyed
from transforms.storage.scratch import scratch_folder
from transforms.storage.urls import OBJECTS, input_errors, store_errors

_SMALL_BYTES = 2 << 20
"""One request for so much takes about as long as a few for parts of it."""
_CONFLICT_ATTEMPTS = 8
_CONFLICT_SECONDS = 0.1


class ObjectStore:
    """A prefix of an object store.

    Raises:
        ConfigError: If there is no such kind of store.
    """

    poll_seconds = 2.0
    max_requests = 16
    overwrites = False

    def __init__(self, root: str) -> None:
        """Keep the place; no request is made."""
        scheme, _, self._prefix = root.partition("://")
        if scheme not in OBJECTS:
            raise ConfigError(
                f"{root}: not supported; it takes a path or {', '.join(f'{kind}://' for kind in OBJECTS)}"
            )
        self._root = root
        self._objects = OBJECTS[scheme]()
        self._leases = list[Lease]()

    def where(self, name: str) -> str:
        """Return the URL of an object."""
        return f"{self._root}/{name}"

    def temporary(self) -> Path:
        """Return this process's own folder."""
        return scratch_folder()

    def local_folder(self, name: str) -> Path:
        """Return a folder of this machine and user."""
        return Path(tempfile.gettempdir()) / f"cppmill-{os.getuid()}-{name.replace('/', '-').lstrip('.')}"

    def status(self, name: str) -> Status | None:
        """Return size, version and digest; one request."""
        with self._errors(name):
            return self._objects.status(self._path(name))

    def present(self, names: Iterable[str]) -> set[str]:
        """List the folders of the names, in pages."""
        wanted = set(names)
        folders = {name.rpartition("/")[0] for name in wanted}
        return wanted & {name for folder in folders for name in self._list(folder)}

    def read_bytes(self, name: str) -> bytes:
        """Download an object."""
        with self._errors(name):
            return bytes(self._objects.system.cat_file(self._path(name)))

    @contextmanager
    def open_local(self, name: str) -> Iterator[Path]:
        """Download a private copy of an object, deleted afterwards."""
        with tempfile.TemporaryDirectory(dir=self.temporary()) as folder:
            path = Path(folder) / name.rpartition("/")[2]
            with self._errors(name):
                self._objects.download(self._path(name), path)
            yield path

    @contextmanager
    def open_local_folder(self, below: str) -> Iterator[Path]:
        """Download private copies of the objects directly below, deleted afterwards."""
        with tempfile.TemporaryDirectory(dir=self.temporary()) as folder:
            for name in self._list(below):
                (Path(folder) / name.rpartition("/")[2]).write_bytes(self.read_bytes(name))
            yield Path(folder)

    @contextmanager
    def open_ranges(self, name: str) -> Iterator[pa.NativeFile]:
        """Open an object; each read requests only its range, but a small object is read at once."""
        with self._errors(name):
            source = self._objects.system.open(self._path(name), "rb", cache_type="none")
            data = source.read() if source.size <= _SMALL_BYTES else None
        opened = pa.PythonFile(source, mode="r") if data is None else pa.BufferReader(data)
        with source, opened as file, _naming_missing(self.where(name)), input_errors(self.where(name)):
            yield file

    def put(self, name: str, temporary: Path, *, sha256: str) -> None:
        """Upload a file and delete it.

        Raises:
            IntegrityError: If the name contains a unit's key and exists with other bytes.
        """
        self._check_lease()
        with self._errors(name):
            try:
                if is_keyed(name):
                    self._create(name, temporary, sha256)
                else:
                    self._objects.upload(self._path(name), temporary, sha256=sha256, create=False)
            except FileNotFoundError as error:
                raise self._no_bucket(name) from error
        temporary.unlink()

    def files(self, below: str = "") -> Iterator[str]:
        """List in pages."""
        with self._errors(below):
            try:
                found = self._objects.system.find(self._path(below))
            except FileNotFoundError as error:
                raise self._no_bucket(below) from error
        names = (path[len(self._prefix) + 1 :] for path in sorted(found))
        names = (name for name in names if name and not name.endswith("/"))
        yield from (name for name in names if below or not (name == LOCK or name.startswith(f"{CACHE}/")))

    def strangers(self, below: str = "") -> Iterator[str]:
        """Yield nothing: all are objects."""
        yield from ()

    def remove(self, name: str) -> None:
        """Remove an object if it exists."""
        self._check_lease()
        with self._errors(name), suppress(FileNotFoundError):
            self._objects.system.rm_file(self._path(name))

    def remove_folder(self, below: str) -> None:
        """Remove the objects below a folder."""
        with ThreadPoolExecutor(self.max_requests) as pool:
            list(pool.map(self.remove, list(self.files(below))))

    def clear_temporary(self) -> None:
        """Abort unfinished uploads."""
        with self._errors(""):
            self._objects.abort_uploads(self._prefix)

    def create(self, name: str, data: bytes) -> bool:
        """Write it on the condition that there is none."""
        self._check_lease()
        try:
            with self._errors(name):
                self._objects.write(self._path(name), data, expected=None)
        except ConflictError:
            return False
        return True

    def check_writable(self) -> None:
        """Write an empty object here, and remove it.

        Raises:
            StoreError: If there is no such bucket, or it cannot be written.
        """
        path = self._path(f"cppmill-probe-{uuid.uuid4().hex}")
        with self._errors(""):
            try:
                self._objects.write(path, b"", expected=None)
            except FileNotFoundError as error:
                raise self._no_bucket("") from error
        with suppress(Exception):  # who may only create objects may use the bucket: an empty object stays
            self._objects.system.rm_file(path)

    def lock(self, name: str = LOCK) -> Lease:
        """Take the lease."""
        try:
            lease = Lease(_LeaseObject(self, name), self.where(name))
        except (OSError, StoreError) as error:
            raise ConfigError(f"--out {self._root}: cannot be written: {error}") from error
        self._leases.append(lease)
        return lease

    def holder(self, name: str = LOCK) -> Holder | None:
        """Read the lease."""
        return read_holder(_LeaseObject(self, name))

    def open_log(self, name: str) -> ObjectLog:
        """Upload it as a whole whenever it has grown."""

        def put(data: bytes) -> None:
            handle, temporary = tempfile.mkstemp(dir=self.temporary())
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            self.put(name, Path(temporary), sha256=hashlib.sha256(data).hexdigest())

        return ObjectLog(put)

    def link(self, name: str, source: str) -> None:
        """Copy within the store, with metadata."""
        self._check_lease()
        if self.status(name) is None:
            with self._errors(name):
                self._objects.system.cp_file(source.partition("://")[2], self._path(name))

    def folders(self, below: str) -> list[str]:
        """List the common prefixes."""
        return sorted(name.rpartition("/")[2] for name in self._list(below, kind="directory"))

    def read_pointer(self, name: str) -> str | None:
        """Read a small object."""
        return self._read_pointer(name)[0]

    def set_pointer(self, name: str, target: str, *, expected: str | None) -> None:
        """Write it if it still has the version that was read."""
        self._check_lease()
        found, version = self._read_pointer(name)
        try:
            if found != expected:
                raise ConflictError(name)
            with self._errors(name):
                self._objects.write(self._path(name), json.dumps({"target": target}).encode(), expected=version)
        except ConflictError as error:
            raise LockedError(
                f"{self.where(name)}: it no longer points to {expected}: another process changed it"
            ) from error

    def _read_pointer(self, name: str) -> tuple[str | None, str | None]:
        """Return the target of a pointer, and its version."""
        status = self.status(name)
        if status is None:
            return None, None
        try:
            return str(parse_json(self.read_bytes(name))["target"]), str(status.version)
        except (ValueError, KeyError, TypeError) as error:
            raise IntegrityError(
                f'{self.where(name)}: not a pointer ({error}); write {{"target": "versions/NAME"}} to it'
            ) from error

    def _create(self, name: str, temporary: Path, sha256: str) -> None:
        """Create an object; if it exists, compare."""
        for attempt in range(_CONFLICT_ATTEMPTS):
            try:
                return self._objects.upload(self._path(name), temporary, sha256=sha256, create=True)
            except ConflictError:
                time.sleep(_CONFLICT_SECONDS * 2**attempt)
            except FileExistsError:
                found = self._digest(name)
                if found == sha256:
                    return None
                if found is not None:
                    raise IntegrityError(
                        f"{self.where(name)}: its SHA-256 is {found}, another writer of the same unit has {sha256}; "
                        "do all workers run the same version? Remove the file and run again"
                    ) from None
        raise StoreError(
            f"{self.where(name)}: other writers interfered with each of {_CONFLICT_ATTEMPTS} attempts; run again"
        )

    def _digest(self, name: str) -> str | None:
        """Return the digest of an object's bytes, None if there is none."""
        try:
            with self.open_local(name) as path:
                return sha256_file(path)
        except FileNotFoundError:
            return None

    def _no_bucket(self, name: str) -> StoreError:
        return StoreError(f"{self.where(name) if name else self._root}: there is no such bucket; create it first")

    def _check_lease(self) -> None:
        for lease in self._leases:
            lease.check()

    def _list(self, folder: str, *, kind: str = "file") -> list[str]:
        """Return the names directly in a folder."""
        with self._errors(folder):
            try:
                found = self._objects.system.ls(self._path(folder), detail=True)
            except FileNotFoundError:
                return []
        # An empty object `FOLDER/`, as consoles make one, is listed as the folder itself.
        return [
            item["name"][len(self._prefix) + 1 :]
            for item in found
            if item["type"] == kind and item["name"].rstrip("/") != self._path(folder)
        ]

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}" if name else self._prefix

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        where = self.where(name) if name else self._root
        with _naming_missing(where), store_errors(where):
            yield


@contextmanager
def _naming_missing(where: str) -> Iterator[None]:
    """Give the error of a store for an object that it does not have the name of the object, as that of a folder has."""
    try:
        yield
    except FileNotFoundError as error:
        if error.filename is not None:
            raise
        raise FileNotFoundError(errno.ENOENT, "there is no such object", where) from error


class _LeaseObject:
    """The lease's object in a store."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        self._store, self._name = store, name

    def version(self) -> str | None:
        status = self._store.status(self._name)
        return None if status is None else str(status.version)

    def read(self) -> bytes:
        return self._store.read_bytes(self._name)

    def write(self, data: bytes, *, expected: str | None) -> str:
        with self._store._errors(self._name):
            return self._store._objects.write(self._store._path(self._name), data, expected=expected)

    def remove(self) -> None:
        with self._store._errors(self._name), suppress(FileNotFoundError):
            self._store._objects.system.rm_file(self._store._path(self._name))
