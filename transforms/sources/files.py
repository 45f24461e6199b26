"""Opening and reading input files: local ones without following links, all others through fsspec."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, cast

from schemas.places import is_remote
from schemas.reasons import Dead
from schemas.resources import raise_own_limit
from transforms.sources.document import DamageError
from transforms.storage.urls import input_errors, open_file

_BUFFER_BYTES = 1 << 16
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class NotRegularError(OSError):
    """An input that was a regular file when it was listed and is not one now."""


def open_input(root: str, path: str) -> BinaryIO:
    """Open an input for reading: a local one without following a link or waiting on a pipe, any other through fsspec.

    Raises:
        OSError: If it cannot be opened, NotRegularError if it is not a regular file any more.
    """
    if is_remote(root):
        system, full_path = open_file(root, path)
        return cast(BinaryIO, system.open(full_path, "rb"))
    descriptor = open_descriptor(root, path)
    return os.fdopen(descriptor, "rb", buffering=_BUFFER_BYTES)


def naming_input(root: str, path: str) -> AbstractContextManager[None]:
    """Return a block in which errors of a store name the file that is read from it.

    Raises:
        StoreError: As `input_errors` does.
    """
    return input_errors(f"{root}/{path}") if is_remote(root) else nullcontext()


def open_descriptor(root: str, path: str) -> int:
    """Open a local input and return its descriptor."""
    descriptor = os.open(f"{root}/{path}", _OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(errno.ENOENT, "no regular file any more")
    return descriptor


def os_error_reason(error: OSError) -> tuple[Dead, str]:
    """Return the reason of the ledger for an error of the file system, and its name.

    Raises:
        ResourceError: If this process may not open more files, or has no more memory: no fault of the input.
    """
    raise_own_limit(error)
    gone = isinstance(error, FileNotFoundError | NotADirectoryError | NotRegularError) or error.errno == errno.ELOOP
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return (Dead.VANISHED if gone else Dead.UNREADABLE), name


def read_piece(file: BinaryIO, num_bytes: int) -> bytes:
    """Return at most `num_bytes`, none at the end.

    Raises:
        DamageError: If the file system fails.
    """
    try:
        return file.read(num_bytes)
    except OSError as error:
        raise DamageError(*os_error_reason(error)) from error
