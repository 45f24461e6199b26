"""The examples of the documentation work: those that begin with what `make demo` leaves are copied and run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pipelines.engines.cache import engine_path
from tests.hub_server import COMMAND_LINE, DOWNLOADER

pytestmark = pytest.mark.timeout(900)  # a page of commands is one test, each of them a process

ROOT = Path(__file__).parents[3]
TUTORIAL = ROOT / "docs" / "tutorials" / "first-dataset.md"
TRAINING = ROOT / "docs" / "tutorials" / "train-a-model.md"
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").rglob("*.md")) - {TUTORIAL, TRAINING})]

BLOCK = re.compile(r"(?:(?<=\n\n)|\A)(?: {4}.*\n(?:\n(?= {4}))*)+|(?<=^```sh\n)[\s\S]*?(?=^```$)", re.MULTILINE)
PYTHON = re.compile(r"(?:from|import) ")
SHELL = re.compile(r"(?:\$ )?((?:\.venv/bin/|cppmill |make |printf |echo |rm |[A-Z]+=\$).*)")
ELSEWHERE = re.compile(r"~|…|\bmake |(?<![/\w-])[\w-]+\.(?:toml|jsonl|gz)\b")
"""What needs something of the reader's, or what the fixture did: the demo."""
LESS_TRAINING = {"--steps 10": "--steps 4 --size 16x1 --documents 2", "include/c10/core": "include/c10/core/impl"}
"""What the page trains, and what the test does: the model is smaller and sees fewer documents."""


def scripts(page: Path, *, every: bool = False) -> Iterator[list[str]]:
    """Yield the commands of a page's runnable examples.

    They are the indented blocks of Python, and the lines of a shell, that name the demo, and whole blocks that begin
    with it; or every one, if the page is to be followed as a whole. Lines `# …` below a command are of its output.
    """
    for match in BLOCK.finditer(page.read_text() + "\n"):
        block = textwrap.dedent(match[0])
        if PYTHON.match(block):
            if every or re.search(r"out/(?:demo|card)\b", block):
                yield ["python", "-c", block]
        else:
            lines = block.splitlines()[1:] if block.startswith("make demo\n") else list(demo_lines(block, every=every))
            if lines:
                yield ["bash", "-euo", "pipefail", "-c", "\n".join(checked(lines))]


def demo_lines(block: str, *, every: bool) -> Iterator[str]:
    """Yield the commands of a block that name the demo, or every one, as far as nothing is the reader's.

    And the lines of their output that are below them.
    """
    taken = False
    for line in block.splitlines():
        command = SHELL.match(line)
        taken = taken and line.startswith("# ")
        if taken:
            yield line
        elif command and not ELSEWHERE.search(command[1]) and (every or re.search(r"out/demo\b", command[1])):
            taken = True
            yield command[1]


def checked(lines: list[str]) -> Iterator[str]:
    """Yield commands that fail if one does not print the lines `# …` that are below it; `…` ends what is left out."""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("# "):
            said = shlex.quote(line[2:].removesuffix("…"))
            yield f"grep -qF -- {said} .said || {{ cat .said; exit 1; }}"
        else:
            yield f"{{ {line}; }} > .said" if following.startswith("# ") else line


@pytest.fixture
def checkout(run, processes, hub_server, tmp_path):
    """A folder that looks like the checkout after `make demo`; of the reader's own files there are none.

    Its programs `cppmill`, `python` and `hf` begin with everything imported. They take a stand-in for the Hub.
    """
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / ".venv" / "lib").symlink_to(Path(sys.prefix) / "lib")
    processes.write_program(programs / "cppmill", COMMAND_LINE)
    processes.write_program(programs / "python", "")
    processes.write_program(programs / "hf", DOWNLOADER)
    shutil.copytree(run.out, tmp_path / "out" / "demo", copy_function=os.link)
    for name in ("LICENSE", "README.md", "setup.py"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "checks", tmp_path / "checks")
    return tmp_path


def follow(commands, checkout):
    path = f"{checkout}/.venv/bin:{os.environ['PATH']}"
    for command in commands:
        done = subprocess.run(
            ["env", *command],
            cwd=checkout,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"


def marked(page: Path) -> object:
    """The page as a parameter: the README's examples are tried each time, those of other pages with the engines."""
    return pytest.param(page, marks=() if page.name == "README.md" else pytest.mark.engines, id=page.stem)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if any(scripts(page))])
def test_examples_on_the_demo_work(page, checkout):
    follow(scripts(page), checkout)


def test_every_block_of_the_tutorial_works(checkout):
    found = list(scripts(TUTORIAL, every=True))
    assert sum(command[0] == "bash" for command in found) == 6
    assert sum(command[0] == "python" for command in found) == 3
    follow(found, checkout)
    assert (checkout / "out/numpy/receipt.json").exists()


@pytest.mark.engines
def test_the_tutorial_of_training_works(checkout, processes):
    site, programs = str(engine_path("torch")), checkout / ".venv" / "bin"
    processes.write_program(programs / "cppmill", f"import sys; sys.path.append({site!r})\n{COMMAND_LINE}")
    (programs / "python").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}:{site} exec {sys.executable} "$@"\n')
    found = list(scripts(TRAINING, every=True))
    for written, shorter in LESS_TRAINING.items():
        assert any(written in command[-1] for command in found), written
        found = [[*command[:-1], command[-1].replace(written, shorter)] for command in found]
    follow(found, checkout)
    result = json.loads((checkout / "out/demo-model/result.json").read_bytes())
    assert result["steps"] == 4
    assert 0 < result["bits_per_byte"] < 8


@pytest.mark.parametrize(
    ("line", "said"),
    [(".venv/bin/cppmill verify out/demo/nothing", "no such folder"), ("# out/demo: no such output", "out/demo: ")],
)
def test_a_broken_example_is_found(checkout, tmp_path, line, said):
    page = tmp_path / "page.md"
    page.write_text(f"Text\n\n    .venv/bin/cppmill verify out/demo\n    {line}\n")
    with pytest.raises(AssertionError, match=said):
        follow(scripts(page), checkout)


def test_make_clean_deletes_what_the_examples_write():
    done = subprocess.run(["make", "--dry-run", "clean"], cwd=ROOT, capture_output=True, text=True, check=True)
    deleted = [word for word in done.stdout.split() if word.startswith("out/")]
    commands = [
        command[-1]
        for page in [*PAGES, TUTORIAL, TRAINING]
        for command in scripts(page, every=page in (TUTORIAL, TRAINING))
    ]
    named = set(re.findall(r"\bout/[\w.-]+", "\n".join(commands)))
    assert {"out/demo", "out/card"} <= named
    assert [name for name in sorted(named) if not any(fnmatch(name, pattern) for pattern in deleted)] == []
