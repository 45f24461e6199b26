"""Learns the merges of a tokenizer: seeds first, then the corpus, to exactly the number of ids that are free.

The work is done in the native core (`cppmill_core.train_bpe`); here its input is put together and its merges become
tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import cppmill_core
import pyarrow as pa

from schemas.errors import VocabularyConfigError
from tokenizer_build.bands import FIRST_LEARNED_ID, Strength
from tokenizer_build.layout import Slots
from tokenizer_build.vocabulary import FixedToken

_CORPUS_PHASE = 2
_WHAT_WOULD_DO = re.compile(r"ask for vocab_tokens (>=|<=) (\d+)")
"""How the trainer names the nearest number of tokens that it could make."""


@dataclass(frozen=True)
class LearnedMerges:
    """What training gave.

    Attributes:
        merges: Left and right part of each merge, in rank order.
        learned: New tokens of two bytes and more, in creation order; fixed tokens are not among them.
        seed_pieces: How many of them seed merges made.
    """

    merges: tuple[tuple[bytes, bytes], ...]
    learned: tuple[bytes, ...]
    seed_pieces: int


def learn_merges(
    words: Sequence[pa.RecordBatch], slots: Slots, *, max_token_bytes: int | None, threads: int
) -> LearnedMerges:
    """Learn exactly as many tokens as a plan has room for.

    Args:
        words: Word counts (`schemas.tables.WORDS`), in any order; the counts of a word that recurs add up.
        slots: The plan: its fixed tokens are the seeds, its names what no merge may spell.
        max_token_bytes: No learned token is longer.
        threads: Threads of the native core; the result does not depend on them.

    Raises:
        VocabularyConfigError: If the vocabulary is too small for its seeds (with the least size that would do), the
            text too little to fill it (with the size that it would fill), or a seed cannot become one token.
    """
    seeds = seed_table(slots.fixed)
    room = slots.learned_tokens if slots.vocab_size >= FIRST_LEARNED_ID else 0
    try:
        rows = cppmill_core.train_bpe(
            list(words),
            seeds=seeds,
            vocab_tokens=max(room, 0),
            forbidden=[name.encode() for name in slots.names_that_text_must_not_spell()],
            max_token_bytes=max_token_bytes,
            threads=threads,
        )
    except cppmill_core.VocabularyError as error:
        raise VocabularyConfigError(_in_vocabulary_sizes(str(error), slots)) from error
    if room != slots.learned_tokens:
        raise VocabularyConfigError(_too_small(slots, seed_pieces=0))
    return learned_merges(rows, seeds)


def seed_table(fixed: Iterable[FixedToken]) -> pa.RecordBatch:
    """Return the seeds: every fixed token of two bytes and more, by id.

    Every morpheme is a fixed token, so morphemes are among them.
    """
    tokens = [token for token in sorted(fixed, key=lambda token: token.id) if token.strength is not Strength.CONTROL]
    seeds = [token for token in tokens if len(token.token.encode()) > 1]
    strings = pa.array([token.token.encode() for token in seeds], pa.binary())
    atomic = pa.array([token.strength is Strength.ATOMIC for token in seeds], pa.bool_())
    return pa.RecordBatch.from_arrays([strings, atomic], names=["token", "atomic"])


def unreachable_seed(fixed: Iterable[FixedToken], forbidden: Iterable[str]) -> str | None:
    """Return why a fixed token can never be one token, None if each can: no sequence of allowed merges spells it.

    The seeds are learned as a build learns them, without a text. Of several such tokens the first in byte order is
    named.

    Args:
        fixed: The fixed tokens.
        forbidden: Names that no merge may spell.
    """
    columns: list[pa.Array[Any]] = [pa.array([b"a"], pa.binary()), pa.array([1], pa.uint64())]
    text = pa.RecordBatch.from_arrays(columns, names=["word", "count"])
    names = [name.encode() for name in forbidden]
    try:
        cppmill_core.train_bpe([text], seeds=seed_table(fixed), vocab_tokens=0, forbidden=names)
    except cppmill_core.VocabularyError as error:
        return None if _WHAT_WOULD_DO.search(str(error)) else str(error)
    return None


def learned_merges(rows: pa.RecordBatch, seeds: pa.RecordBatch) -> LearnedMerges:
    """Turn the trainer's merges into tokens: a merge that spells a seed or an earlier token makes no new one."""
    known = set(seeds["token"].to_pylist())
    columns: list[list[Any]] = [rows[name].to_pylist() for name in ("left", "right", "phase")]
    merges = tuple(zip(columns[0], columns[1], strict=True))
    learned, seed_pieces = [], 0
    for (left, right), phase in zip(merges, columns[2], strict=True):
        token = left + right
        if token not in known:
            known.add(token)
            learned.append(token)
            seed_pieces += phase < _CORPUS_PHASE
    return LearnedMerges(merges, tuple(learned), seed_pieces)


def _in_vocabulary_sizes(message: str, slots: Slots) -> str:
    """Say in vocabulary sizes what the trainer said in tokens to learn."""
    found = _WHAT_WOULD_DO.search(message)
    if found is None:
        return message
    tokens = int(found[2])
    if found[1] == ">=":
        return _too_small(slots, seed_pieces=tokens)
    return _too_large(slots, learnable=tokens)


def _too_small(slots: Slots, seed_pieces: int) -> str:
    return (
        f"vocab_size = {slots.vocab_size}: too small; {len(slots.fixed)} fixed tokens, {len(slots.reserved)} reserved "
        f"ids, {len(slots.missing_bytes)} bytes without a fixed id and {seed_pieces} pieces of fixed tokens need at "
        f"least {slots.least_vocab_size(seed_pieces)}"
    )


def _too_large(slots: Slots, learnable: int) -> str:
    would_do = slots.vocab_size - slots.learned_tokens + learnable
    few = f"only {learnable} of {slots.learned_tokens} merges could be learned from the text"
    if would_do < FIRST_LEARNED_ID:
        return f"vocab_size = {slots.vocab_size}: {few}; it does not even fill {FIRST_LEARNED_ID}: give more text"
    return f"vocab_size = {slots.vocab_size}: {few}; ask for {would_do}, or give more text"
