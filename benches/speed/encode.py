"""`python -m benches.speed.encode DIR`: everything about encoding, in one run.

Encoders beside each other, cold and warm, on one thread and on all; counting; hard inputs; the stages that encode,
beside datatrove. The table goes to the output stream, progress to the error stream. What `make bench-encode` runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benches.lib.encoders import Vocabulary, adopt_published, make_cl100k
from benches.lib.harness import Comparison, write_rows
from benches.lib.options import JsonRows, LimitMegabytes, Rounds, Sources, Threads, check_json_folder
from benches.lib.session import bench_session, conclude
from benches.lib.trainers import read_contents
from benches.speed.adversarial import measure_adversarial
from benches.speed.encoding import SampleText, find_peers, measure_counting, measure_peers
from configs.execution import usable_threads
from pipelines.console.progress import MEGABYTE, Reporter

if TYPE_CHECKING:
    from benches.lib.corpus import Corpus

PLAIN, SUPERWORDS = "hybrid-64k", "hybrid-64k-superwords"

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

Folder = typer.Option(metavar="DIR", exists=True, file_okay=False)


@dataclass(frozen=True)
class Given:
    """The command's options.

    Attributes:
        corpus: The folder of sources.
        tokenizer: Tokenizer directory of the plain profile; None: built from the corpus.
        superwords: The same with superwords.
        limit_bytes: Bytes of the sources to take; None: all.
        sample_bytes: Bytes of the documents that the encoders are compared on.
        threads: The most threads.
        rounds: Runs of each candidate.
        only_published: Whether to compare the encoders on the published vocabularies and leave out the rest.
    """

    corpus: Path
    tokenizer: Path | None
    superwords: Path | None
    limit_bytes: int | None
    sample_bytes: int
    threads: int
    rounds: int
    only_published: bool


@app.command(epilog="Exit codes: 0 done, 1 ids differ or a run failed, 2 wrong usage or too little text.")
def bench_encode(
    corpus: Sources,
    json_file: JsonRows = None,
    tokenizer: Annotated[Path | None, Folder] = None,
    superwords: Annotated[Path | None, Folder] = None,
    rounds: Rounds = 3,
    threads: Threads = None,
    limit_mb: LimitMegabytes = None,
    sample_mb: Annotated[int, typer.Option("--sample-mb", min=1, help="Compare encoders on this many MB.")] = 100,
    only_published: Annotated[
        bool, typer.Option("--only-published", help="Only the encoders, with published vocabularies.")
    ] = False,
) -> None:
    """Measure encoding beside public encoders, and the stages that encode beside datatrove.

    --tokenizer and --superwords name tokenizer directories of the two profiles; one that is not given is built from
    the sources. The published vocabularies are those of `make engines NAME=tokenizers`. All is made in a temporary
    folder (TMPDIR says where).
    """
    check_json_folder(json_file)
    limit_bytes = None if limit_mb is None else limit_mb * MEGABYTE
    number = threads or usable_threads()
    given = Given(
        corpus.absolute(), tokenizer, superwords, limit_bytes, sample_mb * MEGABYTE, number, rounds, only_published
    )
    comparisons: list[Comparison] = []
    with bench_session(advice="nothing was kept but the rows in --json") as (reporter, work):
        for comparison in measure(given, work, reporter):
            comparisons.append(comparison)
            if json_file is not None:
                write_rows(json_file, comparisons)
    conclude(str(corpus), comparisons)


def measure(given: Given, work: Path, reporter: Reporter) -> Iterator[Comparison]:
    """Yield every comparison.

    Args:
        given: What to measure.
        work: A folder for everything that is made.
        reporter: Where progress goes.
    """
    from benches.lib.corpus import documents_bytes, make_corpus, write_sample
    from benches.speed.tokenizing import measure_tokenizing

    run_corpus = partial(
        make_corpus, given.corpus, threads=given.threads, limit_bytes=given.limit_bytes, reporter=reporter
    )
    published = list(adopt_published(work / "published"))
    if given.only_published:
        made = run_corpus(work / "adopted", tokenizer=published[0].folder)
        yield from measure_encoders(published, _sample(made, given, work), given, reporter)
        return
    made = run_corpus(work / "plain", tokenizer=given.tokenizer, profile=PLAIN)
    plain = Vocabulary("plain", made.config.out_folder / "tokenizer")
    superwords = given.superwords
    if superwords is None:
        superwords = run_corpus(work / "superwords", profile=SUPERWORDS).config.out_folder / "tokenizer"
    ours = [plain, Vocabulary("superwords", superwords)]
    everything = work / "everything.parquet"
    write_sample(made.config.out_folder, everything, sample_bytes=documents_bytes(made.config.out_folder))
    vocab_size = made.config.options.build.vocab_size
    foreign = make_cl100k(read_contents(everything), work / "cl100k", vocab_size=vocab_size, threads=given.threads)
    text = _sample(made, given, work)
    reporter.note(f"benches: {made.describe()}; encoders on {text.num_bytes / MEGABYTE:,.1f} MB")
    yield from measure_encoders([*ours, foreign, *published], text, given, reporter)
    yield measure_counting(ours, text, 1, rounds=given.rounds)
    yield from measure_adversarial(ours, text.path, rounds=given.rounds)
    yield from measure_tokenizing(made.config, made.num_bytes, work, rounds=given.rounds)


def measure_encoders(
    vocabularies: Sequence[Vocabulary], text: SampleText, given: Given, reporter: Reporter
) -> Iterator[Comparison]:
    """Yield the comparisons of all encoders with the vocabularies that they load: cold and warm, by threads."""
    peers = list(find_peers(vocabularies, text, reporter))
    for warm in (False, True):
        for threads in sorted({1, given.threads}):
            yield measure_peers(f"encode {'warm' if warm else 'cold'}", peers, threads, warm=warm, rounds=given.rounds)


def _sample(made: Corpus, given: Given, work: Path) -> SampleText:
    from benches.lib.corpus import write_sample

    path = work / "sample.parquet"
    return SampleText(path, write_sample(made.config.out_folder, path, sample_bytes=given.sample_bytes))


if __name__ == "__main__":
    app(prog_name="python -m benches.speed.encode")
