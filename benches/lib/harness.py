"""Measure candidates on the same work: interleaved rounds, medians with their spread, peak memory of a fresh process.

Every round runs each candidate once, in a process of its own, and each round starts with another one: what slows the
machine for a while slows all of them, and none always runs on warm file caches. Preparation (reading input, loading a
tokenizer) is outside the clock, and so is hashing the result. A candidate with another result than the first one gets
no figures, only a line that says so.

It does not know what is measured. It needs Linux, because it reads peak memory from `/proc`.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Generic, TypeVar

from rich.console import Console
from rich.table import Table

from schemas.errors import CppmillError

State = TypeVar("State")
TABLE_COLUMNS = 120
"""Width of the table where there is no terminal."""

_MEGABYTE = 1_000_000
_PROCESSES = multiprocessing.get_context("spawn")


class BenchmarkError(CppmillError):
    """A candidate that failed, or rounds that cannot be measured."""


@dataclass(frozen=True)
class RunResult:
    """What one timed run did.

    Attributes:
        amounts: How much was done, by unit: `{"MB": 330.1, "tokens": 9.1e7}` gives a row in MB/s and one in tokens/s.
            Empty: one row with the seconds, unless there are costs.
        costs: How much was done, by unit, where the row is the seconds that one takes: `{"GB": 0.33}`, in s/GB.
        shares: Figures that are not rates, by unit, such as percentages of the run's time by what took it:
            `{"% reading": 12.0}`; a row each.
        parts: Seconds of it that were timed apart: `{"counting": 3.1}`; a row each, and one of
            all seconds if there are several.
        digest: Digest of the result, equal for all candidates that did the same work, or a function that makes it,
            called once time and memory have been taken; None: nothing to compare.
    """

    amounts: Mapping[str, float] = field(default_factory=dict)
    digest: str | Callable[[], str] | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)

    def with_digest(self) -> RunResult:
        """Return the result with its digest made."""
        return replace(self, digest=self.digest()) if callable(self.digest) else self


@dataclass(frozen=True, kw_only=True)
class Candidate(Generic[State]):
    """One way to do the work. Its functions run in another process: module-level ones, or `functools.partial` of them.

    Attributes:
        name: Name of its rows: `cppmill`, or the peer's.
        prepare: Makes what `run` takes; outside the clock.
        run: The work; inside the clock.
        threads: Threads that it uses, for the record.
        expected: The digest that its result must have; None: the digest of the first candidate.
        input_bytes: Size of its input, in bytes; None: the size of the comparison's input.
    """

    name: str
    prepare: Callable[[], State]
    run: Callable[[State], RunResult]
    threads: int = 1
    expected: str | None = None
    input_bytes: int | None = None


@dataclass(frozen=True)
class Sample:
    """One timed run: its seconds, the highest resident memory of its process in bytes, and what it did."""

    seconds: float
    peak_bytes: int
    result: RunResult


@dataclass(frozen=True)
class Row:
    """One figure: the line of JSON that `make bench JSON=FILE` writes.

    Attributes:
        bench: What was measured; candidates on the same work share it.
        name: The candidate.
        value: Median over the rounds.
        unit: Unit of `value`: `MB/s`, `tokens/s`, `s`, `s/GB`, `s` and of what, or `%` and of what.
        input_bytes: Size of the input, in bytes.
        threads: Threads used.
        peak_bytes: Highest resident memory of any round, in bytes.
    """

    bench: str
    name: str
    value: float
    unit: str
    input_bytes: int
    threads: int
    peak_bytes: int

    def to_json(self) -> str:
        """Return the row as one line of JSON."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Figure:
    """A row with the lowest and the highest value of its rounds."""

    row: Row
    lowest: float
    highest: float


@dataclass(frozen=True)
class Published:
    """A published figure of another project, shown beside ours. It was not measured here, so it is in no JSON."""

    name: str
    value: float
    unit: str
    threads: int


@dataclass(frozen=True)
class Comparison:
    """The result of one benchmark.

    Attributes:
        bench: Its name.
        figures: One for each candidate that counts and each of its units, in the candidates' order.
        different: Names of the candidates whose result was not the first one's, or not the same in every round.
        published: Figures of others, for the table.
    """

    bench: str
    figures: tuple[Figure, ...]
    different: tuple[str, ...] = ()
    published: tuple[Published, ...] = ()


def compare(bench: str, candidates: Sequence[Candidate[State]], *, input_bytes: int, rounds: int = 3) -> Comparison:
    """Measure candidates on the same work, in interleaved rounds.

    Args:
        bench: Name of the benchmark.
        candidates: The first is ours; the others must have the same result.
        input_bytes: Size of the input that all of them read, in bytes.
        rounds: Runs of each candidate; more give a steadier median.

    Raises:
        BenchmarkError: When a candidate fails, two have one name, or there is nothing to run.
    """
    names = [candidate.name for candidate in candidates]
    if rounds < 1 or not names or len(set(names)) < len(names):
        raise BenchmarkError(f"{bench}: needs a round and candidates of different names, got {rounds} and {names}")
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    for round_ in range(rounds):
        for place in range(len(names)):
            candidate = candidates[(round_ + place) % len(names)]
            samples[candidate.name].append(run_in_process(bench, candidate))
    first = samples[names[0]][0].result.digest
    agrees = {
        candidate.name: all(sample.result.digest == (candidate.expected or first) for sample in samples[candidate.name])
        for candidate in candidates
    }
    figures = [
        figure
        for candidate in candidates
        if agrees[candidate.name]
        for figure in summarize(
            bench,
            candidate.name,
            samples[candidate.name],
            candidate.threads,
            candidate.input_bytes or input_bytes,
        )
    ]
    return Comparison(bench, tuple(figures), tuple(name for name in names if not agrees[name]))


def summarize(bench: str, name: str, samples: Sequence[Sample], threads: int, input_bytes: int) -> list[Figure]:
    """Return the figures of one candidate: a rate or cost for each unit, or the seconds; its parts and shares.

    Args:
        bench: Name of the benchmark.
        name: Name of the candidate.
        samples: Its runs, at least one, all with the same units.
        threads: Threads that it used.
        input_bytes: Size of its input, in bytes.
    """
    peak_bytes = max(sample.peak_bytes for sample in samples)
    first = samples[0].result
    values = {
        f"{unit}/s": [sample.result.amounts[unit] / sample.seconds for sample in samples] for unit in first.amounts
    }
    values |= {f"s/{unit}": [sample.seconds / sample.result.costs[unit] for sample in samples] for unit in first.costs}
    if not values and len(first.parts) != 1:
        values = {"s": [sample.seconds for sample in samples]}
    values |= {f"s {part}": [sample.result.parts[part] for sample in samples] for part in first.parts}
    values |= {share: [sample.result.shares[share] for sample in samples] for share in first.shares}
    return [
        Figure(
            Row(bench, name, statistics.median(rates), unit, input_bytes, threads, peak_bytes), min(rates), max(rates)
        )
        for unit, rates in values.items()
    ]


def run_in_process(bench: str, candidate: Candidate[State]) -> Sample:
    """Run a candidate once in a fresh process and return what it took.

    Raises:
        BenchmarkError: When it raises, with its traceback, or dies, with its exit code.
    """
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_run_and_send, args=(candidate, theirs))
    process.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        answer = "it ended without an answer"
    finally:
        ours.close()
        process.join()
    if isinstance(answer, Sample):
        return answer
    raise BenchmarkError(f"{bench}: {candidate.name} failed with exit code {process.exitcode}: {answer}")


def _run_and_send(candidate: Candidate[State], connection: Connection) -> None:
    """Run in the candidate's process: send a Sample, or the traceback as text."""
    try:
        state = candidate.prepare()
        start = time.perf_counter()
        result = candidate.run(state)
        seconds = time.perf_counter() - start
        peak_bytes = peak_memory_bytes()
        connection.send(Sample(seconds, peak_bytes, result.with_digest()))
    except Exception:  # every failure is the parent's to report
        connection.send(traceback.format_exc())


def peak_memory_bytes() -> int:
    """Return the highest resident memory, in bytes, of this process or of the largest child that it waited for.

    This process's own is `VmHWM`, not `ru_maxrss`: that one starts with the memory of the process that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    return 1024 * max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


def write_rows(path: Path, comparisons: Iterable[Comparison]) -> None:
    """Write the rows as JSON, one per line."""
    lines = [figure.row.to_json() + "\n" for comparison in comparisons for figure in comparison.figures]
    path.write_text("".join(lines), encoding="utf-8")


def table(comparisons: Iterable[Comparison]) -> Table:
    """Return the figures as a table; `ratio` is to the first candidate's value, none if it has none in that unit."""
    result = Table("bench", "name")
    for heading in ("value", "lowest", "highest", "unit", "input MB", "threads", "peak MB", "ratio"):
        result.add_column(heading, justify="left" if heading == "unit" else "right")
    for comparison in comparisons:
        ours = [figure.row for figure in comparison.figures]
        first = {row.unit: row.value for row in ours if row.name == ours[0].name}
        for figure in comparison.figures:
            row = figure.row
            rates = (_number(value) for value in (row.value, figure.lowest, figure.highest))
            sizes = (_number(row.input_bytes / _MEGABYTE), str(row.threads), _number(row.peak_bytes / _MEGABYTE))
            result.add_row(row.bench, row.name, *rates, row.unit, *sizes, _ratio(row.value, first.get(row.unit)))
        for published in comparison.published:
            cells = (
                _number(published.value),
                "-",
                "-",
                published.unit,
                "-",
                str(published.threads),
                "-",
                _ratio(published.value, first.get(published.unit)),
            )
            result.add_row(comparison.bench, published.name, *cells)
        for name in comparison.different:
            result.add_row(comparison.bench, name, "-", "-", "-", "result differs")
    return result


def _ratio(value: float, first: float | None) -> str:
    return "-" if first is None else f"{value / first:.2f}"


def _number(value: float) -> str:
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def show(heading: str, comparisons: list[Comparison]) -> None:
    """Print a heading and the table."""
    console = Console(width=None if sys.stdout.isatty() else TABLE_COLUMNS)
    console.print(heading, markup=False, highlight=False, soft_wrap=True)
    console.print(table(comparisons))
