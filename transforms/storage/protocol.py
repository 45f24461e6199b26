"""What OUT asks of the place where it stands: a folder of a file system, or a prefix of an object store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa

from transforms.storage.log import Log

CACHE = ".cache"
LOCK = ".lock"

_KEYED = re.compile(r"^(documents|counts/parts|tokens|proofs|shards|sequences)/[^/]*-[0-9a-f]{64}")


class Status(NamedTuple):
    """What a place says of a file without reading it.

    Attributes:
        num_bytes: Its size.
        version: What changes when the file does: a modification time in nanoseconds, an entity tag.
        sha256: The digest that its publisher wrote beside it, where the place keeps such; None if there is none.
    """

    num_bytes: int
    version: int | str
    sha256: str | None = None


class Holder(NamedTuple):
    """Who holds a lock.

    Attributes:
        owner: Host and process, for people.
        expires: When it ends unless it is renewed, in UTC by its owner's clock; None where it ends with its process.
    """

    owner: str
    expires: str | None = None


class Lock(AbstractContextManager[object], Protocol):
    """A lock that is held, to the end of a `with` block or until it is released."""

    def release(self) -> object:
        """Give it back."""


class Store(Protocol):
    """A place of named files; names are relative to it, with slashes."""

    poll_seconds: float
    """How long to wait between looks for new files."""

    at_once: int
    """How many looks at files are taken at once: they take time where each is a request."""

    def where(self, name: str) -> str:
        """Return what messages call a file."""

    def temporary(self) -> Path:
        """Return a local folder for files that have no name yet; it exists."""

    def local_folder(self, name: str) -> Path:
        """Return a local folder for what is no part of the place; it may not exist."""

    def status(self, name: str) -> Status | None:
        """Return the status of a file, None if there is none."""

    def present(self, names: Iterable[str]) -> set[str]:
        """Return those names that files have."""

    def read_bytes(self, name: str) -> bytes:
        """Return a file's bytes; FileNotFoundError if there is none."""

    def open_local(self, name: str) -> AbstractContextManager[Path]:
        """Give a file as a local path, not to be written to; FileNotFoundError if there is none."""

    def open_local_folder(self, below: str) -> AbstractContextManager[Path]:
        """Give a folder and the files in it as a local one, not to be written to."""

    def open_ranges(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """Give a file to be read in parts; FileNotFoundError if there is none."""

    def put(self, name: str, temporary: Path, *, sha256: str) -> None:
        """Give a finished local file, which is gone then, its name: all of it or nothing is seen."""

    def files(self, below: str) -> Iterator[str]:
        """Yield the names below a folder, sorted within each; without the cache and the lock where all is asked for."""

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""

    def remove_folder(self, below: str) -> None:
        """Remove all files below a folder."""

    def withdraw(self, names: Iterable[str]) -> None:
        """Make sure that units may publish these files again, whatever stands in their place."""

    def clear_temporary(self) -> None:
        """Remove what a run that died left without a name; only for the holder of the lock."""

    def lock(self) -> Lock:
        """Take the one-writer lock."""

    def holder(self) -> Holder | None:
        """Return who holds the lock, None if nobody does."""

    def open_log(self, name: str) -> Log:
        """Begin a log."""

    def take(self, name: str, source: str) -> None:
        """Give a file of another place of this kind, by what that calls it, a name here too; leave what is there."""

    def folders(self, below: str) -> list[str]:
        """Return the names of the folders directly below a folder, sorted."""

    def pointed(self, name: str) -> str | None:
        """Return what a pointer names; None if there is none."""

    def point(self, name: str, target: str, *, expected: str | None) -> None:
        """Let a pointer name another thing, at once, if it names what is expected.

        Raises:
            LockedError: If it does not.
        """


def is_keyed(name: str) -> bool:
    """Tell whether a file's name holds the key of its unit, so that whoever writes it writes the same bytes.

    Example:
        >>> is_keyed(f"tokens/part-{64 * 'a'}.parquet"), is_keyed("tokenizer/manifest.json")
        (True, False)
    """
    return _KEYED.match(name) is not None
