"""Input files: neither links nor pipes are opened, and errors have a reason of the ledger."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from schemas.errors import ResourceError
from schemas.reasons import Dead
from transforms.sources.files import NotRegularError, open_input, os_error_reason


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
