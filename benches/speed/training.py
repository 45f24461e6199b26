"""`python -m benches.speed.training DIR`: measure training beside the public trainers, its growth and stability.

Three comparisons, as no two of the public trainers take the same input. With our pattern: all that takes a regular
expression, `tokenizers` and ffbpe, counting and merging. With the GPT-2 pattern, which the native core does not cut:
ffbpe by documents and gigabpe by lines, each with its own splitter; ours merges the same words, counted outside its
clock. In each the merges must be the same. What `make bench-train` runs; `make bench` has one small row of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import cppmill_core
import pyarrow.parquet as pq
import typer

from benches.lib import trainers
from benches.lib.harness import Candidate, Comparison, RunResult, compare, run_in_process
from benches.lib.options import JsonRows, Rounds, Sources, Threads, VocabSize, check_json_folder
from benches.lib.peers import OURS, THEIRS
from benches.lib.session import bench_session, conclude
from benches.lib.texts import Tree, batches, list_tree
from benches.lib.trainers import PATTERN
from configs.execution import usable_threads
from pipelines.console.progress import MEGABYTE, Reporter
from tokenizer_build.compare.candidates import set_rayon_threads

TRAINED_IDS = 8192
"""The vocabulary of the one row of `make bench`."""

PUBLISHED_IDS = 1 << 15
"""The vocabulary that the public trainers publish times of."""

COMPARED_MB = (300, 1000)
GROWTH_MB = (300, 1000, 2000, 4000)
SUPERWORDS_MB = (300, 1000)

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@dataclass(frozen=True)
class Sample:
    """A sample of a tree on disk: documents in a Parquet file, and joined in a text file, for what reads only those."""

    parquet: Path
    text: Path
    num_bytes: int


@dataclass(frozen=True)
class Job:
    """What is trained: the sample, the size of the vocabulary, threads and rounds."""

    sample: Sample
    vocab_size: int
    threads: int
    rounds: int

    @property
    def name(self) -> str:
        """Text and vocabulary, for the rows."""
        return f"{self.sample.num_bytes / MEGABYTE:,.0f} MB, {self.vocab_size >> 10}K"

    def compare(self, what: str, candidates: Sequence[Candidate[Any]]) -> Comparison:
        """Measure candidates on it."""
        bench = f"{what}, {self.name}"
        return compare(bench, candidates, input_bytes=self.sample.num_bytes, rounds=self.rounds)

    def candidate(self, name: str, run: Callable[..., RunResult], threads: int | None = None) -> Candidate[Any]:
        """Return a candidate that needs nothing prepared but its number of threads."""
        number = threads or self.threads
        return Candidate(name=name, prepare=partial(set_rayon_threads, number), run=run, threads=number)


@app.command(epilog="Exit codes: 0 done, 1 merges differ or a run failed, 2 wrong usage or too little text.")
def bench_train(
    corpus: Sources,
    json_file: JsonRows = None,
    rounds: Rounds = 3,
    threads: Threads = None,
    vocab_size: VocabSize = 1 << 16,
    compare_mb: Annotated[
        list[int] | None, typer.Option(min=1, help="Compare on this many MB; repeat for more sizes. [300, 1000]")
    ] = None,
    growth_mb: Annotated[
        list[int] | None, typer.Option(min=0, help="Growth at this many MB; repeat for more, 0 for none. [300 … 4000]")
    ] = None,
    superwords_mb: Annotated[
        list[int] | None, typer.Option(min=0, help="Superwords at this many MB; repeat, 0 for none. [300, 1000]")
    ] = None,
) -> None:
    """Measure training beside tokenizers, ffbpe and gigabpe, then its growth, all on samples by the hash of the path.

    The samples are written to a temporary folder (TMPDIR says where).
    """
    check_json_folder(json_file)
    with bench_session() as (reporter, work):
        bench = TrainingBench(list_tree(corpus.absolute()), work, threads or usable_threads(), rounds, reporter)
        sizes = Sizes(compare_mb or COMPARED_MB, growth_mb or GROWTH_MB, superwords_mb or SUPERWORDS_MB)
        comparisons = list(bench.measure(sizes, vocab_size))
    heading = f"{corpus}: {bench.tree.num_bytes / MEGABYTE:,.1f} MB in {len(bench.tree.paths):,} files"
    conclude(heading, comparisons, json_file)


@dataclass(frozen=True)
class Sizes:
    """Megabytes of text: for the comparisons, for the growth, and for superwords; 0 is left out."""

    compared: Sequence[int]
    growth: Sequence[int]
    superwords: Sequence[int]


@dataclass(frozen=True)
class TrainingBench:
    """All comparisons on one tree.

    Attributes:
        tree: Where the samples are from.
        work: A folder for them.
        threads: Number of threads.
        rounds: Runs of each candidate.
        reporter: Where progress goes.
    """

    tree: Tree
    work: Path
    threads: int
    rounds: int
    reporter: Reporter

    def measure(self, sizes: Sizes, vocab_size: int) -> Iterator[Comparison]:
        """Yield every comparison; sizes that the tree does not have are left out."""
        for place, size in enumerate(size for size in sizes.compared if self._has(size)):
            sample = self.sample(size)
            vocab_sizes = [vocab_size] if place or vocab_size <= PUBLISHED_IDS else [PUBLISHED_IDS, vocab_size]
            for ids in vocab_sizes:
                self.reporter.note(f"benches: trainers on {size} MB, {ids:,} ids")
                yield from compare_trainers(Job(sample, ids, self.threads, self.rounds), self.work)
            if not place:
                yield compare_ways(Job(sample, vocab_size, self.threads, max(2, self.rounds)))
        for size in sizes.growth:
            if size and self._has(size):
                yield from self._growth(Job(self.sample(size), vocab_size, self.threads, self.rounds))
        for size in sizes.superwords:
            if size and self._has(size):
                job = Job(self.sample(size), vocab_size, self.threads, self.rounds)
                self.reporter.note(f"benches: superwords on {job.name}")
                train = partial(trainers.train_superwords, job.sample.parquet, vocab_size, self.threads)
                yield job.compare("superwords", [job.candidate(OURS, train)])

    def sample(self, megabytes: int) -> Sample:
        """Write a sample of about this many MB, over the previous one."""
        return write_sample(self.tree.sample(megabytes * MEGABYTE), self.work)

    def _growth(self, job: Job) -> Iterator[Comparison]:
        """Yield the seconds and peak memory of counting, then of merging what was counted."""
        self.reporter.note(f"benches: training on {job.name}")
        words = self.work / "words.parquet"
        count = partial(trainers.count_alone, job.sample.parquet, PATTERN, job.threads, words)
        yield job.compare("counting", [job.candidate(OURS, count)])
        distinct = pq.read_metadata(words).num_rows
        self.reporter.note(f"benches: {job.name} has {distinct:,} distinct words")
        yield job.compare("merging", [merging_candidate(OURS, job, words)])

    def _has(self, megabytes: int) -> bool:
        enough = self.tree.num_bytes >= megabytes * MEGABYTE
        if not enough:
            self.reporter.note(f"benches: {megabytes} MB are more than there is")
        return enough


def write_sample(tree: Tree, work: Path) -> Sample:
    """Write the documents of a tree as a Parquet file and as one text."""
    sample = Sample(work / "sample.parquet", work / "sample.txt", 0)
    num_bytes = 0
    writer = None
    with sample.text.open("wb") as text:
        for batch in batches(tree.texts()):
            writer = writer or pq.ParquetWriter(sample.parquet, batch.schema, compression="none")
            writer.write_batch(batch)
            contents: list[Any] = batch["content"].to_pylist()
            num_bytes += text.write(b"".join(contents))
    if writer is None:
        raise ValueError(f"{tree.root}: the sample has no document")
    writer.close()
    return replace(sample, num_bytes=num_bytes)


def compare_trainers(job: Job, work: Path) -> Iterator[Comparison]:
    """Yield the comparison with our pattern, then the two with the GPT-2 pattern."""
    sample, ids, words = job.sample, job.vocab_size, work / "words.parquet"
    ours = partial(trainers.train_ours, sample.parquet, PATTERN, ids, job.threads)
    theirs = partial(trainers.train_tokenizers, sample.parquet, PATTERN, ids)
    regex = cppmill_core.PATTERNS[PATTERN]
    our_pattern = [
        job.candidate(OURS, ours),
        job.candidate(THEIRS, theirs),
        job.candidate("ffbpe", partial(trainers.train_ffbpe, sample.parquet, regex, ids)),
    ]
    yield job.compare(PATTERN, our_pattern)
    by_document = job.candidate("ffbpe", partial(trainers.train_ffbpe, sample.parquet, None, ids))
    by_line = job.candidate("gigabpe", partial(trainers.train_gigabpe, sample.text, ids, job.threads))
    for unit, count, source, peer in (
        ("documents", trainers.count_gpt2_documents, sample.parquet, by_document),
        ("lines", trainers.count_gpt2_lines, sample.text, by_line),
    ):
        run_in_process(f"GPT-2 words of {unit}", job.candidate("words", partial(count, source, words)))
        merging = merging_candidate(f"{OURS}, merging alone", job, words)
        yield job.compare(f"GPT-2, {unit}", [merging, peer])


def merging_candidate(name: str, job: Job, words: Path, threads: int | None = None) -> Candidate[Any]:
    """Return a candidate that merges counted words, which it reads outside the clock."""
    number = threads or job.threads
    return Candidate(
        name=name,
        prepare=partial(trainers.read_words, words),
        run=partial(trainers.merge_counted, job.vocab_size, number),
        threads=number,
    )


def compare_ways(job: Job) -> Comparison:
    """Compare the merges of one thread and of shuffled documents and words with those of all threads, two runs each."""
    train = partial(trainers.train_ours, job.sample.parquet, PATTERN, job.vocab_size)
    ways = [
        job.candidate(OURS, partial(train, job.threads)),
        job.candidate(f"{OURS}, 1 thread", partial(train, 1), 1),
        job.candidate(f"{OURS}, shuffled", partial(train, job.threads, shuffled=True)),
    ]
    return job.compare("same merges", ways)


def measure_training(sample: Path, *, pattern: str, sample_bytes: int, threads: int, rounds: int) -> Comparison:
    """Measure learning 8,192 ids from text, in MB per second: the row of `make bench`.

    Args:
        sample: Documents, as `benches.lib.corpus.write_sample` wrote them.
        pattern: Name of the pre-token pattern.
        sample_bytes: Their bytes.
        threads: Number of threads.
        rounds: Runs of each side.
    """
    job = Job(Sample(sample, sample, sample_bytes), TRAINED_IDS, threads, rounds)
    ours = partial(trainers.train_ours, sample, pattern, TRAINED_IDS, threads)
    theirs = partial(trainers.train_tokenizers, sample, pattern, TRAINED_IDS)
    candidates = [
        job.candidate(name, partial(as_rate, run, sample_bytes / MEGABYTE))
        for name, run in ((OURS, ours), (THEIRS, theirs))
    ]
    return compare("train", candidates, input_bytes=sample_bytes, rounds=rounds)


def as_rate(run: Callable[[None], RunResult], megabytes: float, state: None) -> RunResult:
    """Run, and give the rate alone."""
    return replace(run(state), amounts={"MB": megabytes}, parts={})


if __name__ == "__main__":
    app(prog_name="python -m benches.speed.training")
