"""Input files: neither links nor pipes are opened, and errors have a reason of the ledger."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from schemas.errors import ResourceError
from schemas.options import IngestOptions
from schemas.reasons import Dead
from transforms.sources.files import NotRegularError, count_changed, local_version, open_input, os_error_reason
from transforms.sources.listing import list_inputs
from transforms.sources.loose import projects_of


def test_links_and_pipes_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "none"):
        with pytest.raises(OSError) as raised:
            open_input(str(tmp_path), name)
        assert os_error_reason(raised.value)[0] == Dead.VANISHED
    with pytest.raises(NotRegularError):
        open_input(str(tmp_path), "pipe")
    with open_input(str(tmp_path), "real") as file:
        assert file.read() == b"x"


def test_a_denied_file_is_unreadable() -> None:
    assert os_error_reason(PermissionError(errno.EACCES, "denied")) == (Dead.UNREADABLE, "EACCES")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_what_this_process_lacks_is_no_fault_of_a_file(number: int) -> None:
    with pytest.raises(ResourceError, match="no more"):
        os_error_reason(OSError(number, os.strerror(number), "a.cpp"))


@pytest.mark.parametrize(("changed", "seconds"), [(7_000_000_000, 2), (7_000_000_001, 0)])
def test_a_file_may_have_changed_again_within_the_whole_seconds_that_some_systems_note(
    changed: int, seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.cpp").write_bytes(b"x")
    status = SimpleNamespace(st_size=1, st_mtime_ns=5, st_ctime_ns=changed, st_ino=3)
    monkeypatch.setattr(os, "lstat", lambda _: status)
    for inode in (0, 3):
        files = [("a.cpp", 1, local_version(5, changed, inode))]
        began = changed + seconds * 1_000_000_000
        assert [count_changed(str(tmp_path), files, since) for since in (began, began + 1)] == [1, 0]
    assert count_changed(str(tmp_path), [("a.cpp", 1, local_version(5, changed, 4))], 9_000_000_009) == 1


def test_the_version_of_a_file_tells_it_from_another_one(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_bytes(b"x")
    found = (tmp_path / "a.cpp").lstat()
    (listed,) = list_inputs([str(tmp_path)], IngestOptions()).inputs
    times = found.st_mtime_ns, found.st_ctime_ns
    assert listed.version in (local_version(*times, found.st_ino), local_version(*times, 0))


def test_the_project_of_a_file_is_its_first_folder_or_the_source() -> None:
    inputs = [(path, 0, "", "") for path in ("a.cpp", "p/a.cpp", "/a.cpp", "//p/a.cpp")]
    assert list(projects_of("source", inputs)) == ["source", "p", "source", "source"]
