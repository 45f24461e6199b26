"""The commands that write, each with what it needs, and what it leaves."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from random import Random

SMALL = ("--vocab-size", "8192", "--threads", "2")
ANYTHING = ("--max-dead-fraction", "1")
LEFT_OUT = (".cache", ".lock")
"""Not part of what a command makes: remembered digests, attempts, logs."""


@dataclass(frozen=True)
class Job:
    """A command in a folder of its own, `WORK` in its arguments.

    Attributes:
        arguments: Of the command.
        verified: What `verify` proves when it is done.
        prepare: Puts into the folder what the command begins with.
    """

    arguments: tuple[str, ...]
    verified: str | None = None
    prepare: Callable[[Path], object] = field(default=lambda folder: None)

    def words(self, work: Path) -> list[str]:
        """Return the arguments for a folder."""
        return [word.replace("WORK", str(work)) for word in self.arguments]


def choose_job(random: Random, base: Path, corpus: Path) -> Job:
    """Return a random command with random options.

    Args:
        random: Chooses.
        base: The folder of a finished run, `out`, of other sources.
        corpus: Sources.
    """
    run, tokenizer = str(base / "out"), str(base / "out/tokenizer")
    units = ("--unit-bytes", str(random.choice((1 << 16, 1 << 18, 1 << 20))))
    filters = random.choice(((), ("--drop-generated",), ("--near-duplicate-similarity", "0.8")))
    resumed = ("run", str(corpus), "--out", "WORK/out", *ANYTHING, "--threads", "2", *units, *filters)
    copied = lambda folder: shutil.copytree(base / "out", folder / "out", symlinks=True)  # noqa: E731
    vocabulary = lambda folder: shutil.copytree(base / "vocabulary", folder / "vocabulary")  # noqa: E731
    jobs = [
        Job((*resumed, "--tokenizer", tokenizer), "out"),
        Job((*resumed, "--tokenizer", tokenizer), "out"),
        Job((*resumed, "--vocab-size", "8192"), "out", copied),
        Job(("run", str(base / "sources"), "--out", "WORK/out", *ANYTHING, *SMALL, *units), "out"),
        Job(
            ("retokenize", str(corpus), "--store", "WORK/store", "--tokenizer", tokenizer, "--max-dead-fraction", "1"),
            "store/current",
        ),
        Job(("shards", run, "--out", "WORK/shards", "--format", random.choice(("bin", "megatron"))), "shards"),
        Job(("sequences", run, "--out", "WORK/sequences", "--length", "256"), "sequences"),
        Job(("report", run, "--out", "WORK/page.html")),
        Job(("provenance", run, "--out", "WORK/card", "--date", "2026-01-01")),
        Job(("vocab", "init", "WORK/mine")),
        Job(("vocab", "add", "WORK/vocabulary", "Acme", "acme_open", "--category", "acme", "--keep"), None, vocabulary),
        Job(("vocab", "release", "9.9", "--tokenizer", tokenizer, "--vocab", "WORK/vocabulary"), None, vocabulary),
        Job(("vocab", "working-set", run, "--out", "WORK/set.json")),
        Job(("byte-tables", "--tokenizer", tokenizer, "--out", "WORK/tables.npz")),
    ]
    return random.choice(jobs)


def tree(folder: Path) -> dict[str, str]:
    """Return what is below a folder, digests of files and targets of links, without what a command does not make."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if any(part in LEFT_OUT for part in Path(name).parts) or fnmatch(name, "store/trend/*.json"):  # has a date
            continue
        if path.is_symlink():
            found[name] = f"to {path.readlink()}".replace(str(folder), "WORK")
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes().replace(str(folder).encode(), b"WORK")).hexdigest()
    return found


def difference(expected: dict[str, str], found: dict[str, str]) -> str:
    """Return how one tree differs from another."""
    names = sorted({*expected, *found})
    return ", ".join(
        f"{name} {'missing' if name not in found else 'too many' if name not in expected else 'changed'}"
        for name in names
        if expected.get(name) != found.get(name)
    )


def leftovers(folder: Path, temporary: Path) -> list[str]:
    """Return what a finished command must not leave: temporary files in OUT, beside files, and in TMPDIR."""
    parts = [path for path in folder.rglob("*") if path.name.endswith(".part")]
    inside = [path for out in folder.rglob(".cache/tmp") for path in out.rglob("*") if path.is_file()]
    locks = list(folder.rglob(".cache/holder.json"))
    return [str(path) for path in (*parts, *inside, *locks, *temporary.iterdir())]
