"""Faults on a Flink cluster while it tokenizes: every file that is published is that of an undisturbed local run.

Everything up to the tokenizer is made once, on this machine. Each test goes on from a copy of it, on an object store
too, and strikes when the first token shard has its name. What comes after the tokens is made on this machine again.
The units are small, and their workers wait in each of them: others are at work when a test strikes, and most have not
begun, on a machine of any speed.

One cluster of four TaskManagers serves all tests. Two tests end a TaskManager for good, so at each strike two or more
are there; a job takes two slots.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from deploy.local.flink import FlinkCluster
from deploy.local.gcs import GoogleStore
from deploy.local.s3 import ObjectStore
from pipelines.engines.worker import LOG_FOLDER_VARIABLE
from schemas.digests import sha256_file
from tests.processes import ForkedProcess, ProcessServer
from transforms.storage.protocol import LOCK

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

OPTIONS = ("--profile", "demo", "--unit-bytes", "65536", "--threads", "1", "--quiet")
COPIES = 2
LEAST_UNITS = 12
OUTAGE_SECONDS = 10
UNIT_SECONDS = 1
WORKER = f"""#!{sys.executable}
import time
from pipelines.engines.worker import main
from transforms.units import execution

note_attempt = execution.note_attempt

def note_and_wait(unit, out):
    note_attempt(unit, out)
    time.sleep({UNIT_SECONDS} if unit.stage == "tokenize" else 0)

execution.note_attempt = note_and_wait
main()
"""
"""The worker's program, with units of tokenize that take a while from the note of their begin."""
UPLOAD = """
import sys
from transforms.storage.urls import open_url
open_url(sys.argv[2])[0].put(sys.argv[1], sys.argv[2], recursive=True)
"""
"""A program, as no process but its own may keep a client of a store that will be gone."""

Wait = Callable[[], None]
Strike = Callable[[int, Wait], None]
"""Strikes the TaskManager of a worker; both are stopped, in the middle of a unit."""
Note = tuple[float, str, dict[str, Any]]


def finish(processes: ProcessServer, corpus: Path, out: Path | str, *commands: str) -> None:
    for command in commands:
        assert processes.command(command, corpus, "--out", out, *OPTIONS).wait(timeout=300) == 0


@pytest.fixture(scope="module")
def corpus(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers of the other tests, some times over, no file equal to another."""
    folder = tmp_path_factory.mktemp("corpus")
    for copy in range(COPIES):
        shutil.copytree(sources, folder / f"copy{copy}")
        for file in (folder / f"copy{copy}").rglob("*.*"):
            file.write_bytes(f"// {copy}\n".encode() + file.read_bytes())
    return folder


@pytest.fixture(scope="module")
def begun_run(corpus: Path, processes: ProcessServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OUT with documents, counts and a tokenizer, and no tokens yet."""
    out = tmp_path_factory.mktemp("begun") / "out"
    finish(processes, corpus, out, "ingest", "scan", "build")
    return out


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, begun_run: Path, processes: ProcessServer, checker: Callable[..., str]) -> dict[str, str]:
    """The files of a run on this machine that nothing happened to, proven by the checker."""
    out = begun_run.with_name("undisturbed")
    shutil.copytree(begun_run, out)
    finish(processes, corpus, out, "run")
    assert not checker(out)
    return published(out)


def published(out: Path) -> dict[str, str]:
    """Every file of OUT with its SHA-256, but those of the cache and the lock."""
    names = [file.relative_to(out) for file in out.rglob("*") if file.is_file()]
    kept = [name for name in names if name.parts[0] not in (".cache", ".lock")]
    return {str(name): sha256_file(out / name) for name in kept}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkCluster]:
    # Two are killed and one is frozen; the last takes over.
    with FlinkCluster(tmp_path_factory.mktemp("flink"), task_managers=4, slots=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def on_flink(
    cluster: FlinkCluster, corpus: Path, processes: ProcessServer, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., ForkedProcess]:
    """Start to tokenize on the cluster, with the slow worker, which gets these variables too."""
    folder = tmp_path_factory.mktemp("worker")
    worker = folder / "slow-worker"
    worker.write_text(WORKER)
    worker.chmod(0o755)
    master = (f"--flink_master={cluster.rest_address}", f"--flink_job_server_jar={cluster.job_server}")

    def start(out: Path | str, **variables: str) -> ForkedProcess:
        environment = {"command": str(worker), "env": {LOG_FOLDER_VARIABLE: str(folder), **variables}}
        beam = (*master, "--parallelism=2", f"--environment_config={json.dumps(environment)}")
        return processes.command("tokenize", corpus, "--out", out, *OPTIONS, "--engine", "flink", "--", *beam)

    return start


def kill_task_manager(worker: int, again: Wait) -> None:
    """The process alone: its workers go on with what they have been given until they notice."""
    group = os.getpgid(worker)
    os.kill(group, signal.SIGKILL)
    os.killpg(group, signal.SIGCONT)


def lose_machine(worker: int, again: Wait) -> None:
    """The TaskManager with its workers."""
    os.killpg(os.getpgid(worker), signal.SIGKILL)


def freeze_machine(worker: int, again: Wait) -> None:
    """The TaskManager with its workers; when others have begun their units again, they go on with them too."""
    again()
    os.killpg(os.getpgid(worker), signal.SIGCONT)


def kill_python_worker(worker: int, again: Wait) -> None:
    group = os.getpgid(worker)
    os.kill(worker, signal.SIGKILL)
    os.killpg(group, signal.SIGCONT)


@pytest.mark.parametrize(
    ("strike", "loses_units"),
    [(kill_task_manager, False), (lose_machine, True), (freeze_machine, True), (kill_python_worker, True)],
)
def test_a_fault_while_tokenizing_changes_no_byte(
    loses_units: bool,
    strike: Strike,
    corpus: Path,
    begun_run: Path,
    undisturbed: dict[str, str],
    cluster: FlinkCluster,
    on_flink: Callable[..., ForkedProcess],
    processes: ProcessServer,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    shutil.copytree(begun_run, out)
    with on_flink(out) as run:
        try:
            worker = stop_in_unit(out, run)
            assert os.getpgid(worker) in cluster.task_managers
            begun_before = begun(out)
            strike(worker, lambda: until(run, lambda: max(begun(out).values()) > 1))
            assert run.wait(timeout=300) == 0
        finally:
            run.kill()
    attempts = begun(out)
    assert len(attempts) >= LEAST_UNITS
    assert len(begun_before) < len(attempts), "the strike came when every unit had begun"
    assert not loses_units or max(attempts.values()) > 1, "no unit that was lost began again"
    assert int(loses_units) <= told_repeated(out) <= sum(number > 1 for number in attempts.values())
    finish(processes, corpus, out, "run")
    assert not begun(out), "tokens were missing"
    assert published(out) == undisturbed


@pytest.fixture(params=[ObjectStore, GoogleStore])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObjectStore | GoogleStore]:
    """A store of the test's own, which this process and all that it starts find in their environment."""
    with request.param(tmp_path / "store") as store:
        store.create_bucket("bucket")
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        yield store


def test_a_store_that_is_gone_for_ten_seconds_changes_no_byte(
    store: ObjectStore | GoogleStore,
    corpus: Path,
    begun_run: Path,
    undisturbed: dict[str, str],
    on_flink: Callable[..., ForkedProcess],
    processes: ProcessServer,
    tmp_path: Path,
) -> None:
    url, out = f"{store.scheme}://bucket/out", tmp_path / "store/objects/bucket/out"
    shutil.copytree(begun_run, tmp_path / "begun", ignore=shutil.ignore_patterns(LOCK))
    with processes.start(UPLOAD, [f"{tmp_path}/begun/", url]) as upload:
        assert upload.wait() == 0
    with on_flink(url, **store.environment) as run:
        try:
            wait_for_shard(out, run)
            begun_before = begun(out)
            store.kill()
            time.sleep(OUTAGE_SECONDS)
            store.restart()
            assert run.wait(timeout=300) == 0
        finally:
            run.kill()
    attempts = begun(out)
    assert len(begun_before) < len(attempts), "the strike came when every unit had begun"
    finish(processes, corpus, url, "run")
    assert not begun(out), "tokens were missing"
    assert published(out) == undisturbed


def wait_for_shard(out: Path, run: ForkedProcess) -> None:
    until(run, lambda: any(out.glob("tokens/part-*.parquet")))


def stop_in_unit(out: Path, run: ForkedProcess) -> int:
    """Stop a TaskManager with its workers, in the middle of a unit, once there is a token shard; return the worker."""
    wait_for_shard(out, run)
    while True:
        _, name, note = last = newest(out)
        group = os.getpgid(int(note["pid"]))
        os.killpg(group, signal.SIGSTOP)
        if not (out / f"tokens/part-{name.partition('-')[0]}.parquet").exists():
            return int(note["pid"])
        os.killpg(group, signal.SIGCONT)  # on a slow machine the unit was finished meanwhile
        until(run, lambda last=last: newest(out) != last)


def until(run: ForkedProcess, found: Callable[[], bool]) -> None:
    """Wait until something is found; the run must not end before."""
    while not found():
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"the run ended too early, with exit code {run.wait(timeout=0.01)}")


def begun(out: Path) -> Counter[str]:
    """How often each unit of tokenize was begun."""
    return Counter(note["label"] for _, _, note in notes(out))


def newest(out: Path) -> Note:
    """The note of the unit that began last."""
    return max(notes(out), key=lambda note: note[:2])


def told_repeated(out: Path) -> int:
    """How many units of tokenize ran more than once, as the last run's summary tells."""
    events = max((out / ".cache/events").glob("*.jsonl")).read_text().splitlines()
    done = [
        event for event in map(json.loads, events) if (event["event"], event.get("stage")) == ("stage_done", "tokenize")
    ]
    return int(done[-1]["summary"].get("units that ran more than once", 0))


def notes(out: Path) -> list[Note]:
    """When each attempt at a unit of tokenize began, the name of its note, the unit's key first, and the note."""
    files = (out / ".cache/attempts").glob("*.json")
    found = [(file.stat().st_mtime, file.name, json.loads(file.read_bytes())) for file in files]
    return [note for note in found if note[2]["stage"] == "tokenize"]
