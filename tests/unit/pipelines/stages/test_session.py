"""A session leaves no temporary files when a signal ends it, and nothing in the folder of something else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.stages import session
from pipelines.stages.session import check_run_folder, check_unused, locked, open_session
from pipelines.versions import retokenize as versions
from schemas.errors import ConfigError
from transforms.records.manifests import MANIFEST
from transforms.records.receipts import RECEIPT
from transforms.storage.folder import OutputFolder
from transforms.storage.lock import FolderLock
from transforms.storage.protocol import LOCK, Lock


@contextmanager
def locked_late(out: OutputFolder, name: str = LOCK, *, written: str) -> Iterator[Lock]:
    """Take a lock after another command, of another kind, held it and wrote its result."""
    out.publish_bytes(written, b"{}")
    with locked(out, name) as lock:
        yield lock


@pytest.mark.parametrize("written", [MANIFEST, "tokens/mine.parquet", "versions/v000001/receipt.json"])
def test_a_folder_that_another_command_took_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setattr(session, "locked", partial(locked_late, written=written))
    config = load_run_config(flags={"SOURCE": [__file__], "--out": str(tmp_path / "out")}, needs_sources=True)
    with pytest.raises(ConfigError, match="--out .*; name another folder"), open_session(config, Reporters()):
        pytest.fail("the folder is that of something else")
    files = OutputFolder(tmp_path / "out").files()
    assert sorted(files) == [written]


def test_a_store_in_a_folder_that_a_run_took_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "locked", partial(locked_late, written=RECEIPT))
    request = versions.Request(file=None, flags={"SOURCE": [__file__], "--store": str(tmp_path / "out")}, keep=2)
    with pytest.raises(ConfigError, match=r"it holds receipt.json: the folder of a run or an export"):
        versions.retokenize(request, Reporters())


def test_a_run_into_the_folder_of_an_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(ConfigError, match=r"it holds manifest.json, which an export wrote; name another folder"):
        check_run_folder(OutputFolder(tmp_path))


def test_a_file_of_the_name_of_a_receipt_that_no_run_wrote_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / RECEIPT).write_text('{"paid": true}')
    with pytest.raises(ConfigError, match=r"it holds receipt.json, which no run wrote; name another folder"):
        check_run_folder(OutputFolder(tmp_path))


@pytest.mark.parametrize(
    "name",
    [
        *("tokens", "counts/words", "units/documents"),
        *(".cache", ".cache/splits", ".cache/fingerprints", ".cache/digests.json"),
    ],
)
def test_a_link_in_the_place_of_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "out" / name
    elsewhere.mkdir()
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with pytest.raises(ConfigError, match=rf"/out: {name} is a link, behind which nothing is compared or removed; put"):
        check_unused(OutputFolder(tmp_path / "out"))


@pytest.mark.parametrize(
    ("name", "kind"), [("tokens", "folder"), (".cache/tmp", "file"), (".cache/holder.json", "file"), (".lock", "file")]
)
def test_a_pipe_in_the_place_of_a_folder_or_file_is_refused_and_not_waited_for(
    tmp_path: Path, name: str, kind: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ConfigError, match=f": {name} is no {kind}; remove it, or name another folder"):
        check_unused(OutputFolder(tmp_path))


@pytest.mark.parametrize("name", [".cache", ".cache/holder.json", ".lock"])
def test_no_lock_is_taken_where_it_would_write_through_a_link(tmp_path: Path, name: str) -> None:
    link = tmp_path / "store" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path)
    with pytest.raises(ConfigError, match=f": {name} is a link, "), locked(OutputFolder(tmp_path / "store")):
        pass


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "documents").touch()
    with pytest.raises(ConfigError, match=r": documents is no folder; remove it, or name another folder"):
        check_unused(OutputFolder(tmp_path))


def test_no_lock_is_held_where_it_cannot_be_noted(tmp_path: Path) -> None:
    (tmp_path / ".cache").touch()
    with pytest.raises(ConfigError, match=r": .cache is no folder; remove it, or name another folder"):
        locked(OutputFolder(tmp_path)).__enter__()
    with pytest.raises(ConfigError, match="cannot be written") as failed:
        FolderLock(tmp_path)
    (tmp_path / ".cache").unlink()
    FolderLock(tmp_path).release()
    assert failed.traceback, "which would have held the lock"


def test_a_stop_removes_what_a_thread_is_writing(tmp_path: Path) -> None:
    source = tmp_path / "x.cpp"
    source.write_text("int x;\n")
    out = tmp_path / "out"
    config = load_run_config(flags={"SOURCE": [str(source)], "--out": str(out)}, needs_sources=True)
    with pytest.raises(KeyboardInterrupt), open_session(config, Reporters()) as opened:
        half = opened.out.temporary / "half"
        half.write_bytes(b"half")
        raise KeyboardInterrupt
    assert not half.exists()
