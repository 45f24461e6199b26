"""Readable BPE training and encoding: of characters or bytes with a stop character, and with seeds and superwords.

The oracle of the native core, and the code of docs/tutorials/bpe.md. It is slow on purpose: every step counts all
pairs anew, and a text's segmentation is always what `encode` makes of it with the merges so far. So whatever is learned
here is by definition what an encoder does. `cppmill_core.train_bpe` must give the same merges as `train_bpe` on any
input. In the spirit of Andrej Karpathy's minbpe; `learn_merges` is BPE as Sennrich, Haddow and Birch published it for
words (https://aclanthology.org/P16-1162).

It does not split text into words: a word is any byte string that it is given.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from cppmill_core.byte_alphabet import BYTES_IN_ORDER

from schemas.errors import VocabularyConfigError

Symbols = TypeVar("Symbols", bytes, str)
"""A text and the pieces of it: of bytes, or of characters."""

Pair = tuple[bytes, bytes]
Priority = tuple[int, ...]

IDENTIFIER_PHASE, BORDER_PHASE, CORPUS_PHASE, SUPERWORD_PHASE = range(4)
"""Seed merges inside runs of identifier bytes, seed merges across their borders, merges from the words, from lines."""

Texts = Mapping[bytes, int] | Sequence[Mapping[bytes, int]]
"""Text to count, or that for each group of texts."""

_IDENTIFIER_RUN = re.compile(rb"[A-Za-z0-9_]+")


@dataclass(frozen=True)
class Merge:
    """A merge: its parts, how often the pair occurred when it was learned, and in which phase that was."""

    left: bytes
    right: bytes
    count: int
    phase: int


def encode(word: Symbols, ranks: Mapping[tuple[Symbols, Symbols], int]) -> list[Symbols]:
    """Split a word by rank: again and again merge the pair of the lowest rank, the leftmost among equals.

    Example:
        >>> encode("hugs", {("u", "g"): 0, ("h", "ug"): 1})
        ['hug', 's']
    """
    pieces = [word[at : at + 1] for at in range(len(word))]
    while True:
        ranked = ((ranks[pair], at) for at, pair in enumerate(pairwise(pieces)) if pair in ranks)
        _, at = min(ranked, default=(None, None))
        if at is None:
            return pieces
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]


def encode_longest(word: Symbols, tokens: Collection[Symbols]) -> list[Symbols]:
    """Split a word greedily: from left to right take the longest token that begins there, else one symbol.

    Ranks play no part, so the pieces may differ from those of `encode`; none of our tokenizers encodes this way.

    Example:
        >>> tokens = {"ab", "bcd"}
        >>> encode_longest("abcd", tokens), encode("abcd", {("c", "d"): 0, ("b", "cd"): 1, ("a", "b"): 2})
        (['ab', 'c', 'd'], ['a', 'bcd'])
    """
    pieces, longest = list[Symbols](), max(map(len, tokens), default=1)
    while word:
        lengths = range(min(longest, len(word)), 1, -1)
        length = next((length for length in lengths if word[:length] in tokens), 1)
        pieces.append(word[:length])
        word = word[length:]
    return pieces


def learn_merges(
    words: Mapping[Symbols, int],
    *,
    merges: int,
    stop: Symbols | None = None,
    is_stop_merged: bool = True,
    max_token_length: int | None = None,
    ends_at_bound: bool = False,
) -> list[tuple[Symbols, Symbols]]:
    """Learn merges from word counts as the paper does: again and again merge the most frequent pair.

    Ties go to the pair whose symbols were made first; single ones in the order of their codes.

    Args:
        words: Word to count; all of bytes or all of characters.
        merges: How many to learn at most; fewer if no pair is left.
        stop: A symbol that is in no word. It is put behind each, so that a token that ends a word is another one
            than the same letters inside of one, and words can be joined again.
        is_stop_merged: Whether the stop may become part of a token; otherwise it stays a symbol of its own.
        max_token_length: The most symbols a token may have.
        ends_at_bound: Whether training ends at the first best pair that is too long; otherwise it is skipped.

    Example:
        >>> learn_merges({"hug": 3, "hub": 2}, merges=2, stop="·")
        [('h', 'u'), ('g', '·')]
        >>> learn_merges({"hug": 3, "hub": 2}, merges=2, stop="·", is_stop_merged=False)
        [('h', 'u'), ('hu', 'g')]
    """
    texts = {word if stop is None else word + stop: count for word, count in words.items()}
    symbols = {text[at : at + 1] for text in texts for at in range(len(text))}
    created = {symbol: order for order, symbol in enumerate(sorted(symbols))}
    learned: list[tuple[Symbols, Symbols]] = []
    while len(learned) < merges:
        counts = count_pairs(texts, {pair: rank for rank, pair in enumerate(learned)})
        allowed = [pair for pair in counts if counts[pair] and (is_stop_merged or stop not in pair)]
        if not ends_at_bound:
            allowed = [pair for pair in allowed if _fits(pair, max_token_length)]
        best = max(allowed, key=lambda pair: (counts[pair], -created[pair[0]], -created[pair[1]]), default=None)
        if best is None or not _fits(best, max_token_length):
            break
        left, right = best
        learned.append((left, right))
        created[left + right] = len(created)
    return learned


def _fits(pair: tuple[Symbols, Symbols], max_token_length: int | None) -> bool:
    return max_token_length is None or len(pair[0] + pair[1]) <= max_token_length


PROSE_PATTERNS = {
    "plain": r" ?[^\W\d]+| ?\d+| ?[^\w\s]+|\s+(?!\S)|\s+",
    "contractions": r"'(?:s|t|re|ve|m|ll|d)\b| ?[^\W\d]+| ?\d+| ?[^\w\s]+|\s+(?!\S)|\s+",
    "joined contractions": r" ?[^\W\d]+(?:'[^\W\d]+)*| ?\d+| ?[^\w\s]+|\s+(?!\S)|\s+",
    "thousands": r" ?[^\W\d]+| ?\d{1,3}(?:,\d{3})+| ?\d+| ?[^\w\s]+|\s+(?!\S)|\s+",
    "percent": r" ?[^\W\d]+| ?\d+%?| ?[^\w\s]+|\s+(?!\S)|\s+",
}
"""Patterns of prose to compare: each differs from `plain` in one thing."""


def count_words(text: str, pattern: str) -> Counter[str]:
    """Count the words that a regular expression cuts a text into.

    Raises:
        ValueError: The words do not make up the text.

    Example:
        >>> count_words("don't", PROSE_PATTERNS["contractions"])
        Counter({'don': 1, "'t": 1})
    """
    words = re.findall(pattern, text)
    if "".join(words) != text:
        raise ValueError(f"{pattern!r} leaves out a part of the text")
    return Counter(words)


def ranks_of(merges: Collection[Merge]) -> dict[Pair, int]:
    """Return the rank of each pair: its place in the list."""
    return {(merge.left, merge.right): rank for rank, merge in enumerate(merges)}


def train_bpe(
    words: Texts,
    *,
    seeds: Mapping[bytes, bool],
    vocab_tokens: int,
    forbidden: Collection[bytes] = (),
    max_token_bytes: int | None = None,
    lines: Texts = (),
    superword_tokens: int = 0,
    may_be_superword: Callable[[bytes], bool] = lambda token: True,
    group_cap: float | None = None,
) -> list[Merge]:
    """Learn merges from word counts, after those that make each seed one token, and at last from whole lines.

    Args:
        words: Word to count.
        seeds: String that must become one token to whether it is atomic.
        vocab_tokens: How many new strings to make, neither a single byte nor a seed; pieces of seeds count.
        forbidden: Strings that no merge may spell.
        max_token_bytes: The most bytes a token may have.
        lines: Line to count, where superwords are wanted.
        superword_tokens: How many of `vocab_tokens` are learned from the lines.
        may_be_superword: Says whether a string is within the bounds of superwords.
        group_cap: What a pair counts in one group at most, as a multiple of its share in the others (`capped_worth`).

    Raises:
        VocabularyConfigError: A seed cannot become one token, there are no words, or `vocab_tokens` is too small for
            the seeds' pieces or too large for the words.

    Example:
        >>> train_bpe({b"hug": 3, b"pug": 2}, seeds={}, vocab_tokens=1)
        [Merge(left=b'u', right=b'g', count=5, phase=2)]
    """
    words, lines = _groups(words), _groups(lines)
    if not any(count for group in words for count in group.values()):
        raise VocabularyConfigError("no words with a count above 0: there is no text to learn from")
    rules = Rules({seed for seed, atomic in seeds.items() if atomic}, set(forbidden), max_token_bytes)
    trainer = _Trainer(rules, group_cap)
    pieces = trainer.learn_seeds(set(seeds))
    wanted = vocab_tokens - pieces - superword_tokens
    if wanted < 0:
        raise VocabularyConfigError(f"the seeds need {pieces} pieces: ask for vocab_tokens >= {pieces}")
    learned = trainer.learn(words, CORPUS_PHASE, trainer.most_frequent, limit=wanted)
    if learned < wanted:
        raise VocabularyConfigError(f"only {pieces + learned} could be learned: ask for that or give more text")
    if superword_tokens and not any(count for group in lines for count in group.values()):
        raise VocabularyConfigError("no lines with a count above 0: there is no text to learn superwords from")
    trainer.may_be_superword = may_be_superword
    learned = trainer.learn(lines, SUPERWORD_PHASE, trainer.most_frequent, limit=superword_tokens)
    if learned < superword_tokens:
        raise VocabularyConfigError(f"only {learned} superwords could be learned: ask for that or give more text")
    return trainer.merges


def _groups(texts: Texts) -> Sequence[Mapping[bytes, int]]:
    return [texts] if isinstance(texts, Mapping) else texts


def capped_worth(counts: Sequence[int], sizes: Sequence[int], factor: float) -> int:
    """Return what a pair is worth that groups of some bytes have so often, if none may have much more than the others.

    Of its `c` occurrences in a group of `n` bytes count at most `factor · o · n / m + √c`, where the other groups have
    `o` in `m` bytes. All is reckoned in whole numbers, the factor in 1024ths.

    Example:
        >>> capped_worth([100, 100], [5000, 5000], 1.0), capped_worth([10_000, 20], [5000, 5000], 1.0)
        (200, 140)
    """
    total, size, parts, worth = sum(counts), sum(sizes), int(factor * 1024 + 0.5), 0
    for count, own in zip(counts, sizes, strict=True):
        if size == own:
            return total
        share = (total - count) * own // (size - own)
        worth += min(count, share * parts // 1024 + math.isqrt(count))
    return worth


@dataclass(frozen=True)
class Rules:
    """Which merges may be learned at all.

    Attributes:
        atomic: Identifiers that no merge joins to a byte that is not an identifier byte.
        forbidden: Strings that no merge spells.
        max_token_bytes: The most bytes a token may have.
    """

    atomic: set[bytes]
    forbidden: set[bytes]
    max_token_bytes: int | None

    def allows(self, left: bytes, right: bytes) -> bool:
        """Say whether a merge may be learned."""
        if self.max_token_bytes is not None and len(left + right) > self.max_token_bytes:
            return False
        if left in self.atomic and not _IDENTIFIER_RUN.match(right):
            return False
        if right in self.atomic and not _IDENTIFIER_RUN.match(left[-1:]):
            return False
        return left + right not in self.forbidden


@dataclass
class _Trainer:
    rules: Rules
    group_cap: float | None
    merges: list[Merge] = field(default_factory=list)
    created: dict[bytes, int] = field(
        default_factory=lambda: {bytes([byte]): order for order, byte in enumerate(BYTES_IN_ORDER)}
    )
    seeds: set[bytes] = field(default_factory=set)
    may_be_superword: Callable[[bytes], bool] = lambda token: True

    def learn_seeds(self, seeds: set[bytes]) -> int:
        """Make each seed one token; return how many tokens that are no seed it took."""
        self.seeds = seeds
        runs = {run: 1 for seed in seeds for run in _IDENTIFIER_RUN.findall(seed)}
        self.learn([runs], IDENTIFIER_PHASE, self.most_saving)
        mixed = {seed: 1 for seed in seeds if not _IDENTIFIER_RUN.fullmatch(seed)}
        self.learn([mixed], BORDER_PHASE, self.most_saving)
        for seed in sorted(seeds):
            if len(pieces := encode(seed, ranks_of(self.merges))) > 1:
                raise VocabularyConfigError(f"seed {seed!r} cannot become one token, it stays {pieces}")
        return sum(merge.left + merge.right not in seeds for merge in self.merges)

    def learn(
        self,
        groups: Sequence[Mapping[bytes, int]],
        phase: int,
        priority: Callable[[Pair, int], Priority],
        limit: int | None = None,
    ) -> int:
        """Learn the allowed merge of the highest priority until none is left or there are enough; return how many."""
        first = len(self.merges)
        sizes = [sum(len(word) * count for word, count in words.items()) for words in groups]
        while limit is None or len(self.merges) < first + limit:
            by_group = [count_pairs(words, ranks_of(self.merges)) for words in groups]
            counts = sum(by_group, Counter[Pair]())
            worth = {pair: self._worth([group[pair] for group in by_group], sizes, phase) for pair in counts}
            allowed = [pair for pair in counts if worth[pair] and self._allows(pair, phase)]
            if not allowed:
                break
            left, right = max(allowed, key=lambda pair: priority(pair, worth[pair]))
            self.merges.append(Merge(left, right, counts[left, right], phase))
            self.created[left + right] = len(self.created)
        return len(self.merges) - first

    def _allows(self, pair: Pair, phase: int) -> bool:
        return self.rules.allows(*pair) and (phase < SUPERWORD_PHASE or self.may_be_superword(pair[0] + pair[1]))

    def _worth(self, counts: Sequence[int], sizes: Sequence[int], phase: int) -> int:
        """Return what a pair counts: how often it occurs, less what a cap takes away."""
        is_capped = self.group_cap is not None and phase >= CORPUS_PHASE
        return capped_worth(counts, sizes, self.group_cap or 0.0) if is_capped else sum(counts)

    def most_frequent(self, pair: Pair, count: int) -> Priority:
        """Prefer the higher count, then the smaller pair by creation order."""
        return (count, *self._older(pair))

    def most_saving(self, pair: Pair, count: int) -> Priority:
        """Prefer what saves most symbols for the pieces that it costs, then a seed, then the longer, then the older."""
        token = pair[0] + pair[1]
        is_seed = token in self.seeds
        return (count - 1 + is_seed, is_seed, len(token), *self._older(pair))

    def _older(self, pair: Pair) -> Priority:
        return (-self.created[pair[0]], -self.created[pair[1]])


def count_pairs(
    words: Mapping[Symbols, int], ranks: Mapping[tuple[Symbols, Symbols], int]
) -> Counter[tuple[Symbols, Symbols]]:
    """Count neighbouring pieces over all words; in `aaa` the pair of two `a` occurs twice."""
    counts: Counter[tuple[Symbols, Symbols]] = Counter()
    for word, count in words.items():
        for pair in pairwise(encode(word, ranks)):
            counts[pair] += count
    return counts
