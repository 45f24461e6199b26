"""What the studies do with learned merges: count the tokens of counted words.

Each distinct word is encoded once, so a text costs what its distinct words cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from tokenizers import Tokenizer, models, pre_tokenizers

from tokenizer_build.byte_alphabet import CHARACTERS, spell

WORDS_AT_ONCE = 20_000
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


def word_encoder(merges: pa.RecordBatch) -> Tokenizer:
    """Return the tokenizer of `tokenizers` that encodes single words with merges."""
    spelled = spell_merges(merges)
    tokens = dict.fromkeys([*sorted(CHARACTERS), *(left + right for left, right in spelled)])
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=spelled))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return tokenizer


def count_text_tokens(merges: pa.RecordBatch, words: Mapping[str, int]) -> int:
    """Return how many tokens a text has, from its words and how often each stands in it."""
    tokenizer = word_encoder(merges)
    spelled = list(words)
    total = 0
    for start in range(0, len(spelled), WORDS_AT_ONCE):
        chunk = spelled[start : start + WORDS_AT_ONCE]
        encoded = tokenizer.encode_batch_fast(chunk, add_special_tokens=False)
        total += sum(words[word] * len(encoding) for word, encoding in zip(chunk, encoded, strict=True))
    return total
