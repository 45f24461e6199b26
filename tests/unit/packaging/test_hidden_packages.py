"""A folder or file of the user's that hides a package of cppmill ends both programs at start with one clear line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cppmill.start import PACKAGES

PROGRAMS = {
    "cppmill": ["-c", "import cppmill; cppmill.main()", "--version"],
    "cppmill-worker": ["-c", "import cppmill; cppmill.worker()", "--id=1-1", "--provision_endpoint=127.0.0.1:1"],
}


def start(arguments: list[str], repository: Path, folder: Path, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Start a program with a folder of the user's in front of ours."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{repository}"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_hides_ours_is_named_with_what_to_do(
    name: str, program: str, repository: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / name / "__init__.py"
    theirs.parent.mkdir()
    theirs.touch()
    done = start(PROGRAMS[program], repository, tmp_path, cwd=repository.parent)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {theirs}: Python imports this as {name!r} in place of the package of cppmill in ")
    assert line.endswith(
        f"; rename it, start from a folder other than {tmp_path}, or take that folder out of PYTHONPATH"
    )
    assert str(repository / name) in line


@pytest.mark.parametrize("command", [["-m", "cppmill"], ["-m", "pipelines.cli"]])
def test_a_file_in_the_working_directory_is_found_too(command: list[str], repository: Path, tmp_path: Path) -> None:
    (tmp_path / "configs.py").touch()
    done = start([*command, "--version"], repository, Path("/no/such"), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {tmp_path}/configs.py: Python imports this as 'configs' in place of ")
    assert len(done.stderr.splitlines()) == 1


def test_the_library_and_its_transforms_do_not_import_what_hides_ours(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "schemas.py").touch()
    for code in ("import cppmill; cppmill.run", "import cppmill.beam"):
        done = start(["-c", code], repository, tmp_path, cwd=repository.parent)
        last = done.stderr.splitlines()[-1]
        assert last.startswith(f"ImportError: {tmp_path}/schemas.py: Python imports this as 'schemas' in place of ")
        assert "apache_beam" not in done.stderr


def test_a_folder_without_code_hides_nothing(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "train.yaml").touch()
    done = start(["-m", "cppmill", "--version"], repository, Path("/no/such"), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("cppmill ")


def test_the_packages_that_are_looked_for_are_those_that_are_shipped(repository: Path) -> None:
    setup = (repository / "setup.py").read_text()
    assert all(f'"{name}"' in setup for name in PACKAGES)
    assert len(PACKAGES) == 5


def test_a_locale_of_another_encoding_is_left_for_utf_8(repository: Path) -> None:
    code = (
        "import os, cppmill, cppmill.start as start\n"
        "if not os.environ['PYTHONUTF8']: start._FILE_NAMES = 'iso8859-1'\n"
        "cppmill.main()"
    )
    environment = {**os.environ, "PYTHONUTF8": ""}  # as if it were not there
    command = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:8], done.stderr) == (0, "cppmill ", "")


@pytest.mark.parametrize("code", ["import cppmill; cppmill.main()", "import cppmill; cppmill.run"])
def test_another_encoding_that_was_asked_for_is_an_error(repository: Path, code: str) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    line = "Python reads names of files as ascii, not as UTF-8; set PYTHONUTF8=1 or LC_ALL=C.UTF-8"
    assert done.returncode
    assert done.stderr.splitlines()[-1].endswith(f"rror: {line}")
