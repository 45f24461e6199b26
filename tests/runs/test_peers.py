"""A run that several processes carry out has the digests of a plain run, even if some of them are killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from transforms.storage.folder import OutputFolder
from transforms.units.execution import ATTEMPTS

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "pipelines.cli", "run"]
OPTIONS = ["--profile", "demo", "--unit-bytes", "65536", "--threads", "1"]
PEERS = 3


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers of numpy, about thirty."""
    return Path(shutil.copytree(np.get_include(), tmp_path_factory.mktemp("sources") / "numpy"))


@pytest.fixture(scope="module")
def plain(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of a run of one process."""
    out = tmp_path_factory.mktemp("plain") / "out"
    subprocess.run([*COMMAND, str(sources), "--out", str(out), *OPTIONS], check=True, capture_output=True, cwd=ROOT)
    return digests(str(out))


def digests(out: str) -> dict[str, str]:
    receipt = json.loads(OutputFolder(out).read_bytes("receipt.json"))
    return {"receipt": receipt["digest"], **{name: receipt[name]["digest"] for name in ("tokenizer", "dataset")}}


@contextmanager
def started(sources: Path, out: str, numbers: Sequence[int]) -> Iterator[list[subprocess.Popen[str]]]:
    """Peers at work; killed at the end of the block if they are still there."""
    command = [*COMMAND, str(sources), "--out", out, *OPTIONS, "--json", "--peer"]
    processes = [
        subprocess.Popen(
            [*command, f"{number}/{PEERS}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
        )
        for number in numbers
    ]
    with ExitStack() as stack:
        for process in processes:
            stack.enter_context(process)
            stack.callback(process.kill)
        yield processes


def find_leader(processes: Sequence[subprocess.Popen[str]], out: str) -> int:
    """Which of the processes holds the lock, as soon as one does."""
    while all(process.poll() is None for process in processes):
        holder = OutputFolder(out).store.holder()
        for number, process in enumerate(processes):
            if holder and holder.owner.endswith(f", process {process.pid}"):
                return number
        time.sleep(0.05)
    raise AssertionError([ended(process) for process in processes])


def ended(process: subprocess.Popen[str]) -> str:
    """What a peer printed to its end, which must be a good one."""
    told, _ = process.communicate(timeout=250)
    assert process.returncode == 0, told
    return told


def carry_out_and_kill(sources: Path, out: str) -> list[str]:
    """Start three peers, kill the leader in the middle of it, start it again; what all but the killed one printed."""
    with started(sources, out, range(PEERS)) as processes:
        number = find_leader(processes, out)
        assert any('"stage_started", "stage": "scan"' in line for line in processes[number].stdout or ())
        processes[number].kill()
        processes[number].wait()
        with started(sources, out, [number]) as again:
            return [ended(process) for process in [*again, *processes] if process is not processes[number]]


def test_a_killed_leader_is_replaced_and_the_digests_are_those_of_a_plain_run(
    sources: Path, plain: dict[str, str], tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    told = carry_out_and_kill(sources, out)
    assert len(told) == PEERS
    assert any(": leads" in text for text in told)
    assert digests(out) == plain
    verified = subprocess.run([*COMMAND[:-1], "verify", out], check=False, capture_output=True, text=True, cwd=ROOT)
    assert verified.returncode == 0, verified.stdout


@pytest.mark.engines
def test_the_same_on_an_object_store(sources: Path, plain: dict[str, str], object_store: Any) -> None:
    out = f"s3://cppmill-tests/{uuid.uuid4()}/out"
    carry_out_and_kill(sources, out)
    assert digests(out) == plain
    locks = [name for name in OutputFolder(out).files(".cache/peers") if name.endswith(".lock")]
    assert locks == [], "all were released"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A search path on which `cppmill` is that of this checkout."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "cppmill"
    program.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m pipelines.cli "$@"\n')
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def carry_out(command: Sequence[str], environments: Sequence[dict[str, str]]) -> None:
    """Start a command in each environment at the same time, and wait for all."""
    processes = [
        subprocess.Popen(
            command, env={**os.environ, **more}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for more in environments
    ]
    try:
        for process in processes:
            ended(process)
    finally:
        for process in processes:
            process.kill()


def test_the_tasks_of_the_slurm_array_carry_out_a_run(
    sources: Path, plain: dict[str, str], programs: str, tmp_path: Path
) -> None:
    places = {"PATH": programs, "SOURCES": str(sources), "OUT": str(tmp_path / "out")}
    array = {"SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_CPUS_PER_TASK": "1"}
    tasks = [{**places, **array, "SLURM_ARRAY_TASK_ID": number} for number in ("1", "2")]
    carry_out([str(ROOT / "deploy" / "peers" / "slurm.sh"), *OPTIONS[:4]], tasks)
    assert digests(places["OUT"]) == plain
    keys = [name.split("-")[0] for name in OutputFolder(places["OUT"]).files(ATTEMPTS)]
    assert len(keys) == len(set(keys)) > 0, "a unit ran twice"


def test_the_pods_of_the_kubernetes_job_carry_out_a_run(
    sources: Path, plain: dict[str, str], programs: str, tmp_path: Path
) -> None:
    job = yaml.safe_load((ROOT / "deploy" / "peers" / "kubernetes.yaml").read_text())["spec"]
    [container] = job["template"]["spec"]["containers"]
    declared = {variable["name"]: variable["value"] for variable in container["env"]}
    assert job["completionMode"] == "Indexed"
    assert declared["PEERS"] == str(job["completions"]) == str(job["parallelism"])
    places = {"PATH": programs, "SOURCES": str(sources), "OUT": str(tmp_path / "out")}
    assert declared.keys() == {*places, "THREADS", "PEERS"} - {"PATH"}
    pods = [{**declared, **places, "PEERS": "2", "THREADS": "1", "JOB_COMPLETION_INDEX": index} for index in "01"]
    [script] = container["args"]
    carry_out([*container["command"], f"{script} {' '.join(OPTIONS[:4])}"], pods)
    assert digests(places["OUT"]) == plain
