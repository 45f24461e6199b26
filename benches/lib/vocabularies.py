"""What the studies do with learned merges: spell them, and count the tokens of counted words.

Each distinct word is encoded once, so a text costs what its distinct words cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cppmill_core
import pyarrow as pa
from cppmill_core.byte_alphabet import spell

NO_SEEDS: dict[str, pa.Array[Any]] = {"token": pa.array([], pa.binary()), "atomic": pa.array([], pa.bool_())}
"""The seeds of plain training."""


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
