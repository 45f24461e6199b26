"""The credentials of S3 come from a secret, in every process; a secret that cannot be read is one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.local.s3 import ObjectStore
from pipelines.engines.cache import engine_path
from tests.engines.secret_service import NAME, REFUSED, SecretService
from tests.prepared import Run

BUCKET = "cppmill-tests"
Finished = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def store(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A store with the sources below `sources/`."""
    folder = tmp_path_factory.mktemp("store")
    with ObjectStore(folder) as store:
        shutil.copytree(sources / "arrow", folder / "objects" / BUCKET / "sources")
        yield store


@pytest.fixture(scope="module")
def secrets(store: ObjectStore) -> Iterator[SecretService]:
    with SecretService(store.environment) as service:
        yield service


@pytest.fixture
def with_secret(repository: Path, secrets: SecretService) -> Callable[..., Finished]:
    """Run a command of cppmill that knows of S3 no more than the name of a secret."""

    def run(secret: str, *words: str) -> Finished:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        variables |= {"PYTHONPATH": os.pathsep.join([str(repository), str(engine_path("dataflow"))])}
        variables |= {"CPPMILL_S3_SECRET": secret, **secrets.environment}
        command = [sys.executable, "-m", "pipelines.cli", *words]
        return subprocess.run(command, env=variables, cwd=repository, capture_output=True, text=True, check=False)

    return run


def test_a_run_reads_and_writes_s3_with_the_credentials_of_a_secret(
    with_secret: Callable[..., Finished], secrets: SecretService, store: ObjectStore, run: Run
) -> None:
    words = ["run", f"s3://{BUCKET}/sources", "--out", f"s3://{BUCKET}/run", "--tokenizer", f"{run.out}/tokenizer"]
    done = with_secret(NAME, *words)
    assert done.returncode == 0, done.stderr
    assert {path.partition("?")[0] for path in secrets.asked} == {f"/v1/{NAME}/versions/latest:access"}
    assert store.environment["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        (REFUSED, "403 .*Permission 'secretmanager.versions.access' denied"),
        ("projects/p/secrets/none", "404 .*not found"),
        (f"{NAME}/versions/7", "404 .*not found"),
    ],
)
def test_a_secret_that_cannot_be_read_is_one_line(
    with_secret: Callable[..., Finished], secret: str, reason: str
) -> None:
    done = with_secret(secret, "status", f"s3://{BUCKET}/run")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: {secret}")
    assert re.search(reason, line)
