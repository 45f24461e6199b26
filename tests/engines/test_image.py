"""The image of Dataflow's workers: it boots, and what it works out has the digests of a local run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.image.pool import WorkerPool
from pipelines.engines.cache import engine_path

pytestmark = [pytest.mark.engines, pytest.mark.image, pytest.mark.timeout(1200)]


@pytest.fixture
def image() -> str:
    """The name of the image."""
    name = os.environ.get("CPPMILL_IMAGE")
    if not name:
        pytest.skip("no image: `make test-image` builds one and says its name in CPPMILL_IMAGE")
    return name


@pytest.fixture
def sources(image: str) -> list[Path]:
    """The sources of the demo."""
    return [Path(name) for name in os.environ["CPPMILL_DEMO_SOURCES"].split()]


def run(repository: Path, sources: list[Path], out: Path, *arguments: str) -> dict[str, Any]:
    """Run the demo and return its receipt."""
    command = [sys.executable, "-m", "pipelines.cli", "run", *map(str, sources), "--out", str(out), "--quiet"]
    command += ["--profile", "demo", *arguments]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    receipt: dict[str, Any] = json.loads((out / "receipt.json").read_bytes())
    return receipt


def test_workers_of_the_image_give_the_digests_of_a_local_run(
    repository: Path, sources: list[Path], image: str, tmp_path: Path
) -> None:
    assert engine_path("prism").is_file()
    out = tmp_path / "out"
    out.mkdir()
    with WorkerPool(tmp_path / "pool", image, read=sources, write=[out]) as pool:
        theirs = run(repository, sources, out / "image", "--engine", "prism", "--", *pool.beam_options)
        assert "Provision info" in pool.log.read_text()  # a worker was started there
    ours = run(repository, sources, out / "local")
    assert theirs["tokenizer"]["digest"] == ours["tokenizer"]["digest"]
    assert theirs["dataset"]["digest"] == ours["dataset"]["digest"]


def test_the_pool_goes_with_all_that_it_started(image: str, tmp_path: Path) -> None:
    with WorkerPool(tmp_path, image) as first:
        pass
    assert "Starting worker pool" in first.log.read_text()
    with WorkerPool(tmp_path, image):  # its port is free again
        pass
    left = subprocess.run(["buildah", "containers", "--format", "{{.ContainerName}}"], capture_output=True, text=True)
    assert "cppmill-pool" not in left.stdout
