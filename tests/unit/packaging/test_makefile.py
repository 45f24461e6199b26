"""The Makefile: help lists all, set-up does only what is needed, a missing tool is named with the way to get it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

STEPS = ("venv", "uv", "run", "native", "project")
SHELL_TOOLS = ("bash", "find", "awk", "rm", "mkdir", "touch")


def make(folder: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run make, not as part of another make that may run these tests."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    environment["PATH"] = path or environment["PATH"]
    command = [shutil.which("make") or "make", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def checkout(tmp_path: Path, repository: Path) -> Path:
    """A folder in which set-up has just been done, as far as make can see, but the venv is empty."""
    shutil.copy(repository / "Makefile", tmp_path)
    (tmp_path / "native").mkdir()
    sources = [
        tmp_path / name for name in ("pyproject.toml", "setup.py", "requirements/uv.lock", "requirements/run.lock")
    ]
    sources += [tmp_path / name for name in ("native/lib.rs", "rust-toolchain.toml")]
    for age, file in enumerate([*sources, *(tmp_path / ".venv/.stamps" / step for step in STEPS)]):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (1_000_000_000 + age, 1_000_000_000 + age))
    return tmp_path


@pytest.fixture
def few_tools(tmp_path: Path) -> Path:
    """A folder, to be the whole PATH, with what make's own recipes use, a cargo that works, and no C compiler."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for tool in SHELL_TOOLS:
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    (folder / "cargo").write_text(f"#!{shutil.which('bash')}\n")
    (folder / "cargo").chmod(0o755)
    return folder


def test_help_lists_every_target(repository: Path) -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (repository / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    done = make(repository, "help")
    assert re.findall(r"^  make ([a-z0-9-]+) +\S.*$", done.stdout, re.MULTILINE) == phony[1].split()


def test_help_is_the_default(repository: Path) -> None:
    assert make(repository).stdout == make(repository, "help").stdout


def test_a_second_setup_does_nothing_and_says_so(checkout: Path) -> None:
    done = make(checkout, "setup")
    assert (done.returncode, done.stdout) == (0, "Nothing to do: .venv is up to date\n")


@pytest.mark.parametrize(
    ("changed", "steps"),
    [
        ("native/lib.rs", {"native"}),
        ("rust-toolchain.toml", {"native"}),
        ("pyproject.toml", {"project"}),
        ("requirements/run.lock", {"run", "native", "project"}),
        ("requirements/uv.lock", {"uv", "run", "native", "project"}),
    ],
)
def test_setup_redoes_what_a_change_needs(changed: str, steps: set[str], checkout: Path) -> None:
    (checkout / changed).touch()
    done = make(checkout, "--dry-run", "setup")
    assert set(re.findall(r"touch \.venv/\.stamps/(\w+)", done.stdout)) == steps
    assert ".venv is ready" in done.stdout


def test_a_missing_python_is_named(checkout: Path) -> None:
    (checkout / ".venv/.stamps/venv").unlink()
    done = make(checkout, "setup", "PYTHON=")
    assert done.returncode != 0
    assert "No Python 3.11 or newer" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_a_missing_cargo_is_named(checkout: Path, few_tools: Path) -> None:
    (checkout / ".venv/.stamps/native").unlink()
    (few_tools / "cargo").unlink()
    done = make(checkout, "setup", path=str(few_tools))
    assert done.returncode != 0
    assert "No cargo was found. Install Rust with rustup" in done.stderr


def test_a_missing_toolchain_is_named(checkout: Path, few_tools: Path) -> None:
    (checkout / ".venv/.stamps/native").unlink()
    with (few_tools / "cargo").open("a") as script:
        script.write("exit 1\n")
    done = make(checkout, "setup", path=str(few_tools))
    assert done.returncode != 0
    assert "rustup toolchain install" in done.stderr


def test_a_missing_compiler_is_named(checkout: Path, few_tools: Path) -> None:
    (checkout / ".venv/.stamps/native").unlink()
    done = make(checkout, "setup", path=str(few_tools))
    assert done.returncode != 0
    assert "No C compiler was found" in done.stderr
    assert "apt-get install build-essential" in done.stderr


@pytest.mark.parametrize("target", ["bench", "bench-encode", "bench-scan"])
def test_benchmarks_want_a_corpus(checkout: Path, target: str) -> None:
    done = make(checkout, target)
    assert done.returncode != 0
    assert f"make {target} CORPUS=DIR" in done.stderr
