"""Peers: who leads, who takes over, what is waited for, and what ends a run for all."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from configs.execution import Peer
from configs.runs import RunConfig
from pipelines.console.progress import Reporters
from pipelines.console.status import read_status
from pipelines.console.status_lines import describe_status
from pipelines.engines.execution import open_engine
from pipelines.stages import peers
from pipelines.stages.board import Board, plan_job, read_board, write_board
from pipelines.stages.peers import Member, check_peer, describe_run, rotate, run_as_peer
from pipelines.stages.session import Session, engine_config, open_session
from schemas.errors import ConfigError, LockedError
from schemas.units import RUN_STAGES, Stage, Unit
from tests.processes import ProcessServer
from transforms.storage.folder import OutputFolder
from transforms.units.claims import CLAIMS, Claimant
from transforms.units.flow import FlatMap
from transforms.units.peer_locks import peer_lock

LEADER = """
import signal, sys
from pathlib import Path
from configs.runs import RunConfig
from pipelines.stages.board import Board, write_board
from pipelines.stages.peers import describe_run
from transforms.storage.folder import OutputFolder
out = OutputFolder(sys.argv[1])
lock = out.store.lock()
write_board(out, Board(leader=lock.token, run=describe_run(RunConfig(out=Path(sys.argv[1])))))
print("leads", flush=True)
signal.pause()
"""


def a_unit(letter: str) -> Unit:
    return Unit(stage=Stage.TOKENIZE, key=64 * letter, num_bytes=3, label=f"unit {letter}", payload={})


def _finish(unit: Unit, out: OutputFolder) -> Iterator[Unit]:
    """Stands for a stage: publishes the receipt of a unit."""
    out.publish_bytes(unit.receipt_path, b"{}")
    out.publish_bytes(f"done/{unit.label}-{threading.get_ident()}", b"")
    yield unit


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    return RunConfig(out=tmp_path / "out")


@pytest.fixture
def folder(config: RunConfig, monkeypatch: pytest.MonkeyPatch) -> OutputFolder:
    monkeypatch.setitem(
        peers.FLOWS,
        Stage.TOKENIZE,
        lambda session: (FlatMap(name="Finish", function=partial(_finish, out=session.out), gives=Unit),),
    )
    return OutputFolder(config.out)


@pytest.fixture
def member(config: RunConfig, folder: OutputFolder) -> Iterator[Member]:
    with (
        open_engine("local", engine_config(config, folder)) as engine,
        folder.store.lock(peer_lock(0)) as own,
    ):
        yield Member(Session(config=config, out=folder, reporter=Reporters(), engine=engine), Peer(0, 2), own)


def write_job(out: OutputFolder, leader: str, config: RunConfig, letters: str) -> None:
    units = [a_unit(letter) for letter in letters]
    job = plan_job(out, Stage.TOKENIZE, units, job_id="job")
    write_board(out, Board(leader=leader, run=describe_run(config), job=job))


def test_who_comes_first_leads(member: Member) -> None:
    lock = member.follow()
    assert lock is not None
    lock.release()


def test_a_killed_leader_is_replaced(member: Member, folder: OutputFolder, processes: ProcessServer) -> None:
    with processes.start(LEADER, [folder.root], stdout=subprocess.PIPE) as leader:
        assert leader.stdout.readline() == "leads\n"
        threading.Timer(1, leader.kill).start()
        lock = member.follow()
    assert lock is not None
    assert leader.returncode == -9
    lock.release()


def test_a_run_that_its_leader_finished_is_finished_for_all(
    member: Member, folder: OutputFolder, config: RunConfig
) -> None:
    with folder.store.lock() as lock:
        board = Board(leader=lock.token, run=describe_run(config))
        write_board(folder, board)
        timer = threading.Timer(1, lambda: write_board(folder, Board(**{**vars(board), "is_done": True})))
        timer.start()
        assert member.follow() is None
        timer.join()


def test_a_board_that_says_done_of_an_earlier_run_ends_nothing(
    member: Member, folder: OutputFolder, config: RunConfig
) -> None:
    write_board(folder, Board(leader="of yesterday", run=describe_run(config), is_done=True))
    lock = member.follow()
    assert lock is not None
    lock.release()


def test_a_job_of_a_dead_leader_is_not_begun(member: Member, folder: OutputFolder, config: RunConfig) -> None:
    followed: list[Any] = []
    with folder.store.lock():  # a leader that has not written the board yet
        write_job(folder, "dead", config, "ab")
        thread = threading.Thread(target=lambda: followed.append(member.follow()))
        thread.start()
        thread.join(2)
        assert thread.is_alive()
    thread.join(30)
    assert not folder.exists(a_unit("a").receipt_path)
    followed[0].release()


def test_a_follower_runs_units_and_waits_for_those_that_a_living_peer_has(
    member: Member, folder: OutputFolder, config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, run_flow = list[list[str]](), Session.run_flow

    def note(self: Any, name: str, units: Any, flow: Any) -> None:
        ran.append([unit.label for unit in units])
        run_flow(self, name, units, flow)

    monkeypatch.setattr(Session, "run_flow", note)
    with folder.store.lock() as lead, folder.store.lock(peer_lock(1)) as other:
        Claimant(out=folder, lock=peer_lock(1), token=other.token).claim(a_unit("b"))
        write_job(folder, lead.token, config, "abc")
        followed: list[object] = []
        thread = threading.Thread(target=lambda: followed.append(member.follow()))
        thread.start()
        while not all(folder.exists(a_unit(letter).receipt_path) for letter in "ac"):
            thread.join(0.05)
            assert thread.is_alive()
        thread.join(1)
        assert thread.is_alive()
        assert not folder.exists(a_unit("b").receipt_path), "the other peer has it"
        list(_finish(a_unit("b"), folder))
        write_board(folder, Board(leader=lead.token, run=describe_run(config), is_done=True))
        thread.join(30)
    assert followed == [None]
    assert ran == [["unit a", "unit c"]]
    assert len(list(folder.files("done"))) == 3


def test_units_that_a_dead_peer_had_are_run_by_another(member: Member, folder: OutputFolder, config: RunConfig) -> None:
    Claimant(out=folder, lock=peer_lock(1), token="of a dead process").claim(a_unit("b"))
    with folder.store.lock() as lock:
        member.lead(lock, lambda session: session.share and session.share(Stage.TOKENIZE, [a_unit("a"), a_unit("b")]))
    assert sorted(name.partition("-")[0] for name in folder.files("done")) == ["done/unit a", "done/unit b"]
    board = read_board(folder)
    assert board is not None
    assert (board.leader, board.job, board.is_done) == (lock.token, None, True)
    assert list(folder.files(CLAIMS)) == []


def test_what_was_there_before_a_job_does_not_count(member: Member, folder: OutputFolder) -> None:
    folder.publish_bytes(a_unit("a").receipt_path, b"of a unit whose files are damaged")
    with folder.store.lock() as lock:
        member.lead(lock, lambda session: session.share and session.share(Stage.TOKENIZE, [a_unit("a")]))
    assert folder.read_bytes(a_unit("a").receipt_path) == b"{}"


def test_a_leader_leaves_the_temporary_files_of_living_peers(member: Member, folder: OutputFolder) -> None:
    held = folder.temporary / "held"
    with folder.store.lock(peer_lock(1)), folder.store.lock() as lock:
        held.touch()
        member.lead(lock, lambda session: None)
        assert held.exists()
    with folder.store.lock() as lock:
        member.lead(lock, lambda session: None)
    assert not held.exists()


def test_a_peer_with_other_options_is_refused(member: Member, folder: OutputFolder, config: RunConfig) -> None:
    run = {**describe_run(config), "ingest.unit_bytes": 7}
    with folder.store.lock() as lock:
        write_board(folder, Board(leader=lock.token, run=run))
        with pytest.raises(ConfigError, match=r"--peer 0/2: ingest.unit_bytes is \d+ here and 7 in the process"):
            member.follow()


def test_a_peer_is_at_work_once(config: RunConfig, folder: OutputFolder) -> None:
    with folder.store.lock(peer_lock(1)), pytest.raises(LockedError, match=peer_lock(1)):
        run_as_peer(config, Peer(1, 2), Reporters(), lambda session: None)


def test_a_run_without_peers_is_refused_while_one_is_at_work(config: RunConfig, folder: OutputFolder) -> None:
    with (
        folder.store.lock(peer_lock(1)),
        pytest.raises(LockedError, match=peer_lock(1)),
        open_session(config, Reporters()),
    ):
        pass
    with open_session(config, Reporters()):
        pass


def test_the_status_names_the_peers_that_are_at_work(folder: OutputFolder) -> None:
    with folder.store.lock(peer_lock(0)), folder.store.lock(peer_lock(2)), folder.store.lock():
        found = read_status(folder.root)
        assert found.state == "running"
        assert [peer.partition(": ")[0] for peer in found.peers] == ["0", "2"]
        assert [line for line in describe_status(found) if line == f"peer      {found.peers[1]}"]


@pytest.mark.parametrize("changes", [{"engine": "flink"}, {"rehash": True}])
def test_what_peers_cannot_do_is_refused(config: RunConfig, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"--peer 0/2: not with --{next(iter(changes))}"):
        check_peer(config.model_copy(update=changes), Peer(0, 2))


@pytest.mark.parametrize("text", ["", "1", "2/2", "1/0", "-1/2", "a/b", "1/2/3"])
def test_a_peer_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"--peer {text}: not allowed; "):
        Peer.parse(text)


def test_peers_can_run_the_units_of_every_stage_but_the_build_which_is_one_process() -> None:
    assert peers.FLOWS.keys() == {peers.READ, *RUN_STAGES} - {Stage.BUILD}


def test_each_peer_begins_with_its_own_part_and_has_all_units() -> None:
    units = [a_unit(letter) for letter in "abcdefg"]
    orders = [rotate(units, Peer(number, 3)) for number in range(3)]
    assert [order[0].label for order in orders] == ["unit a", "unit c", "unit e"]
    assert all(sorted(order, key=lambda unit: unit.key) == units for order in orders)
