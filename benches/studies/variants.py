"""The vocabularies that the ablations compare: learned from counts as in a build, each without something.

Two things can be left out of a build. *Seeds*: the merges that make every fixed token and morpheme one token, ranked
before all others. *Bands*: the pinned ids of fixed tokens, the reserved ids and the promise that atomic tokens are
never joined to punctuation. Bands without seeds spend ids on tokens that only the text's own merges can reach; seeds
without bands rank the same merges first, but reserve no id and join freely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq
from cppmill_core.byte_alphabet import CHARACTERS

from benches.lib.vocabularies import NO_SEEDS
from schemas.errors import VocabularyConfigError
from schemas.options import BuildOptions
from schemas.tables import WORDS
from tokenizer_build.bands import Strength
from tokenizer_build.build import ScanCounts, pattern_split, plan_vocabulary
from tokenizer_build.layout import Slots
from tokenizer_build.lint import load_vocabulary
from tokenizer_build.training import Superwords, learn_merges, learned_merges, seed_table

ALL_BYTES = [bytes([byte]) for byte in range(len(CHARACTERS))]


@dataclass(frozen=True)
class Variant:
    """A vocabulary to learn.

    Attributes:
        vocab_size: Number of ids.
        seeds: Whether seed merges are ranked first.
        bands: Whether fixed tokens and reserved ids have their places.
        superwords_after: The share of the ids after which superwords are learned; None for none. Only a whole build,
            with seeds and bands, has them.
        every_fixed: Whether the fixed tokens that the text does not need are fixed all the same (`min_fixed_use`).
    """

    vocab_size: int
    seeds: bool = True
    bands: bool = True
    superwords_after: float | None = None
    every_fixed: bool = False

    @property
    def name(self) -> str:
        """What it is, for the table."""
        left_out = [f", no {name}" for name, there in (("seeds", self.seeds), ("bands", self.bands)) if not there]
        superwords = "" if self.superwords_after is None else f", superwords after {self.superwords_after * 100:g} %"
        every = ", every fixed token" if self.every_fixed else ""
        return f"{self.vocab_size:,}{''.join(left_out)}{superwords}{every}"


@dataclass(frozen=True)
class Vocabulary:
    """What was learned: the merges in rank order, and the string of every id that text can have."""

    merges: pa.RecordBatch
    tokens: tuple[bytes, ...]

    def unused(self, counts: pa.RecordBatch) -> int:
        """Return how many of its tokens never occur in a text, by what `count_tokens` counted there."""
        tokens: list[Any] = counts["token"].to_pylist()
        numbers: list[Any] = counts["count"].to_pylist()
        used = {token for token, count in zip(tokens, numbers, strict=True) if count}
        return sum(token not in used for token in self.tokens)


@dataclass(frozen=True)
class Ingredients:
    """What all variants are made of.

    Attributes:
        counts: What the scan of the training text counted, without the lines.
        lines: The files of its lines.
        vocabulary_dir: The vocabulary's files.
        threads: Threads of the native core.
        pattern: The pattern of the words.
        line_pattern: The pattern of the lines.
        options: The thresholds that decide what is fixed.
    """

    counts: ScanCounts
    lines: tuple[Path, ...]
    vocabulary_dir: Path
    threads: int
    pattern: str
    line_pattern: str
    options: BuildOptions = field(default_factory=BuildOptions)

    def pattern_of(self, variant: Variant) -> str:
        """Return the pattern that a variant's text is cut with."""
        return self.pattern if variant.superwords_after is None else self.line_pattern

    def learn(self, variant: Variant) -> Vocabulary:
        """Learn a variant.

        Raises:
            VocabularyConfigError: If the text or the size does not do for it.
        """
        slots = self.plan(variant.vocab_size, self.pattern_of(variant), every_fixed=variant.every_fixed)
        if variant.seeds and variant.bands:
            return self._as_built(slots, variant.superwords_after)
        return self._bands_alone(slots) if variant.bands else self._without_bands(slots, seeds=variant.seeds)

    def text(self, pattern: str) -> pa.RecordBatchReader:
        """Return the counts of the training text, as a pattern cut it."""
        batches = read_words(self.lines) if pattern == self.line_pattern else iter(self.counts.words)
        return pa.RecordBatchReader.from_batches(WORDS, batches)

    def plan(self, vocab_size: int, pattern: str, *, every_fixed: bool = False) -> Slots:
        """Return the ids of a build for a pattern, with the fixed tokens that the counts keep."""
        vocabulary, lock = load_vocabulary(self.vocabulary_dir)
        changes = {"vocab_size": vocab_size} | ({"min_fixed_use": None} if every_fixed else {})
        options = self.options.model_copy(update=changes)
        split = pattern_split(pattern)
        return plan_vocabulary(vocabulary, lock, self.counts, options, split, threads=self.threads).slots

    def _as_built(self, slots: Slots, superwords_after: float | None) -> Vocabulary:
        superwords = None if superwords_after is None else self._superwords(superwords_after)
        learned = learn_merges(
            self.text(self.pattern), slots, max_token_bytes=None, threads=self.threads, superwords=superwords
        )
        return Vocabulary(merges_batch(learned.merges), (*_fixed(slots), *_missing(slots), *learned.learned))

    def _superwords(self, after: float) -> Superwords:
        options = BuildOptions()
        return Superwords(
            lines=self.text(self.line_pattern),
            pattern=self.line_pattern,
            after=after,
            max_words=options.max_superword_words,
            max_bytes=options.max_superword_bytes,
        )

    def _bands_alone(self, slots: Slots) -> Vocabulary:
        """Learn without seeds; a merge that spells a fixed token has that token's id, so more are learned."""
        fixed = _fixed(slots)
        rows = self._train(pa.record_batch(NO_SEEDS), slots.learned_tokens + len(fixed), slots)
        learned = learned_merges(rows, seed_table(slots.fixed)).learned[: slots.learned_tokens]
        if len(learned) < slots.learned_tokens:
            raise VocabularyConfigError(f"vocab_size = {slots.vocab_size}: the text is too little; give more")
        last = _place(rows, learned[-1])
        return Vocabulary(rows.slice(0, last + 1), (*fixed, *_missing(slots), *learned))

    def _without_bands(self, slots: Slots, *, seeds: bool) -> Vocabulary:
        controls = sum(token.strength is Strength.CONTROL for token in slots.fixed)
        room = slots.vocab_size - controls - len(ALL_BYTES)
        table = seed_table(slots.fixed) if seeds else pa.record_batch(NO_SEEDS)
        free: list[pa.Array[Any]] = [table["token"], pa.array([False] * table.num_rows, pa.bool_())]
        joined = pa.RecordBatch.from_arrays(free, names=["token", "atomic"])
        rows = self._train(joined, room - table.num_rows, slots)
        learned = learned_merges(rows, table).learned
        strings: list[Any] = table["token"].to_pylist()
        return Vocabulary(rows, (*ALL_BYTES, *strings, *learned))

    def _train(self, seeds: pa.RecordBatch, vocab_tokens: int, slots: Slots) -> pa.RecordBatch:
        return cppmill_core.train_bpe(
            self.text(self.pattern),
            seeds=seeds,
            vocab_tokens=vocab_tokens,
            forbidden=[name.encode() for name in slots.names_that_text_must_not_spell()],
            threads=self.threads,
        )


def read_words(paths: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    """Yield words or lines from a scan's files, a row group at a time."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group).cast(WORDS).to_batches()


def merges_batch(merges: Sequence[tuple[bytes, bytes]]) -> pa.RecordBatch:
    """Return merges as the native core takes them."""
    columns: dict[str, pa.Array[Any]] = {
        "left": pa.array([left for left, _ in merges], pa.binary()),
        "right": pa.array([right for _, right in merges], pa.binary()),
    }
    return pa.record_batch(columns)


def _fixed(slots: Slots) -> list[bytes]:
    """Return the strings of the fixed tokens that text can have, single bytes among them."""
    return [token.token.encode() for token in slots.fixed if token.strength is not Strength.CONTROL]


def _missing(slots: Slots) -> Iterable[bytes]:
    return (bytes([byte]) for byte in slots.missing_bytes)


def _place(rows: pa.RecordBatch, token: bytes) -> int:
    """Return the number of the first merge that spells a token."""
    columns: list[list[Any]] = [rows[name].to_pylist() for name in ("left", "right")]
    return next(row for row, (left, right) in enumerate(zip(*columns, strict=True)) if left + right == token)
