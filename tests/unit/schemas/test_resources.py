"""What the machine refuses, in one line."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.console.failures import find_user_error
from schemas.errors import ExitCode, ResourceError
from schemas.resources import LEAST_ADDRESS_SPACE, LEAST_DATA, check_limits, explain_refusal
from transforms.storage.folder import OutputFolder


def test_a_file_of_out_that_outgrows_a_limit_is_named_with_the_limit(
    tmp_path: Path, limited: Callable[[int, int], None]
) -> None:
    def write(path: Path) -> int:
        pq.write_table(pa.table({"a": [str(number) * 9 for number in range(9999)]}), path)
        return 9999

    out = OutputFolder(tmp_path / "out")
    limited(resource.RLIMIT_FSIZE, 1000)
    with pytest.raises(ResourceError) as found:
        out.publish("tokens/part-0.parquet", write)
    assert str(found.value) == (
        f"{tmp_path}/out/tokens/part-0.parquet: a file may have no more bytes here (ulimit -f: 1,000); raise that, and "
        "run again"
    )
    assert not list(tmp_path.rglob("*.parquet"))
    assert not list(out.temporary.iterdir())


REFUSALS = [
    (OSError(errno.ENOSPC, "No space left on device", "/tmp/not-there/b"), "/tmp/not-there/b: no space left in /tmp: "),
    (
        OSError(errno.ENOSPC, "No space left on device", "/src/a", None, "/tmp/not-there/b"),
        "/tmp/not-there/b: no space left in /tmp: ",
    ),
    (OSError(errno.EMFILE, "Too many open files", "x.cpp"), "x.cpp: no more files can be open at once (ulimit -n: "),
    (MemoryError(), "no more memory (ulimit -v: "),
    (pa.ArrowMemoryError("malloc of size 9 failed"), "no more memory (ulimit -v: "),
    (RuntimeError("can't start new thread"), "no more threads can be started (ulimit -u: "),
    (OSError("cannot start 16 threads: Resource temporarily unavailable"), "no more threads can be started (ulimit"),
    (ImportError("libarrow.so: failed to map segment from shared object"), "no more memory (ulimit -v: "),
    (
        RuntimeError("Traceback\nOSError: [Errno 28] No space left: '/tmp/not-there/b'\n"),
        "/tmp/not-there/b: no space left in /tmp: ",
    ),
    (RuntimeError("Traceback\n  File\nMemoryError\n"), "no more memory (ulimit -v: "),
    (PermissionError(errno.EACCES, "Permission denied", "/a/b\nc"), "/a/b\\nc: permission denied to user "),
    (PermissionError(errno.EPERM, "Operation not permitted", b"/a"), "/a: permission denied to user "),
    (OSError(errno.ENAMETOOLONG, "File name too long", "/a"), "/a: the path, or a name in it, is too long for"),
    (RuntimeError("Traceback\nPermissionError: [Errno 13] Permission denied: '/a'\n"), "/a: permission denied to user"),
]


@pytest.mark.parametrize(("error", "begin"), REFUSALS, ids=[repr(error)[:40] for error, _ in REFUSALS])
def test_a_refusal_is_one_line_that_says_what_to_do(error: Exception, begin: str) -> None:
    found = find_user_error(error)
    assert found is not None
    assert found.message.startswith(begin)
    assert "\n" not in found.message
    assert found.exit_code is ExitCode.FAILED_CHECK


@pytest.mark.parametrize(("inodes", "said"), [(50, " bytes and 0 of 50 inodes are free; "), (0, " bytes are free; ")])
def test_a_file_system_without_inodes_does_not_seem_to_have_space(
    inodes: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_files=inodes, f_favail=0))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=900, total=1000))
    found = explain_refusal(OSError(errno.ENOSPC, "No space left on device", "/tmp/a"))
    assert found is not None
    assert f": 900 of 1,000{said}" in found


def test_a_limit_of_the_address_space_is_named_before_anything_is_done(limited: Callable[[int, int], None]) -> None:
    limited(resource.RLIMIT_AS, LEAST_ADDRESS_SPACE - 1)
    with pytest.raises(ResourceError, match=r"^out: the address space is limited to 3,221,225,471 bytes"):
        check_limits("out")


def test_a_limit_of_data_is_named_before_anything_is_done(limited: Callable[[int, int], None]) -> None:
    limited(resource.RLIMIT_DATA, LEAST_DATA - 1)
    with pytest.raises(ResourceError, match=r"^out: data are limited to 536,870,911 bytes \(ulimit -d 524287\)"):
        check_limits("out")


def test_a_limit_of_threads_is_named_before_anything_is_done() -> None:
    code = (
        # What is loaded late is loaded first: the other user may not be able to read it, nor this Python.
        "import os, pyarrow, resource, schemas.passwords; from schemas.resources import check_limits; "
        "resource.setrlimit(resource.RLIMIT_NPROC, (4, 4)); os.getuid() or os.setuid(54321); check_limits('out')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = re.search(r"Error: out: (\d) threads can be started \(ulimit -u: 4\); (\d+) are needed$", done.stderr)
    assert said is not None, done.stderr
    assert int(said[1]) < 4 < int(said[2])


def test_memory_that_the_core_does_not_get_ends_in_one_line() -> None:
    code = (
        "import resource, cppmill_core; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
        "cppmill_core.split('cpp-words-1', b'a ' * (1 << 27))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: no more memory: ")


def test_other_errors_are_no_refusals() -> None:
    assert explain_refusal(OSError(errno.ENOENT, "No such file", "a")) is None
    assert find_user_error(RuntimeError("OSError: [Errno 2] No such file")) is None


def test_a_working_folder_that_is_gone_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_user_error(FileNotFoundError(errno.ENOENT, "No such file")) is None
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    found = find_user_error(FileNotFoundError(errno.ENOENT, "No such file"))
    assert found is not None
    assert found.message == "the working folder was removed; change to one that is there, and run again"


def test_what_is_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    place = tmp_path / "events"
    place.touch()
    with pytest.raises(FileExistsError) as found:
        place.mkdir()
    failure = find_user_error(found.value)
    assert failure is not None
    assert failure.message == f"{place}: something else is in the place of a folder or a file; remove it, and run again"
    with pytest.raises(NotADirectoryError) as below:
        (place / "a.jsonl").read_bytes()
    assert explain_refusal(below.value) == (
        f"{place}/a.jsonl: a file is in the place of a folder of this path; remove it, and run again"
    )
