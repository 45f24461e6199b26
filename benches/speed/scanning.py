"""`python -m benches.speed.scanning DIR`: measure the speed and memory of the native scanner on documents shards.

The documents are ingested once, outside every clock, unless DIR is the output folder of an earlier run. The clock holds
reading the shards and counting everything that the scan stage counts, with its configuration, to the last word that the
merge gives; not the stage's planning and its files. What `make bench-scan` runs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import cppmill_core
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from benches.lib.harness import BenchmarkError, Candidate, Comparison, Published, RunResult, compare
from benches.lib.options import JsonRows, Rounds, check_json_folder
from benches.lib.session import bench_session, conclude
from configs.execution import RunExecutionOptions
from pipelines.console.console import Output, log_to_console
from pipelines.console.progress import MEGABYTE, Reporter
from schemas.options import ScanOptions

GIGABYTE = 1000 * MEGABYTE
SAMPLE_GIGABYTES = (0.3, 1.0, 2.0, 4.0)
DEFAULT_BUDGET_BYTES: int = RunExecutionOptions.model_fields["memory_bytes"].default
SMALL_BUDGET_BYTES = 128 << 20
PUBLISHED = (
    Published("published: 48 CPUs, no pre-tokens", 434.0, "MB/s", 48),
    Published("published: 2 cores, no pre-tokens", 77.0, "MB/s", 2),
)
"""What the published scanner reached: 22.3 GB in 51.4 s on 48 CPUs, and on a machine of two cores."""

Reader = Callable[..., Iterator[pa.RecordBatch]]
"""`transforms.scan.count.read_documents`, imported where it is called: it brings Beam."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@dataclass(frozen=True)
class Documents:
    """Documents shards in an order that has nothing to do with what is in them, and the bytes of content of each."""

    shards: tuple[Path, ...]
    sizes: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        """The bytes of all."""
        return sum(self.sizes)

    def sample(self, num_bytes: float) -> Documents:
        """Return the first shards that have this many bytes, or all."""
        total = 0
        for taken, size in enumerate(self.sizes, 1):
            total += size
            if total >= num_bytes:
                return Documents(self.shards[:taken], self.sizes[:taken])
        return self


@app.command(epilog="Exit codes: 0 done, 1 counts differ or a run failed, 2 wrong usage or no C++.")
def bench_scan(
    corpus: Annotated[
        Path,
        typer.Argument(metavar="DIR", exists=True, file_okay=False, help="C++ sources, or a run's output folder."),
    ],
    json_file: JsonRows = None,
    rounds: Rounds = 3,
) -> None:
    """Measure the native scanner on documents shards: its speed, and its memory on 0.3, 1, 2 and 4 GB."""
    check_json_folder(json_file)
    with bench_session() as (reporter, work):
        documents = find_documents(corpus.absolute(), work, reporter)
        comparisons = list(measure_scanner(documents, work, rounds=rounds, reporter=reporter))
    heading = f"{corpus}: {documents.num_bytes / MEGABYTE:,.1f} MB in {len(documents.shards)} shards"
    conclude(heading, comparisons, json_file)


def find_documents(corpus: Path, work: Path, reporter: Reporter) -> Documents:
    """Return the documents shards of an output folder, or ingest a source tree into `work` first."""
    from benches.lib.corpus import documents_bytes
    from configs.runs import RunConfig
    from pipelines.stages import ingest

    out = corpus
    if not any(corpus.glob("documents/part-*.parquet")):
        out = work / "run"
        ingest.run(RunConfig(sources=(str(corpus),), out=out), reporter)
        documents_bytes(out)
    shards = sorted((out / "documents").glob("part-*.parquet"))  # their names are digests
    sizes = [pc.sum(pq.read_table(shard, columns=["num_bytes"])["num_bytes"]).as_py() for shard in shards]
    return Documents(tuple(shards), tuple(sizes))


def measure_scanner(documents: Documents, work: Path, *, rounds: int, reporter: Reporter) -> Iterator[Comparison]:
    """Yield the speed for one and two threads and of reading alone, then the curve.

    Args:
        documents: The shards.
        work: A folder for what is beyond the memory budget.
        rounds: Runs of each candidate.
        reporter: Where progress goes.
    """
    config = scanner_config()
    first = documents.sample(SAMPLE_GIGABYTES[0] * GIGABYTE)
    reporter.note(f"benches: the scanner on {first.num_bytes / MEGABYTE:,.1f} MB, {rounds} times")
    read = Candidate(
        name="reading alone", prepare=partial(prepare, first.shards), run=partial(read_all, first.num_bytes)
    )
    yield compare("documents", [read], input_bytes=first.num_bytes, rounds=rounds)
    scan = partial(scan_all, rate=True, spill_dir=work / "spill", memory_bytes=DEFAULT_BUDGET_BYTES)
    candidates = [
        candidate("cppmill" if threads > 1 else "cppmill, 1 thread", first, config, threads, scan) for threads in (2, 1)
    ]
    yield replace(compare("scanner", candidates, input_bytes=first.num_bytes, rounds=rounds), published=PUBLISHED)
    for gigabytes in SAMPLE_GIGABYTES:
        if documents.num_bytes < gigabytes * GIGABYTE:
            reporter.note(f"benches: {gigabytes} GB are more than there is")
            return
        reporter.note(f"benches: the scanner's memory on {gigabytes} GB, {rounds} times")
        sample = documents.sample(gigabytes * GIGABYTE)
        budgets = [
            candidate(
                f"budget of {memory_bytes >> 20:,} MiB",
                sample,
                config,
                2,
                partial(scan, rate=False, memory_bytes=memory_bytes),
            )
            for memory_bytes in (DEFAULT_BUDGET_BYTES, SMALL_BUDGET_BYTES)
        ]
        yield compare(f"{gigabytes:g} GB", budgets, input_bytes=sample.num_bytes, rounds=rounds)


def candidate(
    name: str, documents: Documents, config: str, threads: int, scan: Callable[..., RunResult]
) -> Candidate[tuple[Reader, Sequence[Path]]]:
    """Return a candidate that scans documents."""
    run = partial(scan, config=config, threads=threads, num_bytes=documents.num_bytes)
    return Candidate(name=name, prepare=partial(prepare, documents.shards), run=run, threads=threads)


def scanner_config() -> str:
    """Return the configuration that the scan stage gives the scanner by default."""
    from configs import VOCABULARY
    from pipelines.stages.scan import scanner_config as configure

    return configure(ScanOptions(), VOCABULARY)


def prepare(shards: Sequence[Path]) -> tuple[Reader, Sequence[Path]]:
    """Import what reads documents shards, Beam with it, and return it with the shards."""
    with log_to_console(Output(quiet=True)):
        from transforms.scan.count import read_documents

    return read_documents, shards


def read_all(num_bytes: int, state: tuple[Reader, Sequence[Path]]) -> RunResult:
    """Read documents shards as the scan stage does."""
    read_documents, shards = state
    found = 0
    for batch in read_documents(shards, read_ahead=False):
        lengths = pc.binary_length(pa.chunked_array([batch["content"]]))
        found += int(pc.sum(lengths).as_py() or 0)
    if found != num_bytes:
        raise BenchmarkError(f"{num_bytes} bytes of documents were announced, {found} found")
    return RunResult({"MB": num_bytes / MEGABYTE})


def scan_all(
    state: tuple[Reader, Sequence[Path]],
    *,
    rate: bool,
    config: str,
    threads: int,
    memory_bytes: int,
    spill_dir: Path,
    num_bytes: int,
) -> RunResult:
    """Count all documents, with every count read to its end; what is compared is a digest of all counts."""
    read_documents, shards = state
    scanner = cppmill_core.Scanner(config, threads, memory_bytes=memory_bytes, spill_dir=spill_dir)
    started = time.perf_counter()
    waited = 0.0
    batches = read_documents(shards, read_ahead=threads > 1)
    while True:
        asked = time.perf_counter()
        batch = next(batches, None)
        waited += time.perf_counter() - asked
        if batch is None:
            break
        scanner.add(batch)
    digest = hash_counts(scanner.finish())
    if not rate:
        return RunResult(digest=digest, costs={"GB": num_bytes / GIGABYTE})
    share = 100 * waited / (time.perf_counter() - started)
    return RunResult({"MB": num_bytes / MEGABYTE}, digest, shares={"% of it waiting for documents": share})


def hash_counts(counts: dict[str, pa.RecordBatch | pa.RecordBatchReader]) -> str:
    """Return the SHA-256 of all counts, by kind; batches of words are cut by their bytes, so always alike."""
    digest = hashlib.sha256()
    for kind, batches in sorted(counts.items()):
        digest.update(kind.encode())
        for batch in batches if isinstance(batches, pa.RecordBatchReader) else [batches]:
            for buffer in (buffer for column in batch.columns for buffer in column.buffers() if buffer is not None):
                digest.update(buffer)
    return digest.hexdigest()


if __name__ == "__main__":
    app(prog_name="python -m benches.speed.scanning")
