"""What OUT needs from the place where it is: `Store`, and beneath it `Objects` for object stores.

`Store` has two implementations: `LocalStore`, a folder of a file system, and `ObjectStore`, a prefix of any object
store. What differs between object stores is `Objects`. To add one, `az://` say, write a class with the members of
`Objects` in a module beside `s3` and `gcs`, and give its scheme in `OBJECTS` (`urls`) and in `OUTPUT_PACKAGES`
(`schemas.places`); nothing else knows the schemes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from transforms.storage.log import Log

CACHE = ".cache"
LOCK = ".lock"

_KEYED = re.compile(r"^(?:units/)?(documents|counts/parts|tokens|proofs|shards|sequences)/[^/]*-[0-9a-f]{64}")


class ConflictError(Exception):
    """A conditional write that lost: the object is not, or no longer, what was expected."""


class Status(NamedTuple):
    """What a place says of a file without reading it.

    Attributes:
        num_bytes: Its size.
        version: What changes when the file does: a modification time in nanoseconds, an entity tag, a generation.
        sha256: The digest that its publisher stored as metadata; None if there is none.
    """

    num_bytes: int
    version: int | str
    sha256: str | None = None


class Holder(NamedTuple):
    """Who holds a lock.

    Attributes:
        owner: Host and process, for people.
        expires: When it expires unless renewed, in UTC by its owner's clock; None where it ends with its process.
        token: Names this taking of the lock: random.
    """

    owner: str
    expires: str | None = None
    token: str = ""


class Lock(AbstractContextManager[object], Protocol):
    """A lock that was taken; it is released at the end of a `with` block or by `release`."""

    token: str
    """Names this taking of the lock, as `Holder` has it."""

    def release(self) -> object:
        """Release it."""


class Store(Protocol):
    """A place of named files; names are relative to it, with slashes."""

    poll_seconds: float
    """How long to wait between looks for new files."""

    max_requests: int
    """How many files are looked at concurrently: more than one where each look is a request."""

    overwrites: bool
    """Whether a file whose name contains a unit's key can be published again without removing it first."""

    def where(self, name: str) -> str:
        """Return the path or URL of a file, for messages."""

    def temporary(self) -> Path:
        """Return an existing local folder for files that are not published yet."""

    def local_folder(self, name: str) -> Path:
        """Return a local folder for files that are not part of the place, such as logs; it may not exist."""

    def status(self, name: str) -> Status | None:
        """Return the status of a file, None if there is none."""

    def present(self, names: Iterable[str]) -> set[str]:
        """Return those of the names that are files."""

    def read_bytes(self, name: str) -> bytes:
        """Return a file's bytes; FileNotFoundError if there is none."""

    def open_local(self, name: str) -> AbstractContextManager[Path]:
        """Open a file as a read-only local path; FileNotFoundError if there is none."""

    def open_local_folder(self, below: str) -> AbstractContextManager[Path]:
        """Open a folder and the files in it as a read-only local folder."""

    def open_ranges(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """Open a file for random access; FileNotFoundError if there is none."""

    def put(self, name: str, temporary: Path, *, sha256: str) -> None:
        """Publish a finished local file under a name, atomically, and remove the local file."""

    def files(self, below: str = "") -> Iterator[str]:
        """Yield the names below a folder, sorted within each; below "", all but the cache and the lock."""

    def strangers(self, below: str = "") -> Iterator[str]:
        """Yield the names of what is neither a file nor a folder: links to folders or to nothing, pipes, devices."""

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""

    def remove_folder(self, below: str) -> None:
        """Remove all files below a folder."""

    def clear_temporary(self) -> None:
        """Remove the unpublished files of a crashed run; only for the holder of the lock."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a small file of the cache if there is none of that name; False if there is one."""

    def lock(self, name: str = LOCK) -> Lock:
        """Take the one-writer lock, or another one; after a crash it becomes free, at once or after a while.

        Raises:
            LockedError: If another process holds it.
            ConfigError: If the place cannot be written.
        """

    def holder(self, name: str = LOCK) -> Holder | None:
        """Return who holds a lock, None if nobody does; on an object store that may be a crashed run."""

    def open_log(self, name: str) -> Log:
        """Begin a log, which is published while it grows."""

    def link(self, name: str, source: str) -> None:
        """Name a file of another place of this kind, given by its path or URL, here too; do nothing if it exists."""

    def folders(self, below: str) -> list[str]:
        """Return the names of the folders directly below a folder, sorted."""

    def read_pointer(self, name: str) -> str | None:
        """Return the target of a pointer (a symbolic link, a small object); None if there is none.

        Raises:
            IntegrityError: If the name is not a pointer.
        """

    def set_pointer(self, name: str, target: str, *, expected: str | None) -> None:
        """Change the target of a pointer atomically, if its present target is the expected one (None: no pointer).

        Raises:
            LockedError: If it is another: another process has changed it.
        """


class Objects(Protocol):
    """What an object store has to offer, by the paths that fsspec uses (`bucket/key`)."""

    @property
    def system(self) -> Any:  # noqa: ANN401 - fsspec has no annotations
        """The fsspec file system of this process, without a cache of listings; it retries what fails for a while."""

    def status(self, path: str) -> Status | None:
        """Return size, version and the digest that `upload` stored; None if there is no object."""

    def download(self, path: str, file: Path) -> None:
        """Download an object to a local file; FileNotFoundError if there is none."""

    def upload(self, path: str, file: Path, *, sha256: str, create: bool) -> None:
        """Upload a file, with its digest as metadata.

        Raises:
            FileExistsError: If it is to be created and exists.
            ConflictError: If others write it at the same time: try again.
        """

    def write(self, path: str, data: bytes, *, expected: str | None) -> str:
        """Write an object if it has the expected version (None: if there is none), and return the new one.

        Raises:
            ConflictError: If it has not.
        """

    def abort_uploads(self, below: str) -> None:
        """Discard unfinished uploads below a path; do nothing where a store has no such thing."""

    def explain(self, error: Exception) -> str | None:
        """Return what is wrong with the credentials and what to do, in one line; None for errors of other kinds."""


def is_keyed(name: str) -> bool:
    """Tell whether a file's name contains the key of its unit: every writer of it writes the same bytes.

    Example:
        >>> is_keyed(f"tokens/part-{64 * 'a'}.parquet"), is_keyed("tokenizer/manifest.json")
        (True, False)
    """
    return _KEYED.match(name) is not None
