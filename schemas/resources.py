"""What the machine refuses: space, a size of a file, descriptors, memory, a folder for a file; in one line each."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from schemas.errors import CppmillError, ResourceError
from schemas.printing import one_line

_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS, errno.EIO)

_OWN_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)

_MISPLACED = (errno.EISDIR, errno.ELOOP, errno.ENOTDIR)

_UNREACHABLE = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EEXIST, errno.ENXIO, errno.EXDEV)

_UNMAPPED = "failed to map segment"
"""What the loader says of a library for which there is no memory."""

_NO_THREAD = re.compile(r"^can't start new thread$|^cannot start \d+ threads?\b")
"""What Python and the native core say if the machine starts no more threads."""

LEAST_ADDRESS_SPACE = 3 << 30
"""Bytes of address space with which small runs end well; much of it is reserved and never used."""

LEAST_DATA = 512 << 20
"""Bytes of data with which no library ends the process by itself, because it cannot even begin."""


_MANY_PROCESSES = 1_000
"""A limit with which nobody wants to hinder threads."""


def check_limits(where: str) -> None:
    """Refuse to begin where the limit of address space, data or threads would end this process without a word.

    Args:
        where: What is about to be made, for the message.

    Raises:
        ResourceError: Naming the limit and what is needed.
    """
    _check_limit(where, resource.RLIMIT_AS, "the address space is", "-v", LEAST_ADDRESS_SPACE)
    _check_limit(where, resource.RLIMIT_DATA, "data are", "-d", LEAST_DATA)
    _check_threads(where)


def _check_limit(where: str, kind: int, what: str, flag: str, least: int) -> None:
    limit = resource.getrlimit(kind)[0]
    if limit != resource.RLIM_INFINITY and limit < least:
        raise ResourceError(
            f"{where}: {what} limited to {limit:,} bytes (ulimit {flag} {limit >> 10}); at least "
            f"{least:,} are needed (ulimit {flag} {least >> 10}), for large inputs more"
        )


def _check_threads(where: str) -> None:
    """Start as many threads as Arrow will, if few processes are allowed; without one it ends the process, or waits."""
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if limit == resource.RLIM_INFINITY or limit > _MANY_PROCESSES:
        return
    import pyarrow as pa  # slow, and seldom needed

    may_end, started, needed = Event(), [], pa.cpu_count() + pa.io_thread_count()
    try:
        for _ in range(needed):
            thread = Thread(target=may_end.wait)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise ResourceError(
            f"{where}: {len(started)} threads can be started (ulimit -u: {limit:,}); {needed} are needed"
        ) from error
    finally:
        may_end.set()
        for thread in started:
            thread.join()


_IN_TRACEBACK = re.compile(
    r"^(?:\w+\.)*\w*Error: \[Errno (\d+)\] (.*)$|^(?:\w+\.)*(?:ArrowMemoryError|MemoryError)\b.*$", re.M
)


@contextmanager
def naming_file(where: str, temporary: Path) -> Iterator[None]:
    """Turn what the machine refuses in the block, which writes a file, into an error that names it.

    Args:
        where: The file, as a person knows it.
        temporary: Where its bytes go until it is published.

    Raises:
        ResourceError: Naming the file, the place and what it needs.
    """
    try:
        yield
    except (OSError, MemoryError) as error:
        reason = explain_refusal(error, where=where, place=temporary)
        if reason is None:
            raise
        raise ResourceError(reason) from error


@contextmanager
def explaining_refusals() -> Iterator[None]:
    """Turn what the machine refuses in the block, or in a function that this decorates, into one error of one line.

    Raises:
        ResourceError: What `explain_refusal` says.
    """
    try:
        yield
    except (OSError, MemoryError, RuntimeError) as error:
        reason = None if isinstance(error, CppmillError) else explain_refusal(error)
        if reason is None:
            raise
        raise ResourceError(reason) from error


def raise_own_limit(error: BaseException) -> None:
    """Raise an error if this process may not open more files, or has no more memory: no fault of the file it reads.

    Raises:
        ResourceError: If it is one of these.
    """
    if isinstance(error, ResourceError):
        raise error
    if isinstance(error, OSError) and error.errno in _OWN_LIMITS:
        raise ResourceError(explain_refusal(error) or str(error)) from error


def explain_refusal(error: BaseException, *, where: str = "", place: Path | None = None) -> str | None:
    """Return what the machine refused and what to do about it, in one line; None for errors of other kinds.

    Args:
        error: The error.
        where: The file that is concerned, where the error does not name it.
        place: A file or folder on the file system that is concerned.
    """
    if isinstance(error, MemoryError) or _UNMAPPED in str(error):
        return _describe(errno.ENOMEM, where, place)
    if _NO_THREAD.search(str(error)) and isinstance(error, OSError | RuntimeError):
        return _describe(errno.EAGAIN, where, place)
    if not isinstance(error, OSError) or error.errno not in _NUMBERS + _MISPLACED:
        return None
    name = where or str(error.filename2 or error.filename or "")  # of a copy, the first is what it reads
    return _describe(error.errno, name, place or (Path(name) if name else None))


def explain_unreachable(error: BaseException) -> str | None:
    """Return in one line which path may not be used, is taken or too long, or that relative ones lead nowhere, or None.

    Code that reads sources expects such errors and goes on, so they are explained only where a command ends.
    """
    if isinstance(error, FileNotFoundError) and _is_adrift():
        return "the working folder was removed; change to one that is there, and run again"
    if not isinstance(error, OSError) or error.errno not in _UNREACHABLE:
        return None
    name = error.filename2 or error.filename
    return _describe(error.errno, one_line(os.fsdecode(name)), None) if isinstance(name, str | bytes) and name else None


def _is_adrift() -> bool:
    """Return whether the folder in which this process works is gone."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


def find_refusal(traceback: str) -> str | None:
    """Return what both say of the last error in the text of a traceback, as workers of an engine send it."""
    found = list(_IN_TRACEBACK.finditer(traceback))
    if not found:
        return None
    number, text = found[-1].groups()
    if number is None:
        return _describe(errno.ENOMEM, "", None)
    named = re.search(r": '([^']*)'", text)
    if int(number) not in _NUMBERS + (_UNREACHABLE if named else ()):
        return None
    return _describe(int(number), named[1] if named else "", Path(named[1]) if named else None)


def _describe(number: int, where: str, place: Path | None) -> str:
    begin = f"{where}: " if where else ""
    if number in (errno.ENOSPC, errno.EDQUOT):
        return f"{begin}no space left{_space(place)}; free some there, or name another place, and run again"
    if number == errno.EFBIG:
        limit = _limit(resource.RLIMIT_FSIZE)
        return f"{begin}a file may have no more bytes here (ulimit -f: {limit}); raise that, and run again"
    if number in (errno.EMFILE, errno.ENFILE):
        limit = _limit(resource.RLIMIT_NOFILE)
        return (
            f"{begin}no more files can be open at once (ulimit -n: {limit}); raise that to 1,024, or give --threads 1"
        )
    if number == errno.EAGAIN:
        limit = f"ulimit -u: {_limit(resource.RLIMIT_NPROC)}, {_limits_of_memory()}"
        return f"{begin}no more threads can be started ({limit}); raise that, or give --threads 1"
    if number == errno.ENOMEM:
        limit = f"ulimit {_limits_of_memory()}"
        return f"{begin}no more memory ({limit}); give --threads 1 and less --memory-bytes, or more memory"
    if number in (errno.EEXIST, errno.ENXIO):
        return f"{begin}something else is in the place of a folder or a file; remove it, and run again"
    if number == errno.EXDEV:
        return f"{begin}on another file system than the rest of its folder; let the whole folder be on one"
    if number == errno.ENOTDIR:
        return f"{begin}a file is in the place of a folder of this path; remove it, and run again"
    if number in _MISPLACED:
        return f"{begin}a folder, or a link to itself, is in the place of a file; remove it, and run again"
    if number == errno.ENAMETOOLONG:
        return f"{begin}the path, or a name in it, is too long for the file system; name another"
    if number in _UNREACHABLE:
        return f"{begin}permission denied to {_user()}; change its mode or that of its folders, or name another place"
    if number == errno.EROFS:
        return f"{begin}the file system cannot be written; name another place"
    return f"{begin}the disk failed (input/output error); check it, and run again"


def _space(place: Path | None) -> str:
    """Return what is free at a place, if that is known."""
    folder = place
    while folder is not None and not folder.is_dir():
        folder = folder.parent if folder.parent != folder else None
    if folder is None:
        return ""
    disk, status = shutil.disk_usage(folder), os.statvfs(folder)
    inodes = f" and {status.f_favail:,} of {status.f_files:,} inodes" if status.f_files else ""  # some count none
    written = place.stat().st_size if place is not None and place.is_file() else 0
    done = f", after {written:,} bytes of this file" if written else ""
    return f" in {folder}: {disk.free:,} of {disk.total:,} bytes{inodes} are free{done}"


def _user() -> str:
    """Return who this process is, as `chown` and `ls -n` take and show it."""
    return f"user {os.geteuid()}"


def _limits_of_memory() -> str:
    return f"-v: {_limit(resource.RLIMIT_AS)}, -d: {_limit(resource.RLIMIT_DATA)}"


def _limit(kind: int) -> str:
    value = resource.getrlimit(kind)[0]
    return "unlimited" if value == resource.RLIM_INFINITY else f"{value:,}"
