"""A run that several processes carry out makes the files of a plain run, even if the one that leads is killed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.prepared import Run
from tests.processes import COMMAND_LINE, ForkedProcess, ProcessServer
from tests.stores import RunningStore, new_prefix
from transforms.storage.folder import OutputFolder
from transforms.units.execution import ATTEMPTS

PEERS = 3
SHORT_LEASES = "from transforms.storage import lease; lease.LEASE_SECONDS = 20.0\n" + COMMAND_LINE
"""The command line; on an object store a killed process counts as dead after a third of the usual time."""


def started(processes: ProcessServer, run: Run, numbers: Sequence[int], stack: ExitStack) -> list[ForkedProcess]:
    """Start peers; those that are still there are killed when the stack is unwound."""
    peers = []
    for number in numbers:
        arguments = [*run.command, "--threads", 1, "--json", "--peer", f"{number}/{PEERS}"]
        peers.append(processes.start(SHORT_LEASES, arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        stack.enter_context(peers[-1])
        stack.callback(peers[-1].kill)
    return peers


def find_leader(peers: Sequence[ForkedProcess], out: OutputFolder) -> int:
    """Return which of the processes holds the lock, as soon as one does."""
    while all(peer.poll() is None for peer in peers):
        holder = out.store.holder()
        for number, peer in enumerate(peers):
            if holder and holder.owner.endswith(f", process {peer.pid}"):
                return number
        time.sleep(0.05)
    raise AssertionError([peer.communicate() for peer in peers])


def ended(peer: ForkedProcess) -> str:
    """Return what a peer printed to its end, which must be a good one."""
    output, errors = peer.communicate(timeout=250)
    assert peer.returncode == 0, output + errors
    return str(output)


def carry_out_and_kill(processes: ProcessServer, run: Run) -> list[str]:
    """Start three peers, kill the leader in the scan, start it again; return what all but the killed one printed."""
    with ExitStack() as stack:
        peers = started(processes, run, range(PEERS), stack)
        number = find_leader(peers, OutputFolder(run.out))
        assert any('"stage_started", "stage": "scan"' in line for line in peers[number].stdout)
        peers[number].kill()
        assert peers[number].wait() == -9
        peers[number : number + 1] = started(processes, run, [number], stack)
        return [ended(peer) for peer in peers]


def test_a_killed_leader_is_replaced_and_every_file_is_that_of_a_plain_run(
    run: Run, processes: ProcessServer, checker: Callable[..., str], tmp_path: Path
) -> None:
    shared = Run(run.sources, tmp_path / "out")
    printed = carry_out_and_kill(processes, shared)
    assert len(printed) == PEERS
    assert any(": leads" in text for text in printed)
    assert shared.tree() == run.tree()
    assert not checker(shared.out, "--sources", run.sources)


@pytest.mark.engines
def test_a_killed_leader_is_replaced_on_an_object_store(
    object_store: RunningStore, run: Run, processes: ProcessServer
) -> None:
    out = OutputFolder(f"{new_prefix(object_store)}/out")
    carry_out_and_kill(processes, Run(run.sources, out.root))  # type: ignore[arg-type]  # a URL does as well
    assert {name: out.read_bytes(name) for name in out.files()} == run.tree()
    assert [name for name in out.files(".cache/peers") if name.endswith(".lock")] == [], "all were released"


def carry_out(
    command: Sequence[object], places: Sequence[dict[str, str]], processes: ProcessServer, tmp_path: Path
) -> None:
    """Start a command in each of several environments at the same time, and wait for all; `cppmill` is this one."""
    folder = processes.write_program(tmp_path / "cppmill").parent
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    words = [str(word) for word in command]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with ExitStack() as stack:
        started = [
            stack.enter_context(subprocess.Popen(words, env={**environment, **more}, **options)) for more in places
        ]
        for process in started:
            printed, _ = process.communicate(timeout=250)
            assert process.returncode == 0, printed


def test_the_tasks_of_the_slurm_array_carry_out_a_run(
    run: Run, repository: Path, processes: ProcessServer, tmp_path: Path
) -> None:
    shared = Run(run.sources, tmp_path / "out")
    array = {"SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_CPUS_PER_TASK": "1"}
    places = {"SOURCES": str(run.sources), "OUT": str(shared.out), **array}
    tasks = [{**places, "SLURM_ARRAY_TASK_ID": number} for number in ("1", "2")]
    carry_out([repository / "deploy" / "peers" / "slurm.sh", *shared.command[4:]], tasks, processes, tmp_path)
    assert shared.tree() == run.tree()
    keys = [name.split("-")[0] for name in OutputFolder(shared.out).files(ATTEMPTS)]
    assert len(keys) == len(set(keys)) > 0, "a unit ran twice"


def test_the_pods_of_the_kubernetes_job_carry_out_a_run(
    run: Run, repository: Path, processes: ProcessServer, tmp_path: Path
) -> None:
    job = yaml.safe_load((repository / "deploy" / "peers" / "kubernetes.yaml").read_text())["spec"]
    [container] = job["template"]["spec"]["containers"]
    declared = {variable["name"]: variable["value"] for variable in container["env"]}
    assert job["completionMode"] == "Indexed"
    assert declared["PEERS"] == str(job["completions"]) == str(job["parallelism"])
    shared = Run(run.sources, tmp_path / "out")
    places = {"SOURCES": str(run.sources), "OUT": str(shared.out), "PEERS": "2", "THREADS": "1"}
    assert declared.keys() == places.keys()
    pods = [{**places, "JOB_COMPLETION_INDEX": index} for index in "01"]
    [script] = container["args"]
    options = " ".join(str(option) for option in shared.command[4:])
    carry_out([*container["command"], f"{script} {options}"], pods, processes, tmp_path)
    assert shared.tree() == run.tree()
