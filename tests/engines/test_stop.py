"""Ctrl-C ends the job, and leaves no worker behind, on a cluster and in the job server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from deploy.local.flink import FlinkCluster
from pipelines.stages.equivalence import default_sources

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

BOUND_SECONDS = 120


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Ask until the answer is yes; fail when the bound is reached."""
    end = time.monotonic() + BOUND_SECONDS
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {BOUND_SECONDS} s"
        time.sleep(0.05)


def worker_pids(out: Path) -> list[int]:
    """The ids of the workers that were started, as the names of their logs have them."""
    return [int(log.stem.rpartition("-")[2]) for log in (out / ".cache/workers").glob("*.log")]


def members(session: int) -> list[int]:
    """The processes of a session: all that was started by the process that leads it."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(ProcessLookupError):
                found += [int(folder.name)] if os.getsid(int(folder.name)) == session else []
    return found


def is_alive(pid: int) -> bool:
    try:
        return "cppmill-worker" in Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def interrupted(repository: Path, tmp_path: Path) -> Iterator[Callable[..., tuple[Path, int]]]:
    """Start a run, press Ctrl-C when its first worker is at work, and return the output folder and the session."""
    processes = []

    def interrupt(*beam_options: str) -> tuple[Path, int]:
        out = tmp_path / "out"
        command = [sys.executable, "-m", "pipelines.cli", "run", *default_sources(), "--out", str(out)]
        command += ["--profile", "demo", "--engine", "flink", "--", *beam_options]
        process = subprocess.Popen(
            command,
            cwd=repository,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Whoever started the tests may ignore it, as a shell makes what it starts in the background do.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        processes.append(process)
        wait_for(lambda: bool(worker_pids(out)) or process.poll() is not None, "a worker")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=BOUND_SECONDS)
        assert process.returncode == 128 + signal.SIGINT, errors
        return out, process.pid

    yield interrupt
    for process in processes:
        process.kill()
        process.wait()


def test_a_job_on_a_cluster_is_cancelled(interrupted: Callable[..., tuple[Path, int]], tmp_path: Path) -> None:
    with FlinkCluster(tmp_path / "flink", task_managers=1, slots=1) as cluster:
        out, _ = interrupted(f"--flink_master={cluster.rest_address}")

        def states() -> list[str]:
            with urllib.request.urlopen(f"http://{cluster.rest_address}/jobs/overview", timeout=5) as answer:
                return [job["state"] for job in json.load(answer)["jobs"]]

        wait_for(lambda: set(states()) == {"CANCELED"}, "the job's end")
        wait_for(lambda: not any(map(is_alive, worker_pids(out))), "the workers' end")
        wait_for(lambda: cluster.free_slots == 1, "the slot")


def test_the_engine_inside_the_job_server_ends_with_its_workers(interrupted: Callable[..., tuple[Path, int]]) -> None:
    _, session = interrupted()
    wait_for(lambda: not members(session), "the end of the job server and its workers")
