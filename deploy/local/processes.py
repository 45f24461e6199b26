"""The processes of an engine: started with logs in a folder, recorded there, waited for, and stopped by their ids.

A process is known by its id and the moment it was started, so what another program started later under the same id is
never touched. Each process leads a group of its own; what it starts itself, like the Python workers of a TaskManager,
ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import randrange
from typing import Self

import psutil

from schemas.errors import ConfigError

READY_SECONDS = 120
_STOP_SECONDS = 10
_POLL_SECONDS = 0.1
_SHOWN_LINES = 20
_RECORD = "processes.json"
_LOOPBACK = "127.0.0.1"
_FIRST_PORT = 10240


@dataclass(frozen=True)
class Started:
    """A process that was started.

    Attributes:
        name: What it is; its log is `NAME.log`.
        pid: Its id, which is also the id of its group.
        moment: When it was started, in seconds since the machine was; 0 if it had ended before it could be asked.
    """

    name: str
    pid: int
    moment: float

    @property
    def runs(self) -> bool:
        """Whether it is still alive."""
        return self.moment != 0 and _moment(self.pid) == self.moment


class Processes:
    """The processes of one engine in one folder."""

    def __init__(self, directory: Path) -> None:
        """Take a folder, which is made if it does not exist; nothing is started.

        Args:
            directory: Their logs and their record; made if it does not exist.
        """
        self.directory = directory.absolute()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._record = self.directory / _RECORD
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def started(self) -> list[Started]:
        """What was started here and not stopped yet, by this program or an earlier one."""
        try:
            return [Started(**entry) for entry in json.loads(self._record.read_bytes())]
        except FileNotFoundError:
            return []

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Started:
        """Start a process and remember it.

        Args:
            name: Unique in the folder.
            command: The program and its arguments.
            environment: Added to this process's own.

        Raises:
            ConfigError: If one of that name runs already, or the program is missing.
        """
        known = self.started
        if any(process.name == name and process.runs for process in known):
            raise ConfigError(f"{self.directory}: {name} runs there already; stop it first, or take another --dir")
        with (self.directory / f"{name}.log").open("wb") as log:
            try:
                child = subprocess.Popen(
                    [str(word) for word in command],
                    cwd=self.directory,
                    env=os.environ | dict(environment or {}),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                raise ConfigError(f"{command[0]}: not found; it is needed for {name}") from error
        self._children[child.pid] = child
        process = Started(name, child.pid, _moment(child.pid))
        self._remember([*(other for other in known if other.name != name), process])
        return process

    def wait_ready(self, ready: Callable[[], bool], what: str, *, seconds: float = READY_SECONDS) -> None:
        """Ask until `ready` answers yes.

        Raises:
            ConfigError: If a process of the folder ends before, or the time is over: with the end of the logs.
        """
        end = time.monotonic() + seconds
        while not ready():
            dead = [process.name for process in self.started if not process.runs]
            if dead or time.monotonic() > end:
                reason = f"{', '.join(dead)} ended" if dead else f"not ready within {seconds:g} s"
                raise ConfigError(f"{self.directory}: {what}: {reason}; the end of the logs:\n{self._tails(dead)}")
            time.sleep(_POLL_SECONDS)

    def kill(self, process: Started) -> None:
        """End one process and all that it started as a crash would, and wait until it is gone."""
        _kill_group(process)
        child = self._children.pop(process.pid, None)
        if child is not None:
            child.wait()

    def freeze(self, process: Started) -> None:
        """Stop a process and all that it started, and wait until each of its threads stands still."""
        _signal_group(process.pid, signal.SIGSTOP)
        while not all(_is_still(thread) for thread in Path(f"/proc/{process.pid}/task").glob("*/stat")):
            time.sleep(_POLL_SECONDS)

    def thaw(self, process: Started) -> None:
        """Let a process that was frozen go on, for a moment at least."""
        _signal_group(process.pid, signal.SIGCONT)
        time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """End every process that was started here, frozen ones too, with all that they started; then forget them."""
        for process in reversed(self.started):
            _end(process)
        for child in self._children.values():
            child.wait()
        self._children.clear()
        self._record.unlink(missing_ok=True)

    def _remember(self, processes: Sequence[Started]) -> None:
        self._record.write_text(json.dumps([asdict(process) for process in processes]))

    def _tails(self, names: Sequence[str]) -> str:
        logs = [self.directory / f"{name}.log" for name in names or [process.name for process in self.started]]
        return "\n".join(
            f"{log}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]) for log in logs
        )


class Service:
    """What runs in processes of one folder; a context manager that stops it.

    Args:
        directory: Whatever it writes, its logs too.
    """

    def __init__(self, directory: Path) -> None:
        """Take the folder; nothing is started."""
        self._processes = Processes(directory)

    def stop(self) -> None:
        """End it, with all that its processes started."""
        self._processes.stop()

    def __enter__(self) -> Self:
        """Return what runs."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()


def _end(process: Started) -> None:
    """End a process and its group: asked first, killed after some seconds; of one that has ended, only its group."""
    if process.runs:
        _signal_group(process.pid, signal.SIGTERM)
        _signal_group(process.pid, signal.SIGCONT)
        end = time.monotonic() + _STOP_SECONDS
        while process.runs and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
    _kill_group(process)


def _kill_group(process: Started) -> None:
    """Kill what is left of a group; nothing if its id has become another process's."""
    if _moment(process.pid) in (0, process.moment):
        _signal_group(process.pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def _is_still(thread: Path) -> bool:
    """Whether a thread, by its file `stat` in /proc, was stopped, or has ended."""
    try:
        return thread.read_text().rpartition(")")[2].split()[0] in "TZX"
    except OSError:
        return True


def _moment(pid: int) -> float:
    """Return when the process with this id was started; 0 if there is none, or only what its parent has not read."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return 0
        # Since the machine's start: a time of day would change whenever the clock is set.
        return round(process.create_time() - psutil.boot_time(), 2)
    except psutil.NoSuchProcess:
        return 0


def free_ports(number: int) -> list[int]:
    """Return ports of the loopback interface that nobody uses now, all different.

    The system gives none of them to a connection of another program, before a process listens there or while a process
    that was killed is not back yet.
    """
    end = max(_first_given_port(), 2 * _FIRST_PORT)
    with ExitStack() as stack:
        found = list[int]()
        while len(found) < number:
            port = randrange(_FIRST_PORT, end)
            with suppress(OSError):
                stack.enter_context(socket.socket()).bind((_LOOPBACK, port))
                found.append(port)
        return found


def _first_given_port() -> int:
    """Return the first of the ports that the system gives to connections."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:  # not Linux
        return 32768


def answers(port: int) -> bool:
    """Return whether somebody takes connections at a port of the loopback interface."""
    with socket.socket() as probe:
        return probe.connect_ex((_LOOPBACK, port)) == 0
