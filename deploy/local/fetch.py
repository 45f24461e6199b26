"""Fetching engines into the cache, pinned and checked, by the ordinary clients: go, Maven, pip, npm, apt-get.

Go modules are pinned by `go.mod` and checked by `go.sum`; jars by a pom and a list of SHA-256; Python packages by
requirements with hashes; npm packages by a lock with SHA-512. What is there already is left alone. A folder is made
beside its place and renamed when it is whole, under a lock, so checkouts can share one cache.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import filelock

from configs.published import FETCHED
from deploy.local.commands import PACKAGES, install_package, run
from deploy.local.jars import build_job_server
from pipelines.engines.cache import FILES, engines_folder
from schemas.errors import ConfigError

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_MAVEN_REPOSITORY = "maven-repository"


def fetch(names: Sequence[str] = (), *, say: Callable[[str], None] = print) -> None:
    """Fetch what is missing.

    Args:
        names: Of `MAKERS` and `PACKAGES`, in any order; none for all.
        say: Told what is done, a line each.

    Raises:
        ConfigError: For an unknown name; if a tool that makes an engine is missing or fails.
        IntegrityError: If something else was fetched than is written down.
    """
    unknown = [name for name in names if name not in (*MAKERS, *PACKAGES)]
    if unknown:
        raise ConfigError(f"{unknown[0]}: no engine of that name; there are {', '.join((*MAKERS, *PACKAGES))}")
    cache = engines_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with _lock(cache, say):
        for name in [name for name in MAKERS if not names or name in names]:
            home = cache / Path(FILES[name]).parts[0]
            if not home.exists():
                say(f"Fetching {home.name} ({_COSTS[name]})")
                make_whole(home, MAKERS[name])
            say(f"{name}: {cache / FILES[name]}")
        if all((cache / FILES[name]).exists() for name in ("flink", "spark")):
            shutil.rmtree(cache / _MAVEN_REPOSITORY, ignore_errors=True)
        for name in [name for name in PACKAGES if not names or name in names]:
            install_package(name, log_folder=cache, say=say)


@contextmanager
def _lock(cache: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of the cache; say so if another fetch has it, because that may take minutes."""
    lock = filelock.FileLock(cache / ".lock")
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        say(f"Waiting for another fetch, which holds {lock.lock_file}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def make_whole(home: Path, make: Callable[[Path], None]) -> None:
    """Make a folder beside its place and rename it; what a failed attempt left is kept for its logs, and replaced.

    Args:
        home: The folder; there is none yet.
        make: Fills the folder that it is given.
    """
    partial = home.with_name(f".{home.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    make(partial)
    partial.rename(home)


def _go_build(name: str, package: str, *, module: str | None = None) -> Callable[[Path], None]:
    """Return the maker of a Go program from its module below `go/`, which has its name unless another is given."""

    def make(folder: Path) -> None:
        command = ["go", "build", "-mod=readonly", "-trimpath", "-o", str(folder / name), package]
        environment = os.environ | {"CGO_ENABLED": "0"}
        hint = "Go is needed, from go.dev/dl, or on Debian or Ubuntu: apt-get install golang"
        run(command, cwd=_HERE / "go" / (module or name), log=folder / "go.log", hint=hint, environment=environment)

    return make


def _make_flink(folder: Path) -> None:
    build_job_server("flink", folder, folder.parent / _MAVEN_REPOSITORY)


def _make_spark(folder: Path) -> None:
    build_job_server("spark", folder, folder.parent / _MAVEN_REPOSITORY)
    requirements = _HERE / "spark_requirements.txt"
    with tempfile.TemporaryDirectory(prefix="cppmill-spark-") as scratch:
        # pyspark is a source package of jars; what builds it is in this environment, so nothing unpinned is fetched.
        command = [sys.executable, "-m", "pip", "install", "--require-hashes", "--no-deps", "--no-build-isolation"]
        command += ["--no-cache-dir", "--target", str(folder / "site"), "--requirement", str(requirements)]
        environment = os.environ | {"TMPDIR": scratch}
        run(command, cwd=folder, log=folder / "pip.log", hint="run `make setup`", environment=environment)


def _make_tokenizers(folder: Path) -> None:
    """Keep the files of tokenizers that packages of npm carry, one folder each; nothing of the packages is run."""
    with tempfile.TemporaryDirectory(prefix="cppmill-npm-") as scratch:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_HERE / "npm/tokenizers" / name, scratch)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        run(command, cwd=Path(scratch), log=folder / "npm.log", hint="npm is needed: apt-get install npm")
        for name, package in FETCHED.items():
            shutil.copytree(Path(scratch) / "node_modules" / package / "models", folder / "files" / name)


def _packages(requirements: Path) -> Callable[[Path], None]:
    """Return the maker of a folder of Python packages: those of a lock that this environment lacks."""

    def make(folder: Path) -> None:
        here = {name for name, _ in _requirements(_ROOT / "requirements/test.lock")}
        missing = folder / "requirements.txt"
        text = "".join(entry for name, entry in _requirements(requirements) if name not in here)
        missing.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--require-hashes", "--no-deps", "--no-cache-dir"]
        command += ["--target", str(folder / "site"), "--requirement", str(missing)]
        run(command, cwd=folder, log=folder / "pip.log", hint="run `make setup`")

    return make


def _requirements(lock: Path) -> list[tuple[str, str]]:
    """Return the requirements of a lock: their names, and their lines with hashes; a name for each of its markers."""
    lines = (line for line in lock.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#"))
    entries = re.split(r"\n(?=[a-z0-9])", "\n".join(lines).strip())
    return [(entry.partition("==")[0], f"{entry}\n") for entry in entries]


MAKERS: dict[str, Callable[[Path], None]] = {
    "versitygw": _go_build("versitygw", "github.com/versity/versitygw/cmd/versitygw"),
    "gcs": _go_build("fake-gcs-server", "github.com/fsouza/fake-gcs-server"),
    "prism": _go_build("prism", "github.com/apache/beam/sdks/v2/go/cmd/prism"),
    "boot": _go_build("boot", "github.com/apache/beam/sdks/v2/python/container", module="prism"),
    "flink": _make_flink,
    "spark": _make_spark,
    "dataflow": _packages(_ROOT / "deploy/dataflow/requirements.lock"),
    "torch": _packages(_HERE / "torch_requirements.lock"),
    "streaming": _packages(_HERE / "streaming_requirements.lock"),
    "megatron": _packages(_HERE / "megatron_requirements.lock"),
    "tokenizers": _make_tokenizers,
}
_COSTS = {
    "versitygw": "about 2 minutes of Go's compiler",
    "gcs": "about 4 minutes of Go's compiler",
    "prism": "about 3 minutes of Go's compiler",
    "boot": "about half a minute of Go's compiler",
    "flink": "about 200 MB from Maven's repository",
    "spark": "about 500 MB from Maven's repository and the Python package index",
    "dataflow": "Google's packages from the Python package index",
    "torch": "about 2.5 GB from the Python package index, for 4 GB on disk",
    "streaming": "about 10 MB from the Python package index",
    "megatron": "about 3 MB from the Python package index",
    "tokenizers": "about 140 MB from npm's registry",
}
