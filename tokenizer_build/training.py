"""Learns the merges of a tokenizer: seeds first, then the corpus, to exactly the number of ids that are free.

With superwords the last of these ids are for tokens of several words, learned in the lines of the corpus.

The work is done in the native core (`cppmill_core.train_bpe`); this module prepares its input and turns its merges into
tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import cppmill_core
import pyarrow as pa

from schemas.errors import VocabularyConfigError
from tokenizer_build.bands import Strength
from tokenizer_build.layout import Slots
from tokenizer_build.vocabulary import FixedToken

Words: TypeAlias = list[pa.RecordBatch] | pa.RecordBatchReader
"""Word counts (`schemas.tables.WORDS`) in memory, or a reader of them, which is read once."""

DEMO_IDS = 16_384
"""The size of the profile demo, which a refusal of a larger one suggests."""

_CORPUS_PHASE, _SUPERWORD_PHASE = 2, 3
_WHAT_WOULD_DO = re.compile(r"ask for vocab_tokens (>=|<=) (\d+)")
"""How the trainer names the nearest number of tokens that it could make."""
_TOO_FEW_SUPERWORDS = re.compile(r"only (\d+) of \d+ superwords could be learned")


@dataclass(frozen=True, kw_only=True)
class Superwords:
    """The tokens of several words to learn after the others.

    Attributes:
        lines: Counts of the lines that they are learned in (`schemas.tables.WORDS`), in any order; read once.
        pattern: Name of the pattern that cut the lines.
        after: The share of the ids after which they are learned.
        max_words: The most words of one.
        max_bytes: The most bytes of one.
    """

    lines: pa.RecordBatchReader
    pattern: str
    after: float
    max_words: int
    max_bytes: int


@dataclass(frozen=True)
class LeftOut:
    """What training left out to keep to its memory.

    Attributes:
        words_below: Words of lower counts were dropped; 1 if none were.
        words: Their number.
        lines_below: Of lines of lower counts only some were kept, chosen by hash, and each counts this often.
        lines: Number of lines that were not kept.
    """

    words_below: int
    words: int
    lines_below: int
    lines: int


@dataclass(frozen=True)
class LearnedMerges:
    """What training gave.

    Attributes:
        merges: Left and right part of each merge, in rank order.
        learned: New tokens of two bytes and more, in creation order; fixed tokens are not among them.
        seed_pieces: How many of them seed merges made.
        first_superword_merge: Number of the first merge that was learned in lines, None without superwords.
        superwords: The tokens that merges in lines made, with how often each occurred when it was learned.
        left_out: What there was no room for.
        last_count: How often the last merge occurred when it was learned; 0 if only seeds made merges.
    """

    merges: tuple[tuple[bytes, bytes], ...]
    learned: tuple[bytes, ...]
    seed_pieces: int
    first_superword_merge: int | None
    superwords: dict[bytes, int]
    left_out: LeftOut
    last_count: int


def learn_merges(
    words: Words,
    slots: Slots,
    *,
    max_token_bytes: int | None,
    threads: int,
    superwords: Superwords | None = None,
    max_held_tokens: int | None = None,
    project_cap: float | None = None,
) -> LearnedMerges:
    """Learn exactly as many tokens as a plan has room for.

    Args:
        words: Word counts, in any order; the counts of a word that recurs add up.
        slots: The plan: its fixed tokens are the seeds, its names what no merge may spell.
        max_token_bytes: No learned token is longer.
        threads: Threads of the native core; the result does not depend on them.
        superwords: What to learn after the tokens of one word; nothing by default.
        max_held_tokens: The most tokens that the distinct words, or the lines, may have as training begins.
        project_cap: How many times as often as in the others a pair counts in one group of projects at most; the words
            and lines then have their `group` (`schemas.tables.GROUPED_WORDS`).

    Raises:
        VocabularyConfigError: If the vocabulary is too small for its seeds (with the least size that would do), the
            words too few to fill it (with the size that they would fill) or the lines, there are none, or a seed cannot
            become one token.
    """
    seeds = seed_table(slots.fixed)
    room = slots.learned_tokens if slots.vocab_size >= slots.first_learned else 0
    try:
        rows = cppmill_core.train_bpe(
            words,
            seeds=seeds,
            vocab_tokens=max(room, 0),
            forbidden=[name.encode() for name in slots.names_that_text_must_not_spell()],
            max_token_bytes=max_token_bytes,
            threads=threads,
            max_held_tokens=max_held_tokens,
            group_cap=project_cap,
            **_superword_arguments(superwords, slots.vocab_size),
        )
    except cppmill_core.VocabularyError as error:
        raise VocabularyConfigError(_in_vocabulary_sizes(str(error), slots, superwords)) from error
    if room != slots.learned_tokens:
        raise VocabularyConfigError(_too_small(slots, 0, superwords))
    return learned_merges(rows, seeds)


def superword_tokens(vocab_size: int, after: float | None) -> int:
    """Return how many of these ids are superwords if they are learned after a share of the ids, or never (None)."""
    return 0 if after is None else vocab_size - round(vocab_size * after)


def _superword_arguments(superwords: Superwords | None, vocab_size: int) -> dict[str, Any]:
    if superwords is None:
        return {}
    return {
        "units": superwords.lines,
        "superword_tokens": superword_tokens(vocab_size, superwords.after),
        "unit_pattern": superwords.pattern,
        "max_superword_words": superwords.max_words,
        "max_superword_bytes": superwords.max_bytes,
    }


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
    columns: list[list[Any]] = [rows[name].to_pylist() for name in ("left", "right", "count", "phase")]
    merges = tuple(zip(columns[0], columns[1], strict=True))
    learned, superwords, seed_pieces = [], {}, 0
    for (left, right), count, phase in zip(merges, *columns[2:], strict=True):
        token = left + right
        if token not in known:
            known.add(token)
            learned.append(token)
            seed_pieces += phase < _CORPUS_PHASE
            if phase == _SUPERWORD_PHASE:
                superwords[token] = count
    first = columns[3].index(_SUPERWORD_PHASE) if _SUPERWORD_PHASE in columns[3] else None
    last_count = columns[2][-1] if columns[3] and columns[3][-1] >= _CORPUS_PHASE else 0
    return LearnedMerges(merges, tuple(learned), seed_pieces, first, superwords, _left_out(rows), last_count)


def _left_out(rows: pa.RecordBatch) -> LeftOut:
    counts: dict[Any, Any] = dict(rows.schema.metadata or {})
    names = (b"words_least_count", b"words_left_out", b"units_least_count", b"units_left_out")
    return LeftOut(*(int(counts[name]) for name in names))


def _in_vocabulary_sizes(message: str, slots: Slots, superwords: Superwords | None) -> str:
    """Say in vocabulary sizes what the trainer said in tokens to learn."""
    few = _TOO_FEW_SUPERWORDS.search(message)
    if few is not None and superwords is not None:
        return _too_few_lines(slots, superwords, learnable=int(few[1]))
    found = _WHAT_WOULD_DO.search(message)
    if found is None:
        return message
    after = None if superwords is None else superwords.after
    tokens = int(found[2]) - superword_tokens(slots.vocab_size, after)
    if found[1] == ">=":
        return _too_small(slots, tokens, superwords)
    return _too_large(slots, tokens, after)


def _too_small(slots: Slots, seed_pieces: int, superwords: Superwords | None) -> str:
    after = None if superwords is None else superwords.after
    least = slots.least_vocab_size(seed_pieces)
    while _room(slots, least, after) < seed_pieces:
        least += 1
    shared = "" if after is None else f", beside superwords after {after:.3g} of the ids (superwords_after),"
    return (
        f"vocab_size = {slots.vocab_size}: too small; {len(slots.fixed)} fixed tokens, {len(slots.reserved)} reserved "
        f"ids, {len(slots.missing_bytes)} bytes without a fixed id and {seed_pieces} pieces of fixed tokens{shared} "
        f"need at least {least}"
    )


def _too_large(slots: Slots, learnable: int, after: float | None) -> str:
    would_do = slots.vocab_size
    while would_do >= slots.first_learned and _room(slots, would_do, after) > learnable:
        would_do -= 1
    room = _room(slots, slots.vocab_size, after)
    few = f"only {learnable} of {room} merges could be learned from the words of the text"
    if would_do < slots.first_learned:
        return (
            f"vocab_size = {slots.vocab_size}: {few}, which does not fill even the smallest vocabulary "
            f"({slots.first_learned} ids); give more text, or tokenize it with a ready tokenizer (--tokenizer)"
        )
    demo = f" (the profile demo has {DEMO_IDS})" if would_do >= DEMO_IDS else ""
    return (
        f"vocab_size = {slots.vocab_size}: {few}; give more text, ask for {would_do} ids or fewer{demo}, or tokenize "
        "it with a ready tokenizer (--tokenizer)"
    )


def _too_few_lines(slots: Slots, superwords: Superwords, learnable: int) -> str:
    wanted = superword_tokens(slots.vocab_size, superwords.after)
    return (
        f"vocab_size = {slots.vocab_size}: only {learnable} of {wanted} superwords could be learned from the lines of "
        f"the text; set superwords_after to {1 - learnable / slots.vocab_size:.3f} or more, allow more "
        "max_superword_words or max_superword_bytes, ask for a smaller vocab_size, or give more text"
    )


def _room(slots: Slots, vocab_size: int, after: float | None) -> int:
    """Return how many tokens of one word a vocabulary of some size would have to learn."""
    return slots.learned_tokens + vocab_size - slots.vocab_size - superword_tokens(vocab_size, after)
