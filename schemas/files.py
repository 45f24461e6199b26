"""Files that a command writes outside of its output folder: pages, tables, masks, locks of a vocabulary.

A file is there whole or not at all, whenever the process is killed and whatever the disk refuses. It is written
without a name (`O_TMPFILE`), flushed to disk, named `.NAME.part` and renamed. A kill between the last two, and any kill
on a file system without unnamed files, leaves that part, which the next write of the same file replaces.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from schemas.errors import ConfigError

_NO_SYMLINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
"""Errors of a file system without symbolic links."""

_NOT_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
"""Errors of file systems without unnamed files, and of systems without the names of descriptors."""


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file; not those of a pipe that nobody may write to, or of a device that has no end.

    A pipe below `/dev`, as a shell makes it of `<(…)`, has someone who writes.

    Raises:
        OSError: If it cannot be read, or is not a file.
    """
    if path.exists() and not (path.is_file() or path.is_dir() or (path.is_fifo() and path.is_relative_to("/dev"))):
        raise OSError(errno.EINVAL, "a pipe or a device, not a file", str(path))
    return path.read_bytes()


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole, with the permissions that the umask leaves; a link is followed to the file it names.

    Args:
        path: The file; its folder must exist.
        data: Its content.

    Raises:
        OSError: Naming the file; what was there before is unchanged.
    """
    with whole_file(path) as file:
        file.write(data)


def write_new_file(path: Path, data: bytes) -> None:
    """Write a file whole, unless there is something at its path; the arguments are those of `write_file`.

    Raises:
        FileExistsError: If there is.
        OSError: Naming the file, which is not there.
    """
    with whole_file(path, replace=False) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path, *, replace: bool = True) -> Iterator[BinaryIO]:
    """Yield a stream that becomes the file at a path once the block has ended well, as `write_file` writes it.

    Args:
        path: The file.
        replace: Whether it may be there already.

    Raises:
        FileExistsError: If it is there and may not be.
        OSError: Naming the file; what was there before is unchanged.
    """
    target = path.resolve() if path.is_symlink() else path
    try:
        if not replace and os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        if target.exists() and not target.is_file():
            with target.open("wb") as file:  # a pipe or a device, such as /dev/stdout: there is nothing to replace
                yield file
            return
        part = target.with_name(f".{target.name}.part")
        try:
            with _open_part(part) as file:
                yield file
            if replace:
                part.replace(target)
            else:
                _rename_to_new(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def part_folder(target: Path) -> Iterator[Path]:
    """Make an empty folder beside `target`, to be renamed to it; it goes if it is not.

    A kill leaves it, and the next call for the same target empties it. Only one process has it at a time.

    Raises:
        OSError: If a link is in its place, behind which nothing may be removed.
        BlockingIOError: If another process makes the same target.
    """
    part = target.with_name(f".{target.name}.part")
    part.mkdir(exist_ok=True)
    descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno == errno.EWOULDBLOCK:
                raise
            # A file system without locks of folders: only the rename decides.
        if not _is_open(part, descriptor):
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), str(part))
        for left in part.iterdir():
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()
        try:
            yield part
        finally:
            if _is_open(part, descriptor):
                shutil.rmtree(part, ignore_errors=True)
    finally:
        os.close(descriptor)


@contextmanager
def new_folder(target: Path, refuse: Callable[[str], Exception]) -> Iterator[Path]:
    """Make a folder under another name, which gets its own once the block has ended well.

    Args:
        target: The folder; it may be there if it is empty.
        refuse: Returns the error to raise for a reason.

    Raises:
        Exception: What `refuse` returns: another process makes the folder, or made it meanwhile.
    """
    try:
        with part_folder(target) as part:
            yield part
            try:
                part.replace(target)
            except OSError as error:
                raise refuse("it exists by now; name a new folder") from error
    except BlockingIOError as error:
        raise refuse("another command makes it; wait for it, or name a new folder") from error


def make_symlink(link: Path, target: str) -> None:
    """Make a symbolic link.

    Args:
        link: The new link.
        target: What it names, which need not exist.

    Raises:
        ConfigError: If the file system has no symbolic links.
    """
    try:
        link.symlink_to(target)
    except OSError as error:
        if error.errno not in _NO_SYMLINKS:
            raise
        raise ConfigError(f"{link.parent}: its file system has no symbolic links; take a folder on another") from error


def _rename_to_new(part: Path, target: Path) -> None:
    try:
        target.hardlink_to(part)  # which fails where a rename would replace
    except FileExistsError:
        raise
    except OSError:  # a file system without such links
        part.rename(target)
    else:
        part.unlink()


def _is_open(path: Path, descriptor: int) -> bool:
    """Return whether a name still leads to what is open."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


@contextmanager
def _open_part(part: Path) -> Iterator[BinaryIO]:
    """Yield a stream that may be read too: numpy writes by itself to others, and does not say why it fails."""
    is_named = False
    try:
        descriptor = os.open(part.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno not in _NOT_UNNAMED:
            raise
        if part.is_symlink():  # which would be written through
            part.unlink()
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor, is_named = os.open(part, flags, 0o666), True
    with os.fdopen(descriptor, "w+b") as file:
        yield file
        file.flush()
        os.fsync(descriptor)
        if not is_named:
            part.unlink(missing_ok=True)
            # Naming any folder makes it the call that follows the link; an absolute path ignores which.
            os.link(f"/proc/self/fd/{descriptor}", part, src_dir_fd=descriptor, follow_symlinks=True)
