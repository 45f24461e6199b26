"""Opening and reading input files, local ones without following links, all others through fsspec; what changed."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from schemas.passwords import url_identity
from schemas.places import is_remote
from schemas.reasons import Dead
from schemas.resources import naming_file, raise_own_limit
from transforms.sources.document import DamageError, link_target
from transforms.storage.urls import input_errors, is_web, open_file

_BUFFER_BYTES = 1 << 16
_PART_BYTES = 1 << 20
"""What fsspec asks a web server for at once is more."""

_SECOND = 1_000_000_000
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class NotRegularError(OSError):
    """An input that was a regular file when it was listed and is not one now."""


def open_input(root: str, path: str) -> BinaryIO:
    """Open an input for reading: a local one without following a link or waiting on a pipe, any other through fsspec.

    Raises:
        OSError: If it cannot be opened, NotRegularError if it is not a regular file any more.
        StoreError: If its store fails; then or when it is read.
    """
    if is_remote(root):
        url = f"{root}/{path}"
        with input_errors(url):
            system, full_path = open_file(root, path)
            return _of_store(system, full_path, url)
    descriptor = open_descriptor(root, path)
    return os.fdopen(descriptor, "rb", buffering=_BUFFER_BYTES)


def open_archive(root: str, path: str, *, is_stream: bool) -> BinaryIO:
    """Open an archive as `open_input` does; from a web server that sends no parts of files, as a stream or as a copy.

    Args:
        root: The folder or URL.
        path: The path below it.
        is_stream: It is read from beginning to end.

    Raises:
        OSError: As `open_input` does.
        ResourceError: If there is no space for the copy, a temporary file without a name.
    """
    if not is_web(root):
        return open_input(root, path)
    from transforms.storage.web import sends_parts  # it loads aiohttp, which takes a while

    url = f"{root}/{path}"
    with input_errors(url):
        system, full_path = open_file(root, path)
        known = system.info(full_path)
        size, is_denied = known["size"], not known.get("partial", True)  # then fsspec asks for none
        is_small = is_stream and size is not None and size < _PART_BYTES
        if is_small or (size is not None and not is_denied and sends_parts(system, full_path)):
            return _of_store(system, full_path, url)
        stream = _of_store(system, full_path, url, block_size=0)
    return stream if is_stream else _copied(stream)


class WrappedFile:
    """A file of which another class reads in its own way; everything else goes to the file itself."""

    def __init__(self, file: BinaryIO) -> None:
        """Take the file, which is closed with this one."""
        self._file = file

    def __enter__(self) -> Self:
        """Return this file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the file has
        """Return what the file has."""
        return getattr(self._file, name)


class _StoreFile(WrappedFile):
    """A file whose reads raise an error of its store as one, so that no reader takes it for damage of the file."""

    def __init__(self, file: BinaryIO, url: str, check: Callable[[], None]) -> None:
        super().__init__(file)
        self._url, self._check = url, check

    def read(self, num_bytes: int = -1) -> bytes:
        with input_errors(self._url):
            data = self._file.read(num_bytes)
            self._check()
            return data


def _of_store(system: Any, full_path: str, url: str, **options: int) -> BinaryIO:  # noqa: ANN401 - of fsspec
    file = system.open(full_path, "rb", **options)
    return cast(BinaryIO, _StoreFile(file, url, _length_check(system, full_path, getattr(file, "size", None))))


def _length_check(system: Any, full_path: str, num_bytes: int | None) -> Callable[[], None]:  # noqa: ANN401
    """Return what checks, where a web server sends no more of a file than its size was, that it still is."""
    if num_bytes is None or not is_web(full_path):
        return lambda: None
    from transforms.storage.web import LengthCheck  # it loads aiohttp, which takes a while

    return LengthCheck(system, full_path, num_bytes)


def _copied(stream: BinaryIO) -> BinaryIO:
    folder = Path(tempfile.gettempdir())
    with stream, naming_file(str(folder), folder):
        file = cast(BinaryIO, tempfile.TemporaryFile(dir=folder))  # noqa: SIM115 - for the caller to close
        shutil.copyfileobj(stream, file, _PART_BYTES)
        file.seek(0)
        return file


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


def local_target(root: str, path: str) -> str | None:
    """Return what a link in a local folder leads to, relative to the folder; None if that is outside, or unknown."""
    try:
        return link_target(path, os.readlink(f"{root}/{path}"))  # noqa: PTH115 - names need not be UTF-8
    except OSError:
        return None


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


def local_version(modified: int, changed: int, inode: int) -> str:
    """Return the version of a local file: its times of modification and of change, and its number.

    Programs can set the first time, so that other content has it too, but not the second one, which the system notes.
    Two files that changed at the same moment differ in their number.

    Args:
        modified: In nanoseconds since 1970.
        changed: The same.
        inode: 0 where files may be numbered anew, as in file systems in user space.
    """
    return f"{modified}.{changed}.{inode}"


def file_clock(folder: Path) -> int:
    """Return a moment, in nanoseconds since 1970, before which the system says that all happened to files till now.

    What happens later it says not to be before, except on Linux before 6.13, which notes some milliseconds alike.

    Args:
        folder: Where a file may be made, which is gone afterwards.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        made = os.fstat(file.fileno()).st_ctime_ns
        os.fchmod(file.fileno(), 0o600)  # it was looked at since it was made, so this has a time of its own
        return max(os.fstat(file.fileno()).st_ctime_ns, made + 1)


def count_changed(root: str, files: Iterable[tuple[str, int, str]], since: int) -> int:
    """Return how many files, given as path, size and version, are not what was listed, or may not be read.

    A change within the moments that the system notes alike leaves the version of a file as it was; some file systems
    note whole seconds, or every other one. Of a web server, what it said of the files when it sent them is looked at.
    What another store gives under one version stays the same.

    Args:
        root: The folder.
        files: The files in it.
        since: When reading them began, by `begin_reading`.
    """
    if is_web(root):
        return sum(not _is_sent_as_listed(root, *file) for file in files)
    if is_remote(root):
        return 0
    return sum(not _is_as_listed(f"{root}/{path}", num_bytes, version, since) for path, num_bytes, version in files)


def _is_sent_as_listed(root: str, path: str, num_bytes: int, version: str) -> bool:
    from transforms.storage.web import is_sent_as_listed  # it loads aiohttp, which takes a while

    said = version.removesuffix(url_identity(f"{root}/{path}"))
    return is_sent_as_listed(*open_file(root, path), num_bytes, said)


def begin_reading(root: str, files: Iterable[tuple[str, int, str]], folder: Path) -> int:
    """Return when reading some files begins, for `count_changed`.

    Args:
        root: The folder.
        files: The files in it, as `count_changed` takes them.
        folder: As `file_clock` takes it.
    """
    if is_web(root):
        from transforms.storage.web import forget_sent  # it loads aiohttp, which takes a while

        for path, *_ in files:
            forget_sent(*open_file(root, path))
    return file_clock(folder)


def _is_as_listed(path: str, num_bytes: int, version: str, since: int) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    inode = 0 if version.endswith(".0") else found.st_ino
    is_listed = (found.st_size, local_version(found.st_mtime_ns, found.st_ctime_ns, inode)) == (num_bytes, version)
    noted_alike = 0 if found.st_ctime_ns % _SECOND else 2 * _SECOND
    return is_listed and found.st_ctime_ns + noted_alike < since and os.access(path, os.R_OK)
