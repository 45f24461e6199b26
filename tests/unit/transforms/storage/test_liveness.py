"""Whether a lock's holder lives: at once in a folder, after a whole lease without renewal on an object store."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from schemas.errors import LockedError
from transforms.storage import lease
from transforms.storage.folder import OutputFolder
from transforms.storage.liveness import Liveness
from transforms.storage.local import LocalStore
from transforms.storage.protocol import Holder

NAME = ".cache/peers/0.lock"


def test_locks_of_different_names_are_apart_and_each_names_its_holder(out: OutputFolder) -> None:
    with out.store.lock() as one, out.store.lock(NAME) as other:
        holders = [out.store.holder(), out.store.holder(NAME)]
        assert [holder.token for holder in holders if holder] == [one.token, other.token]
        assert one.token != other.token
        assert out.store.holder(".cache/peers/1.lock") is None
    assert out.store.holder(NAME) is None


def test_a_small_file_is_created_once(out: OutputFolder) -> None:
    assert [out.store.create(".cache/claims/a", text) for text in (b"first", b"second")] == [True, False]
    assert out.read_bytes(".cache/claims/a") == b"first"


def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    assert OutputFolder(tmp_path).store.holder() is None


def test_a_link_in_the_place_of_a_holder_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".cache/peers").mkdir(parents=True)
    (tmp_path / f"{NAME}.json").symlink_to(tmp_path / "mine")
    with OutputFolder(tmp_path).store.lock(NAME):
        assert not (tmp_path / f"{NAME}.json").is_symlink()
    assert (tmp_path / "mine").read_text() == "mine"


def test_in_a_folder_a_holder_lives_until_its_lock_is_released(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    liveness = Liveness(store)
    assert (liveness.silent_seconds(NAME), liveness.is_alive(NAME)) == (math.inf, False)
    with store.lock(NAME) as lock:
        assert liveness.silent_seconds(NAME) == 0
        assert liveness.is_alive(NAME)
        assert liveness.is_alive(NAME, lock.token)
        assert not liveness.is_alive(NAME, "token of a process before")
    assert not liveness.is_alive(NAME, lock.token)


def test_in_a_folder_a_killed_holder_is_dead_at_once(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from transforms.storage.local import LocalStore; "
        "lock = LocalStore(pathlib.Path(sys.argv[1])).lock(sys.argv[2]); print(lock.token, flush=True); "
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path), NAME]
    liveness = Liveness(LocalStore(tmp_path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        token = process.stdout.readline().strip()
        assert liveness.is_alive(NAME, token)
        with pytest.raises(LockedError, match=NAME):
            LocalStore(tmp_path).lock(NAME)
        process.kill()
    assert not liveness.is_alive(NAME, token)


def test_on_an_object_store_a_holder_is_dead_after_a_lease_without_renewal() -> None:
    seen, now = {NAME: Holder("host, process 1", "2026-01-01T00:00:00Z", "t")}, [0.0]
    store = SimpleNamespace(holder=seen.get)
    liveness = Liveness(store, clock=lambda: now[0])  # type: ignore[arg-type]
    assert liveness.is_alive(NAME, "t"), "its own clock may be years off"
    now[0] = lease.LEASE_SECONDS - 1
    assert liveness.is_alive(NAME, "t")
    assert liveness.silent_seconds(NAME) == lease.LEASE_SECONDS - 1
    seen[NAME] = seen[NAME]._replace(expires="2026-01-01T00:00:15Z")
    now[0] = lease.LEASE_SECONDS + 1
    assert liveness.silent_seconds(NAME) == 0, "it was renewed"
    now[0] = 2 * lease.LEASE_SECONDS + 1
    assert not liveness.is_alive(NAME, "t")
    seen[NAME] = seen[NAME]._replace(token="u")
    assert liveness.is_alive(NAME, "u"), "another process took it"
    assert not liveness.is_alive(NAME, "t")
