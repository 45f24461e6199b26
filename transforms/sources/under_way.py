"""How much of its input each unit that is under way in this process has read, for people who watch it.

A unit may be one archive of many gigabytes. What other processes read is not known here.
"""

from __future__ import annotations

import threading
from typing import BinaryIO, cast

from transforms.sources.files import WrappedFile

_LOCK = threading.Lock()
_READ: dict[str, int] = {}


def read_bytes() -> dict[str, int]:
    """Return the bytes that were read since `clear`, by the key of the unit."""
    with _LOCK:
        return dict(_READ)


def clear() -> None:
    """Forget all units."""
    with _LOCK:
        _READ.clear()


def counted(file: BinaryIO, key: str) -> BinaryIO:
    """Return a file whose reads count for a unit."""
    return cast(BinaryIO, _CountedFile(file, key))


class _CountedFile(WrappedFile):
    """A file that counts what is read of it."""

    def __init__(self, file: BinaryIO, key: str) -> None:
        super().__init__(file)
        self._key = key

    def read(self, num_bytes: int = -1) -> bytes:
        data = self._file.read(num_bytes)
        with _LOCK:
            _READ[self._key] = _READ.get(self._key, 0) + len(data)
        return data
