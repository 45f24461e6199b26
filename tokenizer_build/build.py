"""Builds a tokenizer from the scan's counts and a vocabulary folder: the one entry of this package.

One process, no engine: decide the candidates, plan the ids, learn the merges, write the directory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa

from schemas.errors import VocabularyConfigError
from schemas.options import BuildOptions
from schemas.tables import WORDS
from tokenizer_build.artifact import TokenizerParts, write_tokenizer
from tokenizer_build.bands import DOMAIN
from tokenizer_build.decision_files import write_decisions
from tokenizer_build.decisions import (
    Decision,
    Rule,
    cut_tokens,
    decide,
    decide_by_use,
    decide_morphemes,
    keep_candidates,
    leave_out,
)
from tokenizer_build.findings import FINDINGS_MD, DomainSlots, Findings
from tokenizer_build.layout import BandUse, Slot, Slots, assign_ids, plan_slots, plan_text_slots, use_by_band
from tokenizer_build.lint import Split, check_own_tokens, load_vocabulary, split_tokens, text_vocabulary
from tokenizer_build.lock import Lock, read_releases, revision
from tokenizer_build.own import write_vocabulary
from tokenizer_build.training import LearnedMerges, Superwords, Words, learn_merges
from tokenizer_build.vocabulary import Vocabulary, nearest

Uses = tuple[Mapping[bytes, int], float]
"""How often each token occurs in the text, and how often a fixed token must that stays."""


@dataclass(frozen=True)
class ScanCounts:
    """What a scan counted, as its files hold it.

    Attributes:
        words: Word counts (`schemas.tables.WORDS`, with `project_cap` `GROUPED_WORDS`), as the scan cut the text with
            the pattern; in any order. A reader is read once, by training, so words need no room before it bounds them.
        lines: Counts of the lines (`schemas.tables.WORDS`), read once, while superwords are learned; None if the scan
            counted none.
        terms: Counts of the candidates (`schemas.tables.TERMS`).
        morphemes: Counts of the morphemes (`schemas.tables.MORPHEMES`).
        namespaces: Counts of the leading namespaces (`schemas.tables.NAMESPACES`).
        statistics: `counts/statistics.json`: `documents`, `identifiers`, `bytes.total` and `bytes.non_ascii` are used.
        reread: Opens the words, or the lines where superwords are learned, once more, to count the tokens; None if the
            findings need not say how often tokens occur.
        reread_words: Opens the words once more, to learn twice; None if they are in memory.
    """

    words: Words
    terms: pa.Table
    morphemes: pa.Table
    namespaces: pa.Table
    statistics: Mapping[str, Any]
    lines: pa.RecordBatchReader | None = None
    reread: Callable[[], pa.RecordBatchReader] | None = None
    reread_words: Callable[[], pa.RecordBatchReader] | None = None

    def open_words(self) -> pa.RecordBatchReader:
        """Open the words beside the reading by training."""
        if self.reread_words is not None:
            return self.reread_words()
        return pa.RecordBatchReader.from_batches(WORDS, self.words)

    @property
    def documents(self) -> int:
        """Number of documents that were scanned."""
        return int(self.statistics["documents"])


@dataclass(frozen=True)
class BuildSummary:
    """What was built, in numbers.

    Attributes:
        digest: SHA-256 of manifest.json, the tokenizer's digest.
        revision: The release that the digest was given, or `unreleased`.
        vocab_size: Number of ids.
        fixed_tokens: Fixed tokens by band, controls included.
        candidates_kept: Candidates that keep their id.
        candidates_cut: Candidates whose id is freed.
        kept_by_lock: Tokens that the counts would have cut and the lock keeps.
        split_by_pattern: Tokens that the scan keeps and the pattern cuts into words, so that they are not fixed.
        findings: What the end of the stage says of the scan and the slots, a few lines.
        reserved_ids: Ids that nothing uses.
        missing_bytes: Bytes that have a learned id.
        seed_pieces: Learned tokens that seed merges made.
        learned_tokens: Learned tokens of two bytes and more, the pieces and the superwords included.
        superwords: Learned tokens that merges in lines made.
        merges: Merges in tokenizer.json.
    """

    digest: str
    revision: str
    vocab_size: int
    fixed_tokens: dict[str, int]
    candidates_kept: int
    candidates_cut: int
    kept_by_lock: tuple[str, ...]
    split_by_pattern: tuple[str, ...]
    findings: tuple[str, ...]
    reserved_ids: int
    missing_bytes: int
    seed_pieces: int
    learned_tokens: int
    superwords: int
    merges: int


@dataclass(frozen=True)
class Plan:
    """What a build has before it learns.

    Attributes:
        vocabulary: The vocabulary.
        decisions: What was decided of the candidates.
        morphemes: What was decided of the morphemes.
        split_by_pattern: Tokens that the scan keeps and the pattern cuts into words, so that they are not fixed.
        slots: The ids.
        by_use: What was decided of fixed tokens by their use; empty if that did not decide.
        least_use: The fewest occurrences of a token that stays by its use.
    """

    vocabulary: Vocabulary
    decisions: list[Decision]
    morphemes: list[Decision]
    split_by_pattern: tuple[str, ...]
    slots: Slots
    by_use: tuple[Decision, ...] = ()
    least_use: float = 0.0


def build_tokenizer(
    counts: ScanCounts,
    *,
    vocabulary_dir: Path,
    options: BuildOptions,
    pattern: str,
    out: Path,
    line_pattern: str | None = None,
    threads: int = 1,
    is_recorded: bool = False,
) -> BuildSummary:
    """Build a tokenizer directory.

    The same counts, vocabulary and options give the same bytes, for any order of the words and any number of threads.

    Args:
        counts: What the scan counted with `pattern`.
        vocabulary_dir: Folder with the bands' files and the lock.
        options: Size, thresholds, profile.
        pattern: Name of the pre-token pattern.
        out: An existing, empty folder.
        line_pattern: Name of the pattern that cut the lines; superwords need it, and then it is the tokenizer's.
        threads: Threads of the native core.
        is_recorded: Whether the vocabulary is written into the tokenizer directory, and its digest into the manifest.

    Raises:
        VocabularyConfigError: If the vocabulary breaks its rules or its lock, the pattern cuts a token of its own, the
            size is too small for it, or the text too little to fill it.
    """
    superwords = _superwords(counts, options, line_pattern)
    token_pattern = pattern if superwords is None else superwords.pattern
    regex = pattern_regex(token_pattern)
    vocabulary, lock = open_vocabulary(vocabulary_dir, options)
    plan = plan_vocabulary(vocabulary, lock, counts, options, pattern_split(token_pattern), threads=threads)
    learned = learn_merges(
        counts.words,
        plan.slots,
        max_token_bytes=options.max_token_bytes,
        threads=threads,
        superwords=superwords,
        max_held_tokens=options.max_held_tokens,
        project_cap=options.project_cap,
    )
    ids = assign_ids(plan.slots, learned.learned)
    found = replace(
        _findings(plan, counts, learned, options), use=_count_use(counts, learned, ids, line_pattern, threads)
    )
    write_decisions(plan.decisions, [*plan.morphemes, *plan.by_use], out)
    (out / FINDINGS_MD).write_text("".join(f"{line}\n" for line in found.report()), encoding="utf-8", newline="")
    parts = TokenizerParts(
        plan.slots,
        ids,
        learned.merges,
        token_pattern,
        regex,
        options.profile,
        first_superword_merge=learned.first_superword_merge,
        template=options.hf_template,
        vocabulary=write_vocabulary(vocabulary, out) if is_recorded else None,
    )
    return _summary(plan, learned, write_tokenizer(parts, out), found)


def _superwords(counts: ScanCounts, options: BuildOptions, line_pattern: str | None) -> Superwords | None:
    """Return what superwords to learn and in which lines, None if none are asked for."""
    if options.superwords_after is None:
        return None
    if options.min_fixed_use is not None:
        raise VocabularyConfigError(
            f"min_fixed_use = {options.min_fixed_use}: not with superwords; leave out one of the two (superwords_after)"
        )
    if line_pattern is None or counts.lines is None:
        raise VocabularyConfigError(
            f"superwords_after = {options.superwords_after}: the scan counted no lines; set unit_pattern in [scan]"
        )
    return Superwords(
        lines=counts.lines,
        pattern=line_pattern,
        after=options.superwords_after,
        max_words=options.max_superword_words,
        max_bytes=options.max_superword_bytes,
    )


def open_vocabulary(directory: Path, options: BuildOptions) -> tuple[Vocabulary, Lock]:
    """Return the vocabulary of a folder and its lock, or that of the control tokens that the options name."""
    return load_vocabulary(directory) if options.specials is None else text_vocabulary(directory, options.specials)


def pattern_regex(pattern: str) -> str:
    """Return the regular expression of a pre-token pattern.

    Raises:
        VocabularyConfigError: If the native core knows no pattern of this name.
    """
    if pattern not in cppmill_core.PATTERNS:
        raise VocabularyConfigError(
            f"pattern = {pattern!r}: no such pattern; {nearest(pattern, cppmill_core.PATTERNS)}"
        )
    return cppmill_core.PATTERNS[pattern]


def pattern_split(pattern: str) -> Split:
    """Return the function that cuts a text into the words of a pre-token pattern."""
    return partial(_split, pattern)


@lru_cache(maxsize=1 << 14)
def _split(pattern: str, text: str) -> tuple[bytes, ...]:
    """Cut a text; the tokens of a vocabulary are cut by each build and each check of one."""
    words: list[Any] = cppmill_core.split(pattern, text.encode()).to_pylist()
    return tuple(words)


def plan_vocabulary(
    vocabulary: Vocabulary,
    lock: Lock,
    counts: ScanCounts,
    options: BuildOptions,
    split: Split,
    *,
    threads: int,
    given_uses: Uses | None = None,
) -> Plan:
    """Decide which tokens a build has as fixed, and plan its ids.

    Args:
        vocabulary: The vocabulary.
        lock: Its lock.
        counts: What the scan counted; the words are read only if the use of tokens decides.
        options: Size and thresholds.
        split: Cuts a text as the tokenizer's pattern does.
        threads: Threads of the native core.
        given_uses: What was counted of the use of fixed tokens, if that decides; by default it is counted, which takes
            a training.

    Raises:
        VocabularyConfigError: If the pattern cuts a token of the user's own vocabulary.
    """
    check_own_tokens(vocabulary, split)
    morphemes = decide_morphemes(vocabulary, lock, counts.morphemes, counts.documents, options)
    decisions = decide(vocabulary, lock, counts.terms, counts.documents, options, cut_morphemes=cut_tokens(morphemes))
    morphemes = keep_candidates(morphemes, decisions)
    cut = cut_tokens([*decisions, *morphemes])
    split_by_pattern = tuple(token.token for token in split_tokens(vocabulary, split) if token.token not in cut)
    left_out = cut | set(split_by_pattern)
    fixed = [token for token in vocabulary.tokens if token.token not in left_out]
    is_text = options.specials is not None
    slots = plan_text_slots(fixed, options.vocab_size) if is_text else plan_slots(fixed, lock, options.vocab_size)
    plan = Plan(vocabulary, decisions, morphemes, split_by_pattern, slots)
    if options.min_fixed_use is None:
        return plan
    uses, least = given_uses or _count_uses(plan, counts, options, threads)
    return _without_unneeded(plan, lock, uses, least, options)


def _count_uses(plan: Plan, counts: ScanCounts, options: BuildOptions, threads: int) -> Uses:
    """Learn with all fixed tokens of a plan; return how often each token occurs, and how often one that stays must."""
    learned = learn_merges(
        counts.open_words(),
        plan.slots,
        max_token_bytes=options.max_token_bytes,
        threads=threads,
        max_held_tokens=options.max_held_tokens,
        project_cap=options.project_cap,
    )
    return _count_tokens(learned, counts.open_words(), threads), (options.min_fixed_use or 0) * learned.last_count


def _without_unneeded(plan: Plan, lock: Lock, uses: Mapping[bytes, int], least: float, options: BuildOptions) -> Plan:
    """Leave out of a plan the fixed tokens that occur less often than one more learned token."""
    by_use = decide_by_use(plan.vocabulary, lock, plan.slots.fixed, uses, least)
    cut = cut_tokens(by_use)
    fixed = [token for token in plan.slots.fixed if token.token not in cut]
    return replace(
        plan,
        decisions=leave_out(plan.decisions, cut),
        morphemes=leave_out(plan.morphemes, cut),
        slots=plan_slots(fixed, lock, options.vocab_size),
        by_use=tuple(by_use),
        least_use=least,
    )


def _count_tokens(
    learned: LearnedMerges, texts: pa.RecordBatchReader, threads: int, *, line_pattern: str | None = None
) -> Counter[bytes]:
    """Return how often each token occurs in counted words, or in the lines of a pattern."""
    left, right = (pa.array([merge[side] for merge in learned.merges], pa.binary()) for side in (0, 1))
    merges = pa.RecordBatch.from_arrays([left, right], names=["left", "right"])
    first = learned.first_superword_merge
    found = cppmill_core.count_tokens(merges, texts, first_superword=first, unit_pattern=line_pattern, threads=threads)
    columns: list[list[Any]] = [found["token"].to_pylist(), found["count"].to_pylist()]
    total = Counter[bytes]()
    for token, times in zip(*columns, strict=True):
        total[token] += times
    return total


def _count_use(
    counts: ScanCounts, learned: LearnedMerges, ids: Sequence[Slot], line_pattern: str | None, threads: int
) -> list[BandUse]:
    """Return how often the ids of each band occur in the text that was learned from; nothing if it cannot be reread."""
    if counts.reread is None:
        return []
    return use_by_band(ids, _count_tokens(learned, counts.reread(), threads, line_pattern=line_pattern))


def _findings(plan: Plan, counts: ScanCounts, learned: LearnedMerges, options: BuildOptions) -> Findings:
    slots = DomainSlots(
        proposed=sum(token.band.name == DOMAIN for token in plan.vocabulary.tokens),
        kept=sum(token.band.name == DOMAIN for token in plan.slots.fixed),
        learned=len(learned.learned),
        split=plan.split_by_pattern,
    )
    return Findings(
        decisions=plan.decisions,
        morpheme_decisions=plan.morphemes,
        by_use=plan.by_use,
        least_use=plan.least_use,
        morphemes=counts.morphemes,
        namespaces=counts.namespaces,
        statistics=counts.statistics,
        morphemes_proposed=len({morpheme.morpheme for morpheme in plan.vocabulary.morphemes}),
        slots=slots,
        superwords=learned.superwords,
        left_out=learned.left_out,
        options=options,
    )


def _summary(plan: Plan, learned: LearnedMerges, digest: str, found: Findings) -> BuildSummary:
    slots = plan.slots
    cut = cut_tokens(plan.decisions)
    return BuildSummary(
        digest=digest,
        revision=revision(read_releases(plan.vocabulary.directory), digest),
        vocab_size=slots.vocab_size,
        fixed_tokens=dict(Counter(token.band.name for token in slots.fixed)),
        candidates_kept=len({decision.token for decision in plan.decisions} - cut),
        candidates_cut=len(cut),
        kept_by_lock=tuple(sorted({d.token for d in [*plan.decisions, *plan.morphemes] if d.rule is Rule.LOCKED})),
        split_by_pattern=plan.split_by_pattern,
        findings=tuple(found.summary()),
        reserved_ids=len(slots.reserved),
        missing_bytes=len(slots.missing_bytes),
        seed_pieces=learned.seed_pieces,
        learned_tokens=len(learned.learned),
        superwords=len(learned.superwords),
        merges=len(learned.merges),
    )
