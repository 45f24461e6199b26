"""The service's way, offline: Beam's client submits, a stand-in for the job API runs it on Prism with the image."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deploy.image.pool import WorkerPool
from deploy.local.gcs import GoogleStore
from deploy.local.s3 import ObjectStore
from pipelines.engines.cache import engine_path
from tests.engines.job_service import CANCELLED, DONE, FAILED, QUOTA, RUNNING, Job, JobService
from tests.engines.secret_service import NAME, SecretService

pytestmark = [pytest.mark.image, pytest.mark.timeout(1200)]

BUCKET = "cppmill-tests"
VOCAB_SIZE = "12288"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleStore]:
    """A store with the sources below `sources/`."""
    with GoogleStore(tmp_path_factory.mktemp("store")) as store:
        store.create_bucket(BUCKET)
        root = Path(np.get_include())
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            name = urllib.parse.quote(f"sources/{path.relative_to(root)}", safe="")
            url = f"{store.endpoint}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}"
            urllib.request.urlopen(urllib.request.Request(url, data=path.read_bytes(), method="POST")).close()
        yield store


@pytest.fixture(scope="module")
def image() -> str:
    """The name of the image."""
    name = os.environ.get("CPPMILL_IMAGE")
    if not name:
        pytest.skip("no image: `make test-image` builds one and says its name in CPPMILL_IMAGE")
    return name


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A store that speaks S3, with the sources below `sources/`."""
    folder = tmp_path_factory.mktemp("s3")
    with ObjectStore(folder) as store:
        shutil.copytree(np.get_include(), folder / "objects" / BUCKET / "sources")
        yield store


@pytest.fixture(scope="module")
def secrets(s3: ObjectStore) -> Iterator[SecretService]:
    """Where the credentials of S3 are, and nowhere else."""
    with SecretService(s3.environment) as service:
        yield service


@pytest.fixture(scope="module")
def pool(
    image: str, store: GoogleStore, secrets: SecretService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where the image's pool of workers listens."""
    environment = store.environment | secrets.environment
    with WorkerPool(tmp_path_factory.mktemp("pool"), image, environment=environment) as pool:
        yield pool.beam_options[-1].partition("=")[2]


@pytest.fixture(scope="module")
def local(repository: Path, store: GoogleStore, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The receipt of a run in one process, of the same sources on this machine."""
    out = tmp_path_factory.mktemp("local") / "out"
    code, said = launch(repository, store, "run", np.get_include(), "--out", str(out), "--vocab-size", VOCAB_SIZE)
    assert code == 0, said
    found: dict[str, Any] = json.loads((out / "receipt.json").read_bytes())
    return found


@contextmanager
def service(folder: Path, store: GoogleStore, pool: str = "localhost:1") -> Iterator[JobService]:
    with JobService(folder, storage=store.endpoint, pool=pool) as jobs:
        yield jobs


def start_program(repository: Path, store: GoogleStore, *words: str) -> subprocess.Popen[str]:
    """Start a program of Python where Google's packages are."""
    python_path = os.pathsep.join([str(repository), str(engine_path("dataflow"))])
    environment = os.environ | store.environment | {"PYTHONPATH": python_path}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *words], env=environment, cwd=repository, stdout=pipe, stderr=pipe, text=True
    )


def start(repository: Path, store: GoogleStore, *words: str) -> subprocess.Popen[str]:
    """Start a command of cppmill."""
    return start_program(repository, store, "-m", "pipelines.cli", *words)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a program; return its exit code and all that it wrote."""
    said = "".join(process.communicate())
    return process.returncode, said


def launch(repository: Path, store: GoogleStore, *words: str) -> tuple[int, str]:
    """Run a command of cppmill to its end; return its exit code and all that it wrote."""
    return finish(start(repository, store, *words))


def ours(jobs: JobService, image: str) -> list[str]:
    """The options that lead Beam's client to the stand-in."""
    words = ["--project=p", "--region=us-central1", f"--temp_location=gs://{BUCKET}/tmp", "--no_auth"]
    return [*words, f"--dataflow_endpoint={jobs.endpoint}", f"--sdk_container_image={image}"]


def run_words(out: str, jobs: JobService, *, image: str = "localhost/worker") -> list[str]:
    words = ["run", f"gs://{BUCKET}/sources", "--out", out, "--vocab-size", VOCAB_SIZE, "--engine", "dataflow", "--"]
    return [*words, *ours(jobs, image)]


def digests(found: dict[str, Any]) -> tuple[str, str]:
    return found["tokenizer"]["digest"], found["dataset"]["digest"]


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 900
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def receipt(store: GoogleStore, out: str) -> dict[str, Any]:
    name = urllib.parse.quote(f"{out.removeprefix(f'gs://{BUCKET}/')}/receipt.json", safe="")
    with urllib.request.urlopen(f"{store.endpoint}/storage/v1/b/{BUCKET}/o/{name}?alt=media") as answer:
        content: dict[str, Any] = json.load(answer)
    return content


def test_a_run_through_the_job_api_has_the_digests_of_a_local_run(
    repository: Path, store: GoogleStore, image: str, pool: str, local: dict[str, Any], tmp_path: Path
) -> None:
    out = f"gs://{BUCKET}/run"
    with service(tmp_path, store, pool) as jobs:
        code, said = launch(repository, store, *run_words(out, jobs, image=image))
    assert code == 0, said
    assert [job.state for job in jobs.jobs] == [DONE] * len(jobs.jobs)
    assert {name for job in jobs.jobs for name in job.images} == {image}
    assert {job.name.split("-")[1] for job in jobs.jobs} >= {"read", "ingest", "scan", "tokenize", "validate"}
    assert digests(receipt(store, out)) == digests(local)


def test_a_killed_launcher_is_started_again_and_reuses_what_is_finished(
    repository: Path, store: GoogleStore, image: str, pool: str, local: dict[str, Any], tmp_path: Path
) -> None:
    out = f"gs://{BUCKET}/killed"
    with service(tmp_path, store, pool) as jobs:
        process = start(repository, store, *run_words(out, jobs, image=image))
        wait_for(lambda: process.poll() is not None or [job for job in jobs.jobs if "-scan-" in job.name])
        process.kill()
        process.communicate()
        wait_for(lambda: jobs.jobs[-1].state != RUNNING)
        before = len(jobs.jobs)
        code, said = launch(repository, store, *run_words(out, jobs, image=image))
    assert code == 0, said
    assert not {"read", "ingest"} & {job.name.split("-")[1] for job in jobs.jobs[before:]}
    assert digests(receipt(store, out)) == digests(local)


def launch_template(
    repository: Path, store: GoogleStore, jobs: JobService, image: str, parameters: dict[str, str]
) -> tuple[int, str]:
    """Start the template's program as Google's launcher does; return its exit code and all that it wrote."""
    before = len(jobs.jobs)
    given = parameters | {"beam_options": f"--no_auth --dataflow_endpoint={jobs.endpoint}"}
    words = [*(f"--{name}={value}" for name, value in given.items()), "--runner=DataflowRunner"]
    words += ["--sdk_location=container", "--experiments=use_runner_v2", "--job_name=template"]
    code, said = finish(start_program(repository, store, "deploy/dataflow/launcher.py", *words, *ours(jobs, image)))
    if code == 0:
        wait_for(lambda: jobs.jobs[before].state != RUNNING)
    return code, said


def test_the_template_carries_out_a_whole_run(
    repository: Path, store: GoogleStore, image: str, pool: str, local: dict[str, Any], tmp_path: Path
) -> None:
    out = f"gs://{BUCKET}/template"
    given = {"sources": f"gs://{BUCKET}/sources", "out": out, "vocab_size": VOCAB_SIZE}
    with service(tmp_path, store, pool) as jobs:
        code, said = launch_template(repository, store, jobs, image, given)
    assert code == 0, said
    assert jobs.jobs[0].name == "template"
    assert [job.state for job in jobs.jobs] == [DONE] * len(jobs.jobs), [job.messages for job in jobs.jobs]
    assert digests(receipt(store, out)) == digests(local)


def test_the_template_retokenizes_from_s3_with_a_secret_and_then_finds_nothing_new(
    repository: Path,
    store: GoogleStore,
    secrets: SecretService,
    image: str,
    pool: str,
    local: dict[str, Any],
    tmp_path: Path,
) -> None:
    """The launcher and the workers know no more of S3 than the name of the secret, from the options of their jobs."""
    versions, given = f"gs://{BUCKET}/store", {"command": "retokenize", "sources": f"s3://{BUCKET}/sources"}
    given |= {"store": versions, "vocab_size": VOCAB_SIZE, "s3_secret": NAME}
    with service(tmp_path, store, pool) as jobs:
        code, said = launch_template(repository, store, jobs, image, given)
        assert code == 0, said
        made = len(jobs.jobs)
        assert [job.state for job in jobs.jobs] == [DONE] * made, [job.messages for job in jobs.jobs]
        code, said = launch_template(repository, store, jobs, image, given)
    assert code == 0, said
    assert [(job.name, job.state) for job in jobs.jobs[made:]] == [("template", DONE)], jobs.jobs[-1].messages
    assert made > 1
    assert digests(receipt(store, f"{versions}/versions/v000001")) == digests(local)
    assert secrets.asked
    assert "cppmill-secret" not in json.dumps([job.request for job in jobs.jobs])


def test_a_job_that_fails_is_reported_with_its_message(repository: Path, store: GoogleStore, tmp_path: Path) -> None:
    def break_it(_: object) -> None:
        time.sleep(3)  # the client waits for it by then
        raise RuntimeError("Workflow failed. Causes: the disk of the worker is full")

    with service(tmp_path, store) as jobs:
        jobs.before = break_it
        code, said = launch(repository, store, *run_words(f"gs://{BUCKET}/failed", jobs))
    assert code == 1
    assert [job.state for job in jobs.jobs] == [FAILED]
    [line] = [line for line in said.splitlines() if line.startswith("error: ")]
    assert "the disk of the worker is full; finished units are kept" in line
    assert "Traceback" not in said


def test_a_refused_submission_is_reported_with_its_reason(repository: Path, store: GoogleStore, tmp_path: Path) -> None:
    with service(tmp_path, store) as jobs:
        jobs.refuse = (429, QUOTA)
        code, said = launch(repository, store, *run_words(f"gs://{BUCKET}/refused", jobs))
    assert code == 1
    assert jobs.jobs == []
    [line] = [line for line in said.splitlines() if line.startswith("error: ")]
    assert f"429 POST {jobs.endpoint}" in line
    assert QUOTA in line
    assert "Traceback" not in said


def test_ctrl_c_cancels_the_job(repository: Path, store: GoogleStore, tmp_path: Path) -> None:
    def wait(job: Job) -> None:
        wait_for(lambda: job.state != RUNNING)

    with service(tmp_path, store) as jobs:
        jobs.before = wait
        process = start(repository, store, *run_words(f"gs://{BUCKET}/cancelled", jobs))
        wait_for(lambda: jobs.asked)
        process.send_signal(signal.SIGINT)
        said = "".join(process.communicate())
    assert process.returncode == 130, said
    assert [job.state for job in jobs.jobs] == [CANCELLED]
    assert "Traceback" not in said
