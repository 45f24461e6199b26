"""A run that several processes carry out together, with nothing between them but OUT.

The one that holds the one-writer lock leads: it runs the programs of all stages as a single process does. Where a stage
runs units, it writes them on the board, and all peers run them, each unit claimed by one. Whatever brings units
together (choosing duplicates, merging counts, the build, the receipt) the leader does alone while the others wait. If
the leader dies, its lock becomes free; another peer takes it and goes on, as any run goes on after a crash.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cppmill_core

from configs.execution import Peer
from configs.runs import RunConfig
from pipelines.console.progress import Reporter
from pipelines.console.signals import done_before_end
from pipelines.engines.execution import open_engine
from pipelines.stages.board import Board, Job, plan_job, read_board, write_board
from pipelines.stages.ingest import first_pass, second_pass
from pipelines.stages.platforms import read_platforms
from pipelines.stages.scan import shards_flow
from pipelines.stages.session import Session, check_run_folder, clear_crashed, engine_config, locked, logged
from pipelines.stages.tokenize import tokenize_documents
from pipelines.stages.validate import validate_shards
from pipelines.stages.vocabulary import local_vocabulary
from schemas.errors import ConfigError, LockedError
from schemas.logs import module_logger
from schemas.places import is_remote
from schemas.units import Stage, Unit
from tokenizer_build.lock import vocabulary_digest
from tokenizer_build.vocabulary import read_vocabulary
from transforms.ingest.fingerprints import fingerprints_name
from transforms.storage import lease
from transforms.storage.folder import OutputFolder
from transforms.storage.liveness import Liveness
from transforms.storage.protocol import LOCK, Lock
from transforms.units.claims import Claimant, claim_units, clear_claims
from transforms.units.flow import Flow
from transforms.units.peer_locks import peer_lock, peer_locks

logger = module_logger(__name__)

READ = "read"
"""The job of the first pass, whose units have no receipts."""

FLOWS: dict[str, Callable[[Session], Flow]] = {
    READ: first_pass,
    Stage.INGEST: second_pass,
    Stage.SCAN: shards_flow,
    Stage.TOKENIZE: tokenize_documents,
    Stage.VALIDATE: validate_shards,
}
"""What runs the units of a job, made of the configuration and of what is in OUT."""

_LONGEST_POLLS = 5
"""How many times as long as the first pause the longest one is."""

_SUSPICION = 3
"""A leader that was silent for this part of a lease has missed a renewal: its lock is worth trying."""


def read_file(unit: Unit) -> str:
    """Return the file that ends the reading of a unit in the first pass."""
    return fingerprints_name(unit.key)


def receipt_file(unit: Unit) -> str:
    """Return the file that ends a unit of a stage."""
    return unit.receipt_path


@dataclass
class Pause:
    """Pauses between looks: each longer than the one before, up to a limit.

    Attributes:
        first_seconds: The first one.
    """

    first_seconds: float

    def __post_init__(self) -> None:
        """Begin with the first one."""
        self.reset()

    def reset(self) -> None:
        """Begin again with the first one: something has changed."""
        self.seconds = self.first_seconds

    def wait(self) -> None:
        """Pause."""
        time.sleep(self.seconds)
        self.seconds = min(1.5 * self.seconds, _LONGEST_POLLS * self.first_seconds)


class Member:
    """This process among its peers.

    Args:
        session: A session without the lock of OUT.
        peer: Which peer this is.
        lock: The lock that it holds as a peer.
    """

    def __init__(self, session: Session, peer: Peer, lock: Lock) -> None:
        """Begin without having seen anything of the others."""
        self._session, self._out, self._peer = session, session.out, peer
        self._claimant = Claimant(out=session.out, lock=peer_lock(peer.number), token=lock.token)
        self._liveness = Liveness(session.out.store)
        self._run = describe_run(session.config)
        self._leads: Lock | None = None

    def follow(self) -> Lock | None:
        """Run units of the board until the lead is free, and return its lock; None once the run is finished."""
        pause, known, last = Pause(self._out.store.poll_seconds), set[str](), ""
        while True:
            lock, board = self._take_lead(), read_board(self._out)
            if board is not None and board.is_done and board.leader in known:
                if lock is not None:
                    lock.release()
                return None
            if lock is not None:
                return lock
            if board is not None and self._is_leading(board):
                self._check_same(board)
                known.add(board.leader)
                if board.job is not None and board.job.id != last:
                    self._help(board.job)
                    last = board.job.id
                    pause.reset()
                    continue
            pause.wait()

    def lead(self, lock: Lock, work: Callable[[Session], None]) -> None:
        """Carry the run out, sharing units with the other peers, and tell them that it is finished.

        Args:
            lock: The one-writer lock, which this process holds.
            work: Runs all stages.
        """
        board = Board(leader=lock.token, run=self._run)
        self._leads = lock
        write_board(self._out, board)  # before the look at the others: who comes later finds no job of a dead leader
        others = [name for name in peer_locks(self._out) if name != self._claimant.lock]
        if not any(self._liveness.is_alive(name) for name in others):
            clear_crashed(self._out)
        self._session.reporter.note(f"peer {self._peer}: leads")
        with logged(replace(self._session, share=self._share)) as session:
            work(session)
        write_board(self._out, replace(board, is_done=True))
        clear_claims(self._out)

    def _share(self, name: str, units: Sequence[Unit]) -> None:
        """Put units on the board, and run them with the other peers until all are done."""
        if self._leads is None:
            raise RuntimeError("only the leader shares units")
        stale = self._out.store.present(map(_finished_file(name), units))  # of damaged units, or to be read again
        self._out.each(self._out.remove, sorted(stale))
        board = Board(leader=self._leads.token, run=self._run)
        job = plan_job(self._out, name, units, job_id=uuid.uuid4().hex)
        write_board(self._out, replace(board, job=job))
        self._complete(job, units)
        write_board(self._out, board)

    def _help(self, job: Job) -> None:
        """Run units of the leader's job; only the leader reports the progress of each, as looking costs requests."""
        units, started = job.units(self._out), time.monotonic()
        self._session.reporter.stage_started(job.name, len(units), sum(unit.num_bytes for unit in units))
        self._complete(job, units)
        self._session.reporter.stage_done(job.name, time.monotonic() - started, {"peer": str(self._peer)})

    def _complete(self, job: Job, units: Sequence[Unit]) -> None:
        """Run the units that no other living peer has claimed, until all are done or the job is no longer current."""
        waiting, pause = rotate(units, self._peer), Pause(self._out.store.poll_seconds)
        while True:
            claimed = self._claimant.find_claimed(waiting, self._liveness.is_alive)  # before the look at what is done
            waiting = self._unfinished(job, waiting)
            if not waiting or not self._is_current(job):
                return
            if free := [unit for unit in waiting if unit.key not in claimed]:
                self._run_units(job, free)
                pause.reset()
            else:
                pause.wait()

    def _run_units(self, job: Job, units: Sequence[Unit]) -> None:
        """Claim and run units; an error counts only while the job needs them."""
        claim = claim_units(self._claimant, _finished_file(job.name))
        try:
            self._session.run_flow(job.name, units, (*claim, *FLOWS[job.name](self._session)))
        except Exception as error:
            if self._is_current(job) and self._unfinished(job, units):
                raise
            logger.warning("%s: a unit failed that others had finished: %s", job.name, error)

    def _unfinished(self, job: Job, units: Sequence[Unit]) -> list[Unit]:
        finished = _finished_file(job.name)
        present = self._out.store.present(map(finished, units))
        return [unit for unit in units if finished(unit) not in present]

    def _is_current(self, job: Job) -> bool:
        if self._leads is not None:
            return True
        board = read_board(self._out)
        return board is not None and board.job is not None and board.job.id == job.id

    def _is_leading(self, board: Board) -> bool:
        """Tell whether a board is of the process that holds, or held until it died, the one-writer lock."""
        holder = self._out.store.holder()
        return holder is not None and holder.token == board.leader and not board.is_done

    def _take_lead(self) -> Lock | None:
        """Take the one-writer lock if nobody holds it, or if its holder seems dead and is."""
        if self._liveness.silent_seconds(LOCK) < lease.LEASE_SECONDS / _SUSPICION:
            return None
        try:
            return self._out.store.lock()
        except LockedError:
            return None

    def _check_same(self, board: Board) -> None:
        """Check that the leader carries out the run that this process was started for.

        Raises:
            ConfigError: Naming the first difference.
        """
        for name in {**board.run, **self._run}:
            here, there = self._run.get(name), board.run.get(name)
            if here != there:
                raise ConfigError(
                    f"--peer {self._peer}: {name} is {here!r} here and {there!r} in the process that leads the run in "
                    f"{self._out.root}; give all peers the same arguments and versions"
                )


def run_as_peer(config: RunConfig, peer: Peer, reporter: Reporter, work: Callable[[Session], None]) -> None:
    """Carry out a run together with others: help the leader, or lead.

    Args:
        config: The configuration, the same for all peers.
        peer: Which peer this is.
        reporter: Where progress goes.
        work: Runs all stages.

    Raises:
        ConfigError: For what peers cannot do, and if the leader has another configuration.
        LockedError: If this peer is already at work.
    """
    check_peer(config, peer)
    out = OutputFolder(config.out)
    check_run_folder(out)
    with (
        open_engine(config.engine, engine_config(config, out)) as engine,
        locked(out, peer_lock(peer.number)) as own,
    ):
        member = Member(Session(config=config, out=out, reporter=reporter, engine=engine), peer, own)
        lock = member.follow()
        if lock is None:
            reporter.note(f"peer {peer}: the run is finished")
            return
        with lock, done_before_end(lock.release):
            check_run_folder(out)
            member.lead(lock, work)


def check_peer(config: RunConfig, peer: Peer) -> None:
    """Check that peers can carry out a run.

    Raises:
        ConfigError: If it runs on an engine, or is to read everything again.
    """
    if config.engine != "local":
        raise ConfigError(f"--peer {peer}: not with --engine {config.engine}, which has workers of its own")
    if config.rehash:
        raise ConfigError(f"--peer {peer}: not with --rehash, as each new leader would read everything again")


def describe_run(config: RunConfig) -> dict[str, Any]:
    """Return what must be the same for all peers, as flat JSON values by name."""
    given = json.loads(json.dumps(config.options.to_json()))
    tables = {name: values for name, values in given.items() if isinstance(values, dict)}
    options = {f"{table}.{key}": value for table, values in tables.items() for key, value in values.items()}
    return {
        "cppmill": version("cppmill"),
        "cppmill-core": cppmill_core.__version__,
        "SOURCE": [_absolute(source) for source in config.sources],
        "tokenizer": None if config.tokenizer is None else _absolute(str(config.tokenizer)),
        **({"rebuild-tokenizer": True} if config.rebuild_tokenizer else {}),
        **({"vocab": vocabulary_digest(read_vocabulary(local_vocabulary(config.vocab)))} if config.vocab else {}),
        **({"platforms": read_platforms(config.platforms).digest} if config.platforms else {}),
        **{name: value for name, value in given.items() if name not in tables},
        **options,
    }


def rotate(units: Sequence[Unit], peer: Peer) -> list[Unit]:
    """Return units in the order in which a peer takes them: its own part of them first, then those that follow.

    Example:
        >>> rotate("abcdef", Peer(1, 3))
        ['c', 'd', 'e', 'f', 'a', 'b']
    """
    start = len(units) * peer.number // peer.count
    return [*units[start:], *units[:start]]


def _absolute(place: str) -> str:
    return place if is_remote(place) else str(Path(place).absolute())


def _finished_file(name: str) -> Callable[[Unit], str]:
    return read_file if name == READ else receipt_file
