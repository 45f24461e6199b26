"""What is shipped: the six packages with their data and nothing else, one version everywhere, one command."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import cppmill_core
import pytest

PACKAGES = {"cppmill", "pipelines", "transforms", "schemas", "tokenizer_build", "configs"}
NOT_SOURCE = (".*", "__pycache__", "*.egg-info", "build", "dist", "out", "target")


@pytest.fixture(scope="module")
def metadata(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is built from it; the checkout itself is left alone."""
    folder = tmp_path_factory.mktemp("distribution")
    shutil.copytree(repository, folder / "source", ignore=shutil.ignore_patterns(*NOT_SOURCE))
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


def source_files(repository: Path) -> set[str]:
    files = (file for package in PACKAGES for file in (repository / package).rglob("*"))
    return {str(file.relative_to(repository)) for file in files if file.is_file() and "__pycache__" not in file.parts}


def test_the_sdist_holds_the_six_packages_and_no_tests(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = [member.name.split("/", 1)[1] for member in archive if member.isfile()]
    folders = {name.split("/")[0] for name in names if "/" in name}
    assert folders == PACKAGES | {"cppmill.egg-info"}
    assert {name for name in names if "/" not in name} == {
        *("LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg", "setup.py")
    }


def test_the_wheel_holds_every_file_of_the_six_packages(built: Path, repository: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == source_files(repository)


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_imports_come_from_the_checkout(name: str, repository: Path) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin == str(repository / name / "__init__.py")


def test_one_version_everywhere(repository: Path, metadata: dict[str, Any]) -> None:
    native = tomllib.loads((repository / "native" / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    version = metadata["project"]["version"]
    assert version == native == cppmill_core.__version__
    assert version == importlib.metadata.version("cppmill") == importlib.metadata.version("cppmill-core")
    assert f"cppmill-core=={version}" in metadata["project"]["dependencies"]


def test_make_and_the_changelog_have_that_version(repository: Path, metadata: dict[str, Any]) -> None:
    version = metadata["project"]["version"]
    plan = subprocess.run(["make", "-n", "wheels"], cwd=repository, check=True, capture_output=True, text=True).stdout
    assert set(re.findall(r"dist/cppmill(?:[_-]core)?-([0-9][0-9a-z.]*?)(?:\.cdx\.json|-\*\.whl)", plan)) == {version}
    heading = re.compile(r"^## \[(.+)\] - (?:not released|\d{4}-\d{2}-\d{2})$", re.MULTILINE)
    headings = heading.findall((repository / "CHANGELOG.md").read_text())
    assert headings[0] == version


def test_the_console_script_is_the_command_line(metadata: dict[str, Any]) -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="cppmill")
    assert script.value == metadata["project"]["scripts"]["cppmill"] == "cppmill:main"
    assert callable(script.load())


def test_the_native_wheel_holds_one_typed_module() -> None:
    files = {str(file) for file in importlib.metadata.files("cppmill-core") or ()}
    assert {name.split("/")[0] for name in files if ".dist-info/" not in name} == {"cppmill_core"}
    assert {f"cppmill_core/{name}" for name in ("_native.abi3.so", "_native.pyi", "py.typed")} <= files


def test_the_native_module_is_the_installed_one(repository: Path) -> None:
    assert cppmill_core.__file__ is not None
    assert not Path(cppmill_core.__file__).is_relative_to(repository / "native")
