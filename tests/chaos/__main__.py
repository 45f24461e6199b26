"""The chaos suite: commands that write meet a kill or a fault at a random system call, and then must finish.

    python -m tests.chaos --seconds 120 --seed 7 [--round 12]

In each round a random command is carried out in peace, and its system calls are counted. Then it meets a fault in
another folder: killed, or refused space, a descriptor, a read, at the n-th call of a kind. If it says that it is done,
what it made must be the same as in peace. Then it is run again, and must end well with the same files, `verify` true
and nothing left over. Some rounds are runs on an object store that fails (`stores`). The seed is printed first; a
failure prints its round, and `--round` repeats that one alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random, randrange

from schemas.errors import ExitCode
from tests.chaos.corpus import real_texts, write_corpus
from tests.chaos.faults import Fault, can_trace, choose_fault, count_calls, run_watched
from tests.chaos.jobs import SMALL, Job, choose_job, difference, leftovers, tree
from tests.chaos.stores import StoreRounds, has_store
from tests.processes import ProcessServer

SECONDS_A_COMMAND = 240
STORE_EVERY = 4
"""Of so many rounds one is on an object store."""


class Suite:
    """One seed at work in a folder."""

    def __init__(self, folder: Path, seed: int, processes: ProcessServer, stack: ExitStack | None = None) -> None:
        """Make the run that commands begin with; with a stack, which ends it, start the object store if it is there."""
        self.folder, self.seed, self.texts = folder, seed, real_texts()
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.temporary), "HF_HUB_OFFLINE": "1"}
        self.processes, self.stores = processes, None
        if stack is not None and has_store():
            rounds = StoreRounds(folder / "store", processes, self.environment, SECONDS_A_COMMAND)
            self.stores = stack.enter_context(rounds)
        self.base = folder / "base"
        write_corpus(self.base / "sources", Random(seed), self.texts)
        self.must(
            "run", str(self.base / "sources"), "--out", str(self.base / "out"), "--max-dead-fraction", "1", *SMALL
        )
        self.must("vocab", "init", str(self.base / "vocabulary"))

    def must(self, *words: str) -> None:
        """Run a command that must end well."""
        process = self.processes.command(*words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(SECONDS_A_COMMAND)
        if process.returncode:
            raise AssertionError(f"cppmill {' '.join(words)}: exit {process.returncode}\n{out}{err}")

    def round(self, number: int) -> tuple[str, Iterator[str]]:
        """Return what a round does, and yield what is wrong."""
        random, folder = Random(f"{self.seed}-{number}"), self.folder / f"round-{number}"
        if self.stores is not None and number % STORE_EVERY == STORE_EVERY - 1:
            return self.stores.round(random, folder, self.texts, self.base / "out" / "tokenizer")
        write_corpus(folder / "corpus", random, self.texts)
        job = choose_job(random, self.base, folder / "corpus")
        peace, chaos = folder / "peace", folder / "chaos"
        for work in (peace, chaos):
            work.mkdir()
            job.prepare(work)
        code, out, err = self.watched(job, peace, folder, None)
        if code:
            return job.arguments[0], iter([f"in peace: exit {code}\n{out}{err}"])
        fault = choose_fault(random, count_calls(folder / "log"))
        title = f"{' '.join(job.arguments[:2]) if job.arguments[0] == 'vocab' else job.arguments[0]}: {fault.name}"
        return title, self.compare(job, folder, peace, chaos, fault)

    def compare(self, job: Job, folder: Path, peace: Path, chaos: Path, fault: Fault) -> Iterator[str]:
        """Carry out a command with a fault and again without; yield what is wrong."""
        expected = tree(peace)
        code, out, err = self.watched(job, chaos, folder, fault)
        if code == 0 and tree(chaos) != expected:
            yield f"it said that it was done: {difference(expected, tree(chaos))}\n{out}{err}"
        if code and "Traceback" in err and fault.is_lack_of_space:
            yield f"it ended in a traceback:\n{err}"
        if not fault.is_kill and (left := leftovers(folder / "nowhere", self.temporary)):
            yield f"left in TMPDIR after an error: {left}"
        for path in self.temporary.iterdir():  # what a kill leaves there is the system's to clean
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        code, out, err = self.watched(job, chaos, folder, None)
        if code not in (0, ExitCode.NOTHING_TO_DO) and not _is_done_before(job, err):
            yield f"run again: exit {code}\n{out}{err}"
        if tree(chaos) != expected:
            yield f"run again: {difference(expected, tree(chaos))}"
        if left := leftovers(chaos, self.temporary):
            yield f"left over: {left}"
        if job.verified is not None:
            self.must("verify", str(chaos / job.verified))

    def watched(self, job: Job, work: Path, folder: Path, fault: Fault | None) -> tuple[int, str, str]:
        """Carry out a command."""
        return run_watched(self.processes, job.words(work), folder / "log", fault, self.environment, SECONDS_A_COMMAND)


def _is_done_before(job: Job, err: str) -> bool:
    """Return whether a command that can be carried out once says that it was."""
    return job.arguments[:2] in (("vocab", "init"), ("vocab", "add"), ("vocab", "release")) and "error: " in err


def make_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser of what both suites take: how long they go on, and their seed."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=randrange(1 << 32))
    return parser


def main() -> int:
    """Run rounds until the time is over; return 1 if anything was wrong."""
    parser = make_parser(__doc__)
    parser.add_argument("--round", type=int, default=None, help="only this one")
    options = parser.parse_args()
    seed = options.seed
    print(f"chaos: seed {seed}", flush=True)
    if not can_trace():
        print("chaos: strace is not here or may not watch processes: apt-get install strace", file=sys.stderr)
        return 2
    end, done, failed = time.monotonic() + options.seconds, Counter[str](), 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cppmill-chaos-")))
        suite = Suite(folder, seed, stack.enter_context(ProcessServer(folder)), stack)
        if suite.stores is None:
            print("chaos: no rounds on an object store: `make engines` has not fetched it", flush=True)
        number = options.round or 0
        while time.monotonic() < end:
            started = time.monotonic()
            title, problems = suite.round(number)
            found = list(problems)
            for problem in found:
                print(f"chaos: seed {seed} round {number}: {title}\n    " + problem.replace("\n", "\n    "), flush=True)
            print(
                f"chaos: round {number}: {title}: {'WRONG' if found else 'ok'}, {time.monotonic() - started:.1f} s",
                flush=True,
            )
            done[title.partition(":")[0]] += 1
            failed += bool(found)
            shutil.rmtree(suite.folder / f"round-{number}")
            number += 1
            if options.round is not None:
                break
    print(f"chaos: seed {seed}: {done.total()} rounds, {failed} wrong; {dict(done)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
