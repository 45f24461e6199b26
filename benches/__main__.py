"""`python -m benches DIR`: measure every stage on a source tree, and encoding and training beside `tokenizers`.

The table goes to the output stream, progress to the error stream. What `make bench` runs. Whatever imports Beam is
imported within the session, which keeps its messages out of sight.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from benches.lib.harness import Comparison
from benches.lib.options import JsonRows, LimitMegabytes, Rounds, Sources, Threads, check_json_folder
from benches.lib.peers import THEIRS
from benches.lib.session import bench_session, conclude
from benches.lib.stages import measure_stages
from benches.speed.encoding import measure_encoding
from benches.speed.training import measure_training
from pipelines.console.progress import MEGABYTE, Reporter

if TYPE_CHECKING:
    from benches.lib.corpus import Corpus

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(epilog="Exit codes: 0 done, 1 a result differs or a run failed, 2 wrong usage or too little text.")
def bench(
    corpus: Sources,
    json_file: JsonRows = None,
    rounds: Rounds = 3,
    threads: Threads = None,
    limit_mb: LimitMegabytes = None,
) -> None:
    """Measure every stage on a source tree, and encoding and training beside tokenizers.

    The tree is first run once, untimed, into a temporary folder (TMPDIR says where).
    """
    check_json_folder(json_file)
    limit_bytes = None if limit_mb is None else limit_mb * MEGABYTE
    with bench_session() as (reporter, work):
        from benches.lib.corpus import make_corpus

        made = make_corpus(corpus.absolute(), work / "run", threads=threads, limit_bytes=limit_bytes, reporter=reporter)
        comparisons = list(measure(made, work / "sample.parquet", rounds=rounds, reporter=reporter))
    conclude(f"{corpus}: {made.describe()}", comparisons, json_file)


def measure(corpus: Corpus, sample: Path, *, rounds: int, reporter: Reporter) -> Iterator[Comparison]:
    """Yield every comparison on a corpus: the stages, then encoding and training.

    Args:
        corpus: The tree and its run.
        sample: Where to write the sample of its documents.
        rounds: Runs of each candidate.
        reporter: Where progress goes.
    """
    from benches.lib.corpus import write_sample

    reporter.note(f"benches: every stage, {rounds} times")
    yield from measure_stages(corpus, rounds=rounds)
    config = corpus.config
    sample_bytes = write_sample(config.out_folder, sample)
    reporter.note(f"benches: {THEIRS} {version(THEIRS)} on {sample_bytes / MEGABYTE:,.1f} MB, {rounds} times")
    yield from measure_encoding(
        config.out_folder / "tokenizer",
        sample,
        sample_bytes=sample_bytes,
        threads=sorted({1, config.threads}),
        rounds=rounds,
    )
    yield measure_training(
        sample,
        pattern=config.options.scan.pattern,
        sample_bytes=sample_bytes,
        threads=config.threads,
        rounds=rounds,
    )


if __name__ == "__main__":
    app(prog_name="python -m benches")
