r"""`python -m benches.studies.lines DIR HELD_OUT`: superwords learned in lines, and in other cuts of the text.

The words are cut by the shipped pattern; half of 65,536 ids are learned in them, and the other half in larger pieces,
cut with a regular expression (PyPI's `regex`), without bounds and without seeds. The table has bytes per token, and
what a cache could save: the share of the held-out text in pieces that the training text has too. Run by `make
bench-units`.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import cppmill_core
import pyarrow as pa
import typer

from benches.lib.options import HeldOutSources, JsonAppended, TrainMegabytes, TrainSources, VocabSize
from benches.lib.session import keep_rows
from benches.lib.texts import SourceText, list_tree
from benches.lib.vocabularies import count_text_tokens, merge_ours, words_batch
from benches.studies.patterns import VOCAB_SIZE, count_words, describe
from benches.studies.pre_tokens import SHIPPED
from pipelines.console.console import Output, command_session
from pipelines.console.progress import MEGABYTE, Reporter

LINES, LINES_2 = "cpp-lines-1", "cpp-lines-2"
_NEWLINE = r"[\r\n]+[ \t]*"
_LINE = rf"[^\r\n]*{_NEWLINE}"
_UNMARKED = r"[^\r\n,;(){}\[\]]"
CUTS: dict[str, str] = {
    "one chunk: what is between blanks, and the blanks": r"[^ \t\r\n]+[ \t\r\n]*|[ \t\r\n]+",
    "two chunks": r"(?:[^ \t\r\n]+[ \t\r\n]*){1,2}|[ \t\r\n]+",
    "four chunks": r"(?:[^ \t\r\n]+[ \t\r\n]*){1,4}|[ \t\r\n]+",
    "phrases: up to a comma, semicolon or bracket": (
        rf"{_UNMARKED}*(?:[,;(){{}}\[\]]+(?:{_NEWLINE}| )?|{_NEWLINE})|{_UNMARKED}+"
    ),
    LINES: cppmill_core.PATTERNS[LINES],
    "lines that begin with their newline": r"[\r\n]*[^\r\n]+|[\r\n]+",
    "two lines": rf"(?:{_LINE}){{1,2}}|[^\r\n]+",
    "eight lines": rf"(?:{_LINE}){{1,8}}|[^\r\n]+",
    LINES_2: cppmill_core.PATTERNS[LINES_2],
}
"""Name to regular expression."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@dataclass(frozen=True)
class Result:
    """What one cut gave.

    Attributes:
        unit: Its name.
        distinct_bytes: Bytes of the distinct pieces of the training sample, which training holds.
        held_out_tokens: Tokens of the held-out text.
        held_out_bytes: Its bytes.
        seen_bytes: The bytes of them that are in pieces of the training sample too.
    """

    unit: str
    distinct_bytes: int
    held_out_tokens: int
    held_out_bytes: int
    seen_bytes: int


@app.command(epilog="Exit codes: 0 done, 1 a run failed, 2 wrong usage or too little text.")
def bench_units(
    corpus: TrainSources,
    held_out: HeldOutSources,
    json_file: JsonAppended = None,
    train_mb: TrainMegabytes = 110,
    vocab_size: VocabSize = VOCAB_SIZE,
    processes: Annotated[int, typer.Option(min=1, help="Number of processes that cut, and of threads.")] = 2,
) -> None:
    """Compare superwords of several cuts on held-out text."""
    with command_session(Output(), advice="nothing was kept") as reporter:
        train = list(list_tree(corpus.absolute()).sample(train_mb * MEGABYTE).texts())
        measured = list(list_tree(held_out.absolute()).texts())
        reporter.note(f"cuts: trained on {describe(train)}, measured on {describe(measured)}")
        found = study(CUTS, train, measured, vocab_size=vocab_size, processes=processes, reporter=reporter)
        rows = keep_rows(found, json_file)
    print(*markdown(rows), sep="\n")


def study(
    cuts: Mapping[str, str],
    train: list[SourceText],
    held_out: list[SourceText],
    *,
    vocab_size: int,
    processes: int,
    reporter: Reporter,
) -> Iterator[Result]:
    """Yield what each cut gives, and first what words alone give.

    Args:
        cuts: Name to regular expression.
        train: The documents to learn from.
        held_out: The documents to measure on.
        vocab_size: Number of ids, the 256 bytes included.
        processes: Processes that cut, and threads that learn.
        reporter: Where progress goes.
    """
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        words = count_words(cppmill_core.PATTERNS[SHIPPED], train, pool)
        for name, pattern in ({f"{SHIPPED}, no superwords": cppmill_core.PATTERNS[SHIPPED]} | dict(cuts)).items():
            learned, measured = (count_words(pattern, texts, pool) for texts in (train, held_out))
            merges = learn(words, learned if name in cuts else None, vocab_size, processes)
            result = Result(
                unit=name,
                distinct_bytes=sum(len(piece.encode()) for piece in learned),
                held_out_tokens=count_text_tokens(merges, [words_batch(measured)], processes),
                held_out_bytes=count_bytes(measured),
                seen_bytes=count_bytes({piece: count for piece, count in measured.items() if piece in learned}),
            )
            reporter.note(f"cuts: {name}: {result.held_out_bytes / result.held_out_tokens:.4f} bytes per token")
            yield result


def learn(words: Counter[str], pieces: Counter[str] | None, vocab_size: int, threads: int) -> pa.RecordBatch:
    """Learn merges from words, and where there are pieces, the second half of them from these."""
    reader = None if pieces is None else pa.Table.from_batches([words_batch(pieces)]).to_reader(1 << 16)
    superwords = {"units": reader, "superword_tokens": 0 if pieces is None else vocab_size // 2, "unit_pattern": LINES}
    return merge_ours([words_batch(words)], vocab_size, threads, **superwords)


def count_bytes(pieces: Mapping[str, int]) -> int:
    """Return the bytes of a text that consists of these.

    Example:
        >>> count_bytes({"é": 2, "ab": 1})
        6
    """
    return sum(len(piece.encode()) * count for piece, count in pieces.items())


def markdown(rows: Iterable[Result]) -> Iterator[str]:
    """Yield the table."""
    yield "| cut | distinct, MB | held-out bytes in known pieces | bytes per token |"
    yield "|---|--:|--:|--:|"
    for row in rows:
        yield (
            f"| {row.unit} | {row.distinct_bytes / MEGABYTE:.1f} | {row.seen_bytes / row.held_out_bytes:.0%} "
            f"| {row.held_out_bytes / row.held_out_tokens:.3f} |"
        )


if __name__ == "__main__":
    app(prog_name="python -m benches.studies.lines")
