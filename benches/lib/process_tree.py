"""Run a command and find the most memory that it and all processes below it had together.

Memory is the proportional set size: pages that processes share are counted once. It is read again and again while the
command runs, so a peak between two readings is missed. Only Linux has it.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benches.lib.harness import BenchmarkError

_SECONDS = 0.5
_TAIL_BYTES = 4000


@dataclass(frozen=True)
class Ended:
    """What a command took and said.

    Attributes:
        seconds: From its start to its end.
        processor_seconds: Of all of its processes that were waited for.
        peak_bytes: The most that all of its processes had at one reading.
        output: Its output stream.
    """

    seconds: float
    processor_seconds: float
    peak_bytes: int
    output: str


def run_measured(command: Sequence[str], log: Path) -> Ended:
    """Run a command to its end.

    Args:
        command: The program and its arguments.
        log: Gets its error stream.

    Raises:
        BenchmarkError: If it fails, with the end of what it said.
    """
    start, used, peak_bytes = time.perf_counter(), _processor_seconds(), 0
    output = log.with_suffix(".out")
    with log.open("wb") as errors, output.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=errors)
        while process.poll() is None:
            peak_bytes = max(peak_bytes, _tree_bytes(process.pid))
            try:
                process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    seconds = time.perf_counter() - start
    if process.returncode:
        tail = log.read_text(encoding="utf-8", errors="replace")[-_TAIL_BYTES:]
        raise BenchmarkError(f"{' '.join(command)}: exit code {process.returncode}\n{tail}")
    return Ended(seconds, _processor_seconds() - used, peak_bytes, output.read_text(encoding="utf-8"))


def _processor_seconds() -> float:
    """Return the processor time of all processes below this one that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _tree_bytes(root: int) -> int:
    """Return the proportional set size of a process and all below it in bytes; those that have ended count nothing."""
    try:
        process = psutil.Process(root)
        return sum(map(_set_bytes, [process, *process.children(recursive=True)]))
    except psutil.NoSuchProcess:
        return 0


def _set_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0
