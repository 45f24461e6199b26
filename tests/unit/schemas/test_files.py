"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas import files
from schemas.files import part_folder, read_regular, whole_file, write_file


@pytest.fixture(params=["unnamed files", "none"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system with unnamed files, and one without."""
    if request.param == "none":
        monkeypatch.setattr(files.os, "O_TMPFILE", os.O_DIRECTORY, raising=True)  # opened for writing: EISDIR


@pytest.mark.usefixtures("kind")
def test_a_file_has_the_permissions_that_the_umask_leaves_and_nothing_is_beside_it(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_file(tmp_path / "a", b"one")
        write_file(tmp_path / "a", b"two")
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == b"two"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.usefixtures("kind")
def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    tmp_path: Path, limited: Callable[[int, int], None]
) -> None:
    write_file(tmp_path / "a", b"before")
    (tmp_path / ".a.part").write_bytes(b"left by a kill")
    limited(resource.RLIMIT_FSIZE, 100)
    with pytest.raises(OSError) as found:
        write_file(tmp_path / "a", bytes(1000))
    assert (found.value.errno, found.value.filename) == (errno.EFBIG, str(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.usefixtures("kind")
def test_what_a_library_cannot_write_whole_is_not_there(tmp_path: Path, limited: Callable[[int, int], None]) -> None:
    def save_array(file: BinaryIO) -> None:
        np.save(file, np.arange(1000))

    def save_table(file: BinaryIO) -> None:
        pq.write_table(pa.table({"a": range(1000)}), file, compression="none")

    limited(resource.RLIMIT_FSIZE, 1000)
    for save in (save_array, save_table):
        with pytest.raises(OSError) as found, whole_file(tmp_path / "a") as file:
            save(file)
        assert (found.value.errno, found.value.filename) == (errno.EFBIG, str(tmp_path / "a"))
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "a") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_what_may_have_no_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(OSError, match="a pipe or a device, not a file"):
            read_regular(tmp_path / name)
    (tmp_path / "file").write_bytes(b"a")
    assert read_regular(tmp_path / "file") == b"a"


def test_a_folder_that_a_kill_left_is_emptied_and_made_again(tmp_path: Path) -> None:
    left = tmp_path / ".a.part"
    (left / "inner").mkdir(parents=True)
    (left / "file").write_bytes(b"half")
    with part_folder(tmp_path / "a") as part:
        assert not list(part.iterdir())
        (part / "file").write_bytes(b"whole")
        part.rename(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_only_one_makes_a_folder_at_a_time_and_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), part_folder(tmp_path / "a") as part:
        (part / "file").write_bytes(b"one")
        with pytest.raises(BlockingIOError), part_folder(tmp_path / "a"):
            pass
        assert (part / "file").read_bytes() == b"one"
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_a_link_in_the_place_of_an_unfinished_folder_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/mine").touch()
    (tmp_path / ".a.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="Not a directory"), part_folder(tmp_path / "a"):
        pass
    assert (tmp_path / "elsewhere/mine").exists()


@pytest.mark.usefixtures("kind")
def test_a_link_in_the_place_of_an_unfinished_file_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / ".a.part").symlink_to(tmp_path / "mine")
    write_file(tmp_path / "a", b"one")
    assert ((tmp_path / "mine").read_bytes(), (tmp_path / "a").read_bytes()) == (b"mine", b"one")
    assert not (tmp_path / "a").is_symlink()
