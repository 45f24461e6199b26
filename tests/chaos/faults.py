"""Faults for a process: a kill or an error at the n-th of its system calls, by strace, or a limit of its own."""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

WRITING = (
    "openat",
    "write",
    "pwrite64",
    "fsync",
    "rename",
    "renameat2",
    "linkat",
    "link",
    "unlink",
    "mkdir",
    "symlink",
)
"""System calls that change what is on a disk; a process is killed at one of them."""

ERRORS = {
    "ENOSPC": ("write", "pwrite64", "mkdir", "rename", "linkat"),
    "EDQUOT": ("write", "pwrite64", "mkdir"),
    "EIO": ("write", "pwrite64", "fsync", "read", "pread64", "rename"),
    "EMFILE": ("openat",),
    "EROFS": ("openat", "mkdir", "unlink", "rename"),
}
"""Errors, and the calls that fail with them."""

TRACED = tuple(sorted({*WRITING, *(call for calls in ERRORS.values() for call in calls)}))

STOPPED = """import os, resource, signal
LIMITS
os.kill(os.getpid(), signal.SIGSTOP)
from cppmill import main; main()
"""
"""A command that waits until strace watches it."""

Calls = Counter[str]


@dataclass(frozen=True)
class Fault:
    """What happens to a command: an injection of strace, or a limit."""

    name: str
    inject: str = ""
    limit: tuple[int, int] | None = None

    @property
    def is_kill(self) -> bool:
        """Whether the process is killed."""
        return "signal=KILL" in self.inject

    @property
    def is_lack_of_space(self) -> bool:
        """Whether the process must end with one line that says so."""
        return self.limit is not None or any(name in self.inject for name in ("ENOSPC", "EDQUOT"))


def choose_fault(random: Random, calls: Calls) -> Fault:
    """Return a fault that meets a command which makes these system calls."""
    kind = random.choice(("kill", "kill", "error", "error", "limit"))
    if kind == "limit":
        return _limit(random)
    if kind == "kill":
        call = _call(random, WRITING, calls)
        place = random.randint(1, calls[call])
        return Fault(f"kill at {call} {place}", f"{call}:signal=KILL:when={place}")
    error = random.choice(sorted(ERRORS))
    call = _call(random, ERRORS[error], calls)
    place, again = random.randint(1, calls[call]), random.choice(("", "+"))
    return Fault(f"{error} at {call} {place}{again}", f"{call}:error={error}:when={place}{again}")


def _call(random: Random, names: tuple[str, ...], calls: Calls) -> str:
    """Return a call; rare ones, at which most is decided, as often as frequent ones."""
    return random.choice([name for name in names if calls[name]] or [max(calls, key=lambda name: calls[name])])


def _limit(random: Random) -> Fault:
    size = int(2 ** random.uniform(6, 18))
    return Fault(f"files of {size} bytes at most", limit=(resource.RLIMIT_FSIZE, size))


def can_trace() -> bool:
    """Return whether strace is here and may watch processes."""
    if shutil.which("strace") is None:
        return False
    return (
        subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0
    )


def run_watched(
    processes: Any, arguments: list[str], log: Path, fault: Fault | None, env: dict[str, str], seconds: float
) -> tuple[int, str, str]:
    """Run a command with a fault, or while its calls are counted; return exit code, output and error output.

    Raises:
        TimeoutExpired: If it does not end in time; it is killed then.
    """
    limits = (
        "" if fault is None or fault.limit is None else f"resource.setrlimit({fault.limit[0]}, ({fault.limit[1]},) * 2)"
    )
    process = processes.start(
        STOPPED.replace("LIMITS", limits), arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    traced = ",".join(TRACED) if fault is None else fault.inject.partition(":")[0]
    watcher = None
    _wait_until(process.pid, "State:\tT")
    if traced:
        options = ["-e", f"trace={traced}", *(["-e", f"inject={fault.inject}"] if fault and fault.inject else [])]
        watcher = subprocess.Popen(["strace", "-f", "-qq", "-o", str(log), *options, "-p", str(process.pid)])
        _wait_until(process.pid, "TracerPid:\t", without="TracerPid:\t0")
    process.send_signal(signal.SIGCONT)
    try:
        out, err = process.communicate(seconds)
    finally:
        process.kill()
        if watcher is not None:
            watcher.wait(10)
    return process.returncode, out, err


def _wait_until(process: int, text: str, *, without: str = "\0") -> None:
    """Wait until the system says something of a process."""
    for _ in range(3000):
        status = Path(f"/proc/{process}/status").read_text()
        if text in status and without not in status:
            return
        time.sleep(0.01)
    raise RuntimeError(f"process {process} did not get to {text!r}")


def count_calls(log: Path) -> Calls:
    """Return how many calls of each kind a log of strace has."""
    return Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(errors="replace"), re.M))
