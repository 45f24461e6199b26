"""`python -m benches.speed.engines DIR`: measure whole runs on engines, the cost of Beam, and what is shuffled.

* **Growth**: `cppmill run` on samples of the tree, by the hash of the path, on each engine, with the files in memory:
  seconds, seconds per stage, seconds of processors (local alone, as a job server does not wait for what it starts), and
  the most memory that all of its processes had together. Every run of a sample must give the same receipt.
* **Beam**: scan and tokenize as the stage runs them, and the same units by the same functions without Beam.
* **Shuffled**: the encoded size of everything that a run groups or reshuffles, by kind, in bytes per MB of source.

The last two are of the local run of the smallest sample.

What `make bench-engines` runs. Flink is the one that the command embeds, so all of its processes are counted.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benches.lib.harness import Comparison, RunResult, Sample, summarize
from benches.lib.options import JsonRows, Rounds, Sources
from benches.lib.process_tree import run_measured
from benches.lib.session import bench_session, conclude
from pipelines.console.progress import MEGABYTE, Reporter

if TYPE_CHECKING:
    from configs.runs import RunConfig

GIGABYTE = 1000 * MEGABYTE
SAMPLE_GIGABYTES = (0.3, 1.0, 2.0, 4.0)
LOCAL = "local"
ENGINES = (LOCAL, "flink")
_SAME_SIZE = 0.95
"""A sample of this share of the last one's successor is the whole tree."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(epilog="Exit codes: 0 done, 1 a result differs or a run failed, 2 wrong usage.")
def bench_engines(
    corpus: Sources,
    json_file: JsonRows = None,
    rounds: Rounds = 1,
    gigabytes: Annotated[
        list[float] | None, typer.Option("--gb", help="Sizes of the samples; 0.3, 1, 2 and 4 by default.")
    ] = None,
    engines: Annotated[list[str] | None, typer.Option("--engine", help="Engines; local and flink by default.")] = None,
    vocab_size: Annotated[int, typer.Option(help="Ids of the tokenizer; a small tree cannot fill many.")] = 1 << 16,
) -> None:
    """Measure whole runs on engines, what Beam costs, and what is shuffled."""
    with bench_session() as (reporter, work):
        from benches.speed.beam_costs import measure_beam, measure_shuffle

        growth = Growth(corpus.absolute(), work, vocab_size=vocab_size, reporter=reporter)
        sizes = sorted(gigabytes or SAMPLE_GIGABYTES)
        comparisons = []
        for size in sizes:
            comparisons.append(growth.compare(size, engines or ENGINES, rounds=rounds))
            if size == sizes[0] and (work / LOCAL).is_dir():
                comparisons += measure_beam(growth.config(), rounds=rounds)
                comparisons.append(measure_shuffle(growth.config()))
    conclude(f"{corpus}: {growth.num_bytes / MEGABYTE:,.1f} MB", comparisons, json_file)


class Growth:
    """Whole runs of samples of a tree; the last one of each engine stays in its folder below `work`.

    Attributes:
        num_bytes: Bytes of the tree.
    """

    def __init__(self, tree: Path, work: Path, *, vocab_size: int, reporter: Reporter) -> None:
        """Add up the tree."""
        self._tree, self._work, self._vocab_size, self._reporter = tree, work, vocab_size, reporter
        self.num_bytes = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())

    def compare(self, gigabytes: float, engines: Sequence[str], *, rounds: int) -> Comparison:
        """Run a sample on each engine, in turns."""
        samples: dict[str, list[Sample]] = {engine: [] for engine in engines}
        fraction = gigabytes * GIGABYTE / self.num_bytes
        self._read()
        for _ in range(rounds):
            for engine in engines:
                self._reporter.note(f"{gigabytes:g} GB on {engine}")
                samples[engine].append(self._run(engine, fraction))
        digests = {engine: {sample.result.digest for sample in samples[engine]} for engine in engines}
        figures = [
            figure
            for engine in engines
            for figure in summarize(f"{gigabytes:g} GB", engine, samples[engine], 2, round(gigabytes * GIGABYTE))
        ]
        different = tuple(engine for engine in engines if digests[engine] != digests[engines[0]])
        return Comparison(f"{gigabytes:g} GB", tuple(figures), different)

    def config(self) -> RunConfig:
        """Return the part of the local run's configuration that its later stages need."""
        from configs.runs import load_run_config

        return load_run_config(flags={"--out": str(self._work / LOCAL), "--vocab-size": str(self._vocab_size)})

    def _read(self) -> None:
        """Read every file of the tree, so that the first engine finds them in memory as the next ones do."""
        for path in self._tree.rglob("*"):
            if path.is_file():
                path.read_bytes()

    def _run(self, engine: str, fraction: float) -> Sample:
        out = self._work / engine
        shutil.rmtree(out, ignore_errors=True)
        command = [sys.executable, "-m", "pipelines.cli", "run", str(self._tree), "--out", str(out), "--json"]
        command += ["--engine", engine, "--vocab-size", str(self._vocab_size)]
        command += ["--sample", f"{fraction:.6f}"] if fraction < _SAME_SIZE else []
        ended = run_measured(command, self._work / f"{engine}.log")
        events = [json.loads(line) for line in ended.output.splitlines()]
        parts = {str(event["stage"]): float(event["seconds"]) for event in events if event["event"] == "stage_done"}
        digest = json.loads((out / "receipt.json").read_bytes())["digest"]
        used = {"s of processors": ended.processor_seconds} if engine == LOCAL else {}
        return Sample(ended.seconds, ended.peak_bytes, RunResult(parts=parts, shares=used, digest=digest))


if __name__ == "__main__":
    app(prog_name="python -m benches.speed.engines")
