"""Merges without seeds: learn them from counted words, spell them, and count the tokens of counted words.

Each distinct word is encoded once, so a text costs what its distinct words cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cppmill_core
import pyarrow as pa
from cppmill_core.byte_alphabet import CHARACTERS, spell

NO_SEEDS: dict[str, pa.Array[Any]] = {"token": pa.array([], pa.binary()), "atomic": pa.array([], pa.bool_())}
"""The seeds of plain training."""


def words_batch(words: Mapping[str, int]) -> pa.RecordBatch:
    """Return counts as the trainer takes them."""
    columns: dict[str, pa.Array[Any]] = {
        "word": pa.array([word.encode() for word in words], pa.binary()),
        "count": pa.array(words.values(), pa.uint64()),
    }
    return pa.record_batch(columns)


def merge_ours(
    words: Sequence[pa.RecordBatch],
    vocab_size: int,
    threads: int,
    **superwords: Any,  # noqa: ANN401 - as `train_bpe` takes them
) -> pa.RecordBatch:
    """Learn merges natively, without seeds, up to a vocabulary size that counts the 256 bytes.

    Args:
        words: The counted words.
        vocab_size: Number of ids.
        threads: Number of threads.
        superwords: The arguments of `train_bpe` for superwords; none to learn none.
    """
    return cppmill_core.train_bpe(
        list(words),
        seeds=pa.record_batch(NO_SEEDS),
        vocab_tokens=vocab_size - len(CHARACTERS),
        forbidden=[],
        threads=threads,
        **superwords,
    )


def spell_merges(merges: pa.RecordBatch) -> list[tuple[str, str]]:
    """Return merges as tokenizer.json holds them.

    Example:
        >>> spell_merges(pa.record_batch({"left": [b" "], "right": [b"a"]}))
        [('Ġ', 'a')]
    """
    left: list[Any] = merges["left"].to_pylist()
    right: list[Any] = merges["right"].to_pylist()
    return [(spell(first), spell(second)) for first, second in zip(left, right, strict=True)]


def count_text_tokens(merges: pa.RecordBatch, words: Sequence[pa.RecordBatch], threads: int) -> int:
    """Return how many tokens counted words have."""
    reader = pa.RecordBatchReader.from_batches(words[0].schema, words)
    counts: Any = cppmill_core.count_tokens(merges, reader, threads=threads)["count"]
    return int(counts.to_numpy().sum())
