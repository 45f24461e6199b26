"""The image of Dataflow's workers has the versions that everything else has, and its files are there to copy."""

import fnmatch
import re
import subprocess
import sys

import pytest

from pipelines.engines.cache import FILES

PINNED = re.compile(r"^([a-z0-9-]+)==([^ ]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def containerfile(repository):
    return (repository / "deploy/dataflow/Containerfile").read_text()


@pytest.fixture(scope="module")
def locks(repository):
    """The versions by name: of this environment, which may have one a platform, and of the image."""
    names = ("requirements.lock", "deploy/dataflow/requirements.lock")
    here, image = (PINNED.findall((repository / name).read_text()) for name in names)
    return {name: {version for found, version in here if found == name} for name, _ in here}, dict(image)


@pytest.fixture(scope="module")
def gathered(repository):
    """What `make dataflow-context` copies."""
    command = ["make", "-n", "dataflow-context"]
    plan = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout
    [line] = [line for line in plan.splitlines() if line.startswith("cp ")]
    return line.split()[1:-1]


def test_the_image_has_the_versions_of_this_environment(locks):
    here, image = locks
    shared = here.keys() & image.keys()
    assert {"pyarrow", "numpy", "apache-beam", "tokenizers"} <= shared
    assert [name for name in shared if image[name] not in here[name]] == []


def test_the_image_is_based_on_the_pinned_beam(containerfile, locks):
    beam = locks[1]["apache-beam"]
    assert re.findall("^ARG BASE=(.*)$", containerfile, re.MULTILINE) == [
        f"docker.io/apache/beam_python3.11_sdk:{beam}"
    ]
    assert re.findall("^FROM (.*)$", containerfile, re.MULTILINE) == ["${LAUNCHER} AS launcher", "${BASE}"]
    assert FILES["boot"].startswith(f"boot-{beam}/")


def test_every_file_that_the_image_copies_is_gathered(containerfile, repository, gathered):
    lines = [line.split() for line in containerfile.splitlines() if line.startswith("COPY ") and "--from" not in line]
    names = [path.rpartition("/")[2] for path in gathered]
    assert [pattern for line in lines for pattern in line[1:-1] if not fnmatch.filter(names, pattern)] == []
    assert [path for path in gathered if not path.startswith("dist/") and not (repository / path).is_file()] == []


def test_the_wheels_that_are_gathered_are_those_that_are_built(repository, gathered, tmp_path):
    wheel, core = [path.removeprefix("dist/") for path in gathered if path.endswith(".whl")]
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path), str(repository)]
    subprocess.run(command, check=True, capture_output=True)
    assert fnmatch.filter([path.name for path in tmp_path.iterdir()], wheel)
    [built] = [path.name for path in (repository / ".make/wheels").iterdir()]
    assert fnmatch.fnmatch(built, core)
    assert "-cp311-abi3-manylinux" in built
