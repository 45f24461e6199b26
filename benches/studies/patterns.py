"""`python -m benches.studies.patterns DIR HELD_OUT`: bytes per token of each pre-token pattern, without seeds.

For each pattern: cut a sample of a training tree and a held-out tree with the regular expression (PyPI's `regex`),
learn 65,536 ids from the words of the sample, and count the tokens of the held-out words. Before that the native
splitters of the shipped patterns and their regular expressions must give the same words of the sample. What `make
bench-patterns` runs.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Annotated, Any

import cppmill_core
import regex
import typer

from benches.lib.harness import BenchmarkError
from benches.lib.options import HeldOutMegabytes, HeldOutSources, JsonAppended, TrainMegabytes, TrainSources, VocabSize
from benches.lib.session import keep_rows
from benches.lib.texts import SourceText, Tree, list_tree
from benches.lib.vocabularies import count_text_tokens, merge_ours, words_batch
from benches.studies.pre_tokens import SHIPPED, SHIPPED_2, studied
from configs import VOCABULARY
from pipelines.console.console import Output, command_session
from pipelines.console.progress import MEGABYTE, Reporter
from tokenizer_build.lint import split_tokens
from tokenizer_build.vocabulary import Vocabulary, read_vocabulary

VOCAB_SIZE = 1 << 16
CHUNK_BYTES = 4 * MEGABYTE
PROVEN_BYTES = 20 * MEGABYTE
"""How much of the sample the native splitter is compared on."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
_compile = cache(regex.compile)


@dataclass(frozen=True)
class Result:
    """What one pattern gave.

    Attributes:
        pattern: Its name.
        train_words: Pre-tokens of the training sample.
        train_distinct: Distinct ones.
        held_out_words: Pre-tokens of the held-out text.
        held_out_tokens: Its tokens.
        held_out_bytes: Its bytes.
        fixed_split: Fixed tokens of the vocabulary files that the pattern cuts in two.
    """

    pattern: str
    train_words: int
    train_distinct: int
    held_out_words: int
    held_out_tokens: int
    held_out_bytes: int
    fixed_split: int

    @property
    def bytes_per_token(self) -> float:
        """Bytes of held-out text a token."""
        return self.held_out_bytes / self.held_out_tokens


@app.command(epilog="Exit codes: 0 done, 1 the native splitter differs or a run failed, 2 wrong usage.")
def bench_patterns(
    corpus: TrainSources,
    held_out: HeldOutSources,
    json_file: JsonAppended = None,
    train_mb: TrainMegabytes = 110,
    held_out_mb: HeldOutMegabytes = None,
    vocab_size: VocabSize = VOCAB_SIZE,
    processes: Annotated[int, typer.Option(min=1, help="Number of processes that cut.")] = 2,
    only: Annotated[list[str] | None, typer.Option(help="Only the patterns whose names begin so.")] = None,
) -> None:
    """Compare pre-token patterns on held-out text, each with a vocabulary of its own and no seeds."""
    with command_session(Output(), advice="nothing was kept") as reporter:
        train = list(list_tree(corpus.absolute()).sample(train_mb * MEGABYTE).texts())
        measured = list(_tree(held_out, held_out_mb).texts())
        reporter.note(f"patterns: trained on {describe(train)}, measured on {describe(measured)}")
        for name in (SHIPPED, SHIPPED_2):
            prove_shipped(train, name)
        patterns = {name: regex for name, regex in studied().items() if name.startswith(tuple(only or [""]))}
        found = study(patterns, train, measured, vocab_size=vocab_size, processes=processes, reporter=reporter)
        rows = keep_rows(found, json_file)
    print(*markdown(rows), sep="\n")


def _tree(root: Path, megabytes: int | None) -> Tree:
    tree = list_tree(root.absolute())
    return tree if megabytes is None else tree.sample(megabytes * MEGABYTE)


def describe(texts: Iterable[SourceText]) -> str:
    """Return how many documents and bytes there are."""
    sizes = [len(text.content.encode()) for text in texts]
    return f"{len(sizes):,} documents, {sum(sizes) / MEGABYTE:,.1f} MB"


def study(
    patterns: Mapping[str, str],
    train: list[SourceText],
    held_out: list[SourceText],
    *,
    vocab_size: int,
    processes: int,
    reporter: Reporter,
) -> Iterator[Result]:
    """Yield what each pattern gives.

    Args:
        patterns: Name to regular expression.
        train: The documents to learn from.
        held_out: The documents to measure on.
        vocab_size: Number of ids, the 256 bytes included.
        processes: Processes that cut.
        reporter: Where progress goes.
    """
    vocabulary = read_vocabulary(VOCABULARY)
    held_out_bytes = sum(len(text.content.encode()) for text in held_out)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for name, pattern in patterns.items():
            learned, measured = (count_words(pattern, texts, pool) for texts in (train, held_out))
            merges = merge_ours([words_batch(learned)], vocab_size, processes)
            result = Result(
                pattern=name,
                train_words=learned.total(),
                train_distinct=len(learned),
                held_out_words=measured.total(),
                held_out_tokens=count_text_tokens(merges, [words_batch(measured)], processes),
                held_out_bytes=held_out_bytes,
                fixed_split=count_split(pattern, vocabulary),
            )
            reporter.note(f"patterns: {name}: {result.bytes_per_token:.4f} bytes per token")
            yield result


def count_words(pattern: str, texts: Iterable[SourceText], pool: Pool) -> Counter[str]:
    """Cut documents with a regular expression and count the words."""
    total: Counter[str] = Counter()
    for words in pool.imap_unordered(_count_chunk, ((pattern, chunk) for chunk in _chunks(texts))):
        total.update(words)
    return total


def count_split(pattern: str, vocabulary: Vocabulary) -> int:
    """Return how many fixed tokens a regular expression cuts in two."""
    find = _compile(pattern).findall
    return len(split_tokens(vocabulary, lambda token: [word.encode() for word in find(token)]))


def prove_shipped(texts: Iterable[SourceText], name: str) -> None:
    """Hold the native splitter of a shipped pattern to its regular expression, on the beginning of the sample.

    Raises:
        BenchmarkError: If a document is cut differently.
    """
    find = _compile(cppmill_core.PATTERNS[name]).findall
    left = PROVEN_BYTES
    for text in texts:
        native: list[Any] = cppmill_core.split(name, text.content.encode()).to_pylist()
        if native != [word.encode() for word in find(text.content)]:
            raise BenchmarkError(f"{name}: native splitter and `regex` cut a document of {text.project} differently")
        left -= len(text.content)
        if left < 0:
            return


def markdown(rows: Iterable[Result]) -> Iterator[str]:
    """Yield the table; differences are to the shipped pattern."""
    results = list(rows)
    base = next((row.bytes_per_token for row in results if row.pattern == SHIPPED), 0.0)
    heads = ("pattern", "words, millions", "distinct, thousands", "held-out words, millions", "bytes per token", "")
    yield f"| {' | '.join(heads)} | fixed split |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for row in results:
        change = "" if row.pattern == SHIPPED or not base else f"{row.bytes_per_token / base - 1:+.1%}"
        yield (
            f"| {row.pattern} | {row.train_words / 1e6:.2f} | {row.train_distinct / 1e3:,.0f} "
            f"| {row.held_out_words / 1e6:.2f} | {row.bytes_per_token:.3f} | {change} | {row.fixed_split:,} |"
        )


def _chunks(texts: Iterable[SourceText]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text.content)
        size += len(text.content)
        if size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    yield chunk


def _count_chunk(task: tuple[str, list[str]]) -> Counter[str]:
    """Count in a pool's process; every character must be in a word, or the pattern does not cut text but drops some."""
    pattern, contents = task
    find = _compile(pattern).findall
    words: Counter[str] = Counter()
    for content in contents:
        found = find(content)
        if sum(map(len, found)) != len(content):
            raise BenchmarkError(f"{pattern}: leaves characters in no word; add an alternative for them")
        words.update(found)
    return words


if __name__ == "__main__":
    app(prog_name="python -m benches.studies.patterns")
