"""Runs of the command line on C++ headers that numpy and pyarrow ship, each made once for all workers of the tests."""

import json
import os
import pickle
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, wraps
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from filelock import FileLock
from typer import testing
from typer.main import get_command

from configs.runs import load_run_config
from pipelines.cli.app import app
from pipelines.console.progress import Reporters
from pipelines.report import plots
from pipelines.stages import run as whole_run
from pipelines.stages import scan as scan_program
from pipelines.stages.session import Session, open_session
from pipelines.versions.drift import count_parts
from transforms.scan import merge

ROOT = Path(__file__).parents[1]
CPPMILL = [sys.executable, "-m", "pipelines.cli"]
VOCAB_SIZE = "12288"
UNIT_BYTES = 1 << 17

# Each command would build the tree of all commands again.
testing._get_command = cache(get_command)


def remembered(function):
    """Return a function that gives again what it gave for the same arguments."""
    given = {}

    @wraps(function)
    def remember(*arguments, **named):
        key = pickle.dumps((arguments, named))
        if key not in given:
            given[key] = function(*arguments, **named)
        return given[key]

    return remember


@pytest.fixture(scope="session", autouse=True)
def drawn_once():
    """Draw each plot of a page once, which takes 60 ms: most pages of the tests are of the same run."""
    with pytest.MonkeyPatch.context() as patch:
        for plot in (plots.bars, plots.curve, plots.flow, plots.histogram, plots.trend):
            patch.setattr(plots, plot.__name__, remembered(plot))
        yield


@dataclass(frozen=True)
class Run:
    """A finished run: its sources and its output folder."""

    sources: Path
    out: Path

    @property
    def command(self):
        """The arguments that make it."""
        return ["run", self.sources, "--out", self.out, "--vocab-size", VOCAB_SIZE, "--unit-bytes", UNIT_BYTES]

    @property
    def receipt(self):
        return json.loads((self.out / "receipt.json").read_bytes())

    def stages(self, done):
        """How many units each stage ran, from the output of a run with --json."""
        ended = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "stage_done"]
        return {event["stage"]: event["summary"].get("units run") for event in ended}

    def tree(self):
        """Every file in the output folder with its bytes, cache and lock left out."""
        files = [path.relative_to(self.out) for path in self.out.rglob("*") if path.is_file()]
        return {
            path.as_posix(): (self.out / path).read_bytes()
            for path in files
            if path.parts[0] not in (".cache", ".lock")
        }

    def digests(self):
        """The tokenizer's bytes and the dataset's digest: what must not depend on how a run was carried out."""
        names = sorted(path.name for path in (self.out / "tokenizer").iterdir())
        return {name: (self.out / "tokenizer" / name).read_bytes() for name in names}, self.receipt["dataset"]["digest"]


@dataclass(frozen=True)
class SourcesAndStore:
    """Sources, and a store of versions of them."""

    sources: Path
    place: Path

    @property
    def command(self):
        """The arguments that make the next version."""
        return ["retokenize", self.sources, "--store", self.place]

    @property
    def flags(self):
        """The same, as flags of a run in this process."""
        return {"SOURCE": (str(self.sources),), "--store": str(self.place)}

    def out(self, name):
        return self.place / "versions" / name

    def receipt(self, name):
        return json.loads((self.out(name) / "receipt.json").read_bytes())


def run_command(*arguments, check=True, input=None):
    """Run the command line in this process; return what a process of its own would have: exit code and output."""
    words = [str(argument) for argument in arguments]
    done = testing.CliRunner().invoke(app, words, input=input, catch_exceptions=False)
    return ended(words, done.exit_code, done.stdout, done.stderr, check)


def run_process(*arguments, check=True):
    """Run the command line in a process of its own; return the finished process, its output as text."""
    words = [str(argument) for argument in arguments]
    done = subprocess.run([*CPPMILL, *words], capture_output=True, text=True, check=False, cwd=ROOT)
    return ended(words, done.returncode, done.stdout, done.stderr, check)


def ended(words, code, stdout, stderr, check):
    """Return how a command ended; fail on an exit code if it is to be checked."""
    if check and code:
        raise AssertionError(f"cppmill {' '.join(words)}\nexit {code}\n{stdout}\n{stderr}")
    return subprocess.CompletedProcess(words, code, stdout, stderr)


def run_checker(*arguments):
    """Run the independent checker of run folders; its report if it finds anything wrong."""
    program, said = ROOT / "checks" / "check_run.py", StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", [str(program), *map(str, arguments)])
        runpy.run_path(str(program), run_name="__main__")
    return "" if ended.value.code == 0 else said.getvalue()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Return a folder with a name, made by a function on first use and shared by all workers of the session.

    `prepared(name, make)` calls `make(folder)` once; the others wait for it. Nobody may change what is in it.
    """
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prepared"
    shared.mkdir(exist_ok=True)

    def prepare(name: str, make: Callable[[Path], object]) -> Path:
        folder, finished = shared / name, shared / f"{name}.finished"
        with FileLock(shared / f"{name}.lock"):
            if not finished.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                finished.touch()
        return folder

    return prepare


@pytest.fixture(scope="session")
def cppmill():
    """Run a command: `cppmill("verify", out)` gives how it ended; fails on an exit code unless `check=False`."""
    return run_command


@pytest.fixture(scope="session")
def cppmill_process():
    """Run a command as `cppmill` does, in a process of its own."""
    return run_process


@pytest.fixture(scope="session")
def command_line():
    """The words that start the command line."""
    return CPPMILL


@pytest.fixture(scope="session")
def checker():
    """Run checks/check_run.py: an empty text if all holds."""
    return run_checker


def copy_headers(folder):
    """Write two projects: the headers of numpy and the arrays of pyarrow's, 52 files, 0.7 MB."""
    shutil.copytree(np.get_include(), folder / "numpy")
    shutil.copytree(Path(pa.get_include()) / "arrow" / "array", folder / "arrow" / "array")


@pytest.fixture(scope="session")
def sources(prepared):
    """A folder of two projects: headers of numpy and of pyarrow."""
    return prepared("sources", copy_headers)


def write_hostile(folder, *flags):
    """Write the hostile corpus into a new folder."""
    program = ROOT / "checks" / "hostile_corpus.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(program), str(folder), *flags])
        runpy.run_path(str(program), run_name="__main__")
    return folder


@pytest.fixture(scope="session")
def hostile_corpus(prepared):
    """The hostile corpus without its two big files."""
    return prepared("hostile", lambda folder: write_hostile(folder / "corpus")) / "corpus"


@pytest.fixture(scope="session")
def run(sources, prepared):
    """A finished run; not to be changed."""
    folder = prepared("run", lambda folder: run_command(*Run(sources, folder / "out").command))
    return Run(sources, folder / "out")


@pytest.fixture(scope="session")
def other_tokenizer(sources, prepared):
    """A tokenizer of 8,192 ids, other ones than those of the finished run."""
    command = ["run", sources / "numpy", "--vocab-size", "8192"]
    return prepared("other_tokenizer", lambda folder: run_command(*command, "--out", folder / "out")) / "out/tokenizer"


@pytest.fixture
def copied_run(run, tmp_path):
    """A copy of the finished run, sources too, that a test may change."""
    shutil.copytree(run.sources, tmp_path / "sources")
    shutil.copytree(run.out, tmp_path / "out", copy_function=shutil.copy2)
    return Run(tmp_path / "sources", tmp_path / "out")


@pytest.fixture(scope="session")
def stages(run, tmp_path_factory):
    """The flow of each stage of a real run, by the name of its job."""
    out, headers = tmp_path_factory.mktemp("stages"), run.sources / "numpy"
    edited = tmp_path_factory.mktemp("edited") / "npy_math.h"
    edited.write_bytes(b"// edited\n" + (headers / "numpy" / "npy_math.h").read_bytes())
    flags = {"SOURCE": (str(headers), str(edited)), "--out": str(out), "--profile": "demo"}
    flags["--near-duplicate-similarity"] = "0.8"
    found = {}
    execute = Session.execute

    def keep(self, name, units, flow, **options):
        found[str(name)] = flow
        execute(self, name, units, flow, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "execute", keep)
        patch.setattr(merge, "MAX_PARTS", 1)  # so that groups of counts are merged, as a million units need it
        config = load_run_config(flags={**flags, "--tokenizer": str(run.out / "tokenizer")})
        whole_run.run(config, Reporters())
        with open_session(config, Reporters()) as session:
            count_parts(session, json.loads((out / "receipt.json").read_bytes()))
        scan_program.run(load_run_config(flags=flags), Reporters())
    return found


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    assert program, "no chromium on PATH: make engines NAME=chromium"
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()
