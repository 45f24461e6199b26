"""The aarch64 wheel under QEMU: it imports, gives the golden ids, and makes the same tokenizer and dataset."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deploy.release.emulation import python_command

pytestmark = [pytest.mark.aarch64, pytest.mark.timeout(1200)]
VERSION = importlib.metadata.version("cppmill")
WHEELS = (
    f"cppmill_core-{VERSION}-cp311-abi3-manylinux_2_28_aarch64.whl",
    f"cppmill-{VERSION}-py3-none-any.whl",
)
GOLDEN = """
import json, platform, sys
import cppmill_core
from pipelines.engines.worker_check import check_worker

check_worker(cppmill_core.__version__)
print(json.dumps([platform.machine(), cppmill_core.__file__]))
"""
RUN = "import sys, cppmill; sys.exit(cppmill.main())"


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of a release and the locked packages for aarch64; nothing is built."""
    folder = tmp_path_factory.mktemp("aarch64") / "site"
    uv = [Path(sys.executable).with_name("uv"), "--quiet", "--system-certs", "pip", "install"]
    uv += ["--python", sys.executable, "--python-version", "3.11", "--python-platform", "aarch64-manylinux_2_28"]
    uv += ["--only-binary", ":all:", "--no-deps", "--target", folder]
    run([*uv, "--require-hashes", "--requirement", repository / "requirements/run.lock"], dict(os.environ))
    run([*uv, "--no-index", *(repository / "dist" / wheel for wheel in WHEELS)], dict(os.environ))
    return folder


def test_it_gives_the_golden_ids(site: Path, tmp_path: Path) -> None:
    machine, place = json.loads(emulated(["-c", GOLDEN], site, tmp_path))
    assert (machine, Path(place).parent) == ("aarch64", site / "cppmill_core")


def test_it_makes_the_same_tokenizer_and_dataset(site: Path, tmp_path: Path) -> None:
    arguments = ["run", np.get_include(), "--profile", "demo", "--quiet", "--out"]
    emulated(["-c", RUN, *arguments, tmp_path / "theirs"], site, tmp_path)
    run([Path(sys.executable).with_name("cppmill"), *arguments, tmp_path / "ours"], dict(os.environ))
    theirs, ours = (json.loads((tmp_path / name / "receipt.json").read_text()) for name in ("theirs", "ours"))
    assert theirs["tokenizer"]["digest"] == ours["tokenizer"]["digest"]
    assert theirs["dataset"]["digest"] == ours["dataset"]["digest"]


def emulated(arguments: list[object], site: Path, home: Path) -> str:
    """The output of the emulated Python, which sees the packages of the folder and nothing of the checkout."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(site)}
    return run(python_command("-P", *arguments), environment, cwd=home)


def run(command: list[object], environment: dict[str, str], cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], env=environment, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
