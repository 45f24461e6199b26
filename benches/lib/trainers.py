"""The trainers that are compared, each as functions for a candidate's process: ours and three public ones.

All read the same sample, a Parquet file of documents that is streamed, so that the memory is the trainer's own.
Where a trainer counts and merges in two calls they are timed apart; `tokenizers` is taken to count until it has
read the last document. Merges are compared as tokenizer.json spells them, outside the clock.
"""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import cppmill_core
import ffbpe
import gigabpe
import pyarrow as pa
import pyarrow.parquet as pq
from cppmill_core.byte_alphabet import CHARACTERS
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from benches.lib.harness import RunResult
from benches.lib.vocabularies import merge_ours, spell_merges, words_batch
from schemas.options import BuildOptions

PATTERN, LINE_PATTERN = "cpp-words-1", "cpp-lines-1"
"""What words are cut with, and the lines of superwords."""

SHUFFLE_SEED = 5
SHUFFLED_WORDS = 10_000
Merges = Iterable[tuple[str, str]]


def read_batches(sample: Path) -> Iterator[pa.RecordBatch]:
    """Stream the documents of a sample, a row group at a time."""
    with pq.ParquetFile(sample) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group).to_batches()


def read_contents(sample: Path) -> Iterator[str]:
    """Stream the documents of a sample as text."""
    for batch in read_batches(sample):
        contents: list[Any] = batch["content"].to_pylist()
        for content in contents:
            yield content.decode()


def digest(merges: Merges) -> str:
    """Return the SHA-256 of merges in their order."""
    return hashlib.sha256("\n".join(f"{left} {right}" for left, right in merges).encode()).hexdigest()


def count_ours(sample: Path, pattern: str, threads: int, *, shuffled: bool = False) -> list[pa.RecordBatch]:
    """Count the words of a sample natively; `shuffled` shuffles documents, and words within each batch."""
    if not shuffled:
        return count_words(read_batches(sample), pattern, threads)
    order = random.Random(SHUFFLE_SEED)
    documents = list(read_batches(sample))
    order.shuffle(documents)
    words = pa.Table.from_batches(count_words(documents, pattern, threads)).to_batches(max_chunksize=SHUFFLED_WORDS)
    order.shuffle(words)
    return words


def count_words(documents: Iterable[pa.RecordBatch], pattern: str, threads: int) -> list[pa.RecordBatch]:
    """Count the words of documents natively."""
    counter = cppmill_core.WordCounter(pattern, threads)
    for batch in documents:
        counter.add(batch)
    return list(counter.finish())


def train_ours(
    sample: Path, pattern: str, vocab_size: int, threads: int, state: None, *, shuffled: bool = False
) -> RunResult:
    """Count and merge with the native core."""
    start = time.perf_counter()
    words = count_ours(sample, pattern, threads, shuffled=shuffled)
    counted = time.perf_counter()
    merges = merge_ours(words, vocab_size, threads)
    parts = {"counting": counted - start, "merging": time.perf_counter() - counted}
    return RunResult(parts=parts, digest=lambda: digest(spell_merges(merges)))


def train_superwords(sample: Path, vocab_size: int, threads: int, state: None) -> RunResult:
    """Count words and lines and learn superwords after three quarters of the ids, in the bounds that a build has."""
    start = time.perf_counter()
    words = count_ours(sample, PATTERN, threads)
    counted = time.perf_counter()
    lines = count_ours(sample, LINE_PATTERN, threads)
    lines_counted = time.perf_counter()
    options = BuildOptions()
    merges = merge_ours(
        words,
        vocab_size,
        threads,
        units=pa.RecordBatchReader.from_batches(lines[0].schema, lines),
        superword_tokens=vocab_size // 4,
        unit_pattern=LINE_PATTERN,
        max_superword_words=options.max_superword_words,
        max_superword_bytes=options.max_superword_bytes,
    )
    parts = {"counting": counted - start, "counting lines": lines_counted - counted}
    parts["merging"] = time.perf_counter() - lines_counted
    return RunResult(parts=parts, digest=lambda: digest(spell_merges(merges)))


def merge_counted(vocab_size: int, threads: int, words: list[pa.RecordBatch]) -> RunResult:
    """Merge words that were counted outside the clock."""
    start = time.perf_counter()
    merges = merge_ours(words, vocab_size, threads)
    parts = {"merging": time.perf_counter() - start}
    return RunResult(parts=parts, digest=lambda: digest(spell_merges(merges)))


def count_alone(sample: Path, pattern: str, threads: int, out: Path, state: None) -> RunResult:
    """Count with the native core; the words are written to `out` outside the clock."""
    words = count_ours(sample, pattern, threads)

    def keep() -> str:
        pq.write_table(pa.Table.from_batches(words), out)
        return str(sum(batch.num_rows for batch in words))

    return RunResult(digest=keep)


def read_words(path: Path) -> list[pa.RecordBatch]:
    """Read counted words."""
    return pq.read_table(path).to_batches()


def train_tokenizers(sample: Path, pattern: str, vocab_size: int, state: None) -> RunResult:
    """Count and merge with `tokenizers`, with the regular expression of one of our patterns."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(cppmill_core.PATTERNS[pattern]), "isolated")
    spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, spelled])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    start = time.perf_counter()
    read = start

    def contents() -> Iterator[str]:
        nonlocal read
        yield from read_contents(sample)
        read = time.perf_counter()

    tokenizer.train_from_iterator(contents(), trainer)
    parts = {"counting": read - start, "merging": time.perf_counter() - read}
    return RunResult(parts=parts, digest=lambda: digest(map(tuple, json.loads(tokenizer.to_str())["model"]["merges"])))


def train_ffbpe(sample: Path, pattern: str | None, vocab_size: int, state: None) -> RunResult:
    """Count and merge with ffbpe, with a regular expression or its own GPT-2 splitter."""
    start = time.perf_counter()
    counter = ffbpe.PreTokenizer([], pat_str=pattern).word_counter()
    counter.add_source(read_contents(sample))
    counted = time.perf_counter()
    trainer = ffbpe.BpeTrainer([], initial_alphabet="byte_level", tie_break="smallest_pair_id")
    trainer.add_word_counter(counter)
    trainer.train(vocab_size)
    parts = {"counting": counted - start, "merging": time.perf_counter() - counted}
    return RunResult(parts=parts, digest=lambda: digest(ffbpe_merges(trainer)))


def ffbpe_merges(trainer: ffbpe.BpeTrainer) -> list[tuple[str, str]]:
    """Return the merges of an ffbpe trainer, from the file that it writes: `left right => count` a line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "merges.txt")
        trainer.save_files(Path(folder, "vocab.json"), path)
        rows = [line.split(" ") for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [(row[0], row[1]) for row in rows]


def train_gigabpe(text: Path, vocab_size: int, threads: int, state: None) -> RunResult:
    """Count and merge the lines of a text file with gigabpe, with its GPT-2 splitter.

    Its alphabet has only the bytes of the text; what it makes instead of the others, beyond their merges, is cut off.
    """
    _, merges = gigabpe.train_bpe(  # type: ignore[attr-defined]  # it has no types
        [str(text)], vocab_size=vocab_size, pretokenizer="bytelevel", threads=threads
    )
    wanted = vocab_size - len(CHARACTERS)
    return RunResult(digest=lambda: digest(map(tuple, merges[:wanted])))


def count_with_ffbpe(records: Iterable[str], pattern: str | None) -> list[pa.RecordBatch]:
    """Count the words of a regular expression, or of the GPT-2 pattern, as the native trainer takes them."""
    counter = ffbpe.PreTokenizer([], pat_str=pattern).word_counter()
    counter.add_source(records)
    return [words_batch(counter.words())]


def count_gpt2(records: Iterable[str], out: Path) -> None:
    """Count words of the GPT-2 pattern with ffbpe and write them as the native trainer reads them."""
    pq.write_table(pa.Table.from_batches(count_with_ffbpe(records, None)), out)


def count_gpt2_documents(sample: Path, out: Path, state: None) -> RunResult:
    """Count words document by document."""
    count_gpt2(read_contents(sample), out)
    return RunResult()


def count_gpt2_lines(text: Path, out: Path, state: None) -> RunResult:
    """Count words line by line."""
    with text.open(encoding="utf-8", newline="\n") as lines:
        count_gpt2(lines, out)
    return RunResult()
