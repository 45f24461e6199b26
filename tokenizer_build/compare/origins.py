"""Where the tokens of a tokenizer come from: the band of each id, and the merges that made each token of a text.

The rank of a merge gives its phase: merges up to the one that completes the last fixed token are seed merges, those
from `superwords.first_merge` of the manifest on were learned in lines, all others in words. Merges are applied here one
after the other, as the definition says, so that each can be shown; the native core gives the same ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import cppmill_core
from cppmill_core import AnyTokenizer
from cppmill_core.byte_alphabet import read_spelling

from schemas.digests import parse_json
from schemas.errors import ConfigError
from tokenizer_build.artifact import MANIFEST_JSON, TOKENIZER_JSON
from tokenizer_build.bands import Strength
from tokenizer_build.compare.diff import Entry, read_ids

Pair = tuple[bytes, bytes]

LEARNED, SUPERWORDS, RESERVED = "learned", "superwords", "reserved"

_PROMISED = (Strength.PINNED, Strength.ATOMIC)
_SHOWN = {SUPERWORDS: LEARNED, RESERVED: "reserve"}

_UNBANDED = {Strength.CONTROL: "control", Strength.RESERVED: RESERVED}
"""The bands of another program's tokenizer, besides the learned one."""


def read_bands(directory: Path) -> list[str] | None:
    """Return the band of each id of a tokenizer directory of ours: of a fixed one its own, else how it was learned.

    None if there is no manifest with bands.
    """
    if not (directory / MANIFEST_JSON).is_file():
        return None
    manifest: Mapping[str, Any] = parse_json((directory / MANIFEST_JSON).read_bytes())
    if "tokens" not in manifest or "bands" not in manifest:
        return None
    bands = [LEARNED] * int(manifest["vocab_size"])
    for number in _superword_ids(directory, manifest):
        bands[number] = SUPERWORDS
    for first, last in manifest.get("reserved", ()):
        bands[first : last + 1] = [RESERVED] * (last + 1 - first)
    for row in manifest["tokens"]:
        bands[row["id"]] = row["band"]
    return bands


def bands_of(directory: Path, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the band of each id; a tokenizer of another program has only control, reserved and learned ids."""
    return tuple(read_bands(directory) or (_UNBANDED.get(entry.strength, LEARNED) for entry in entries))


class Phase(StrEnum):
    """Where a merge was learned."""

    SEED = "seed"
    WORDS = "words"
    LINES = "lines"


@dataclass(frozen=True)
class Applied:
    """A merge as it was applied to a text.

    Attributes:
        rank: Its place in the list of merges.
        left: The left part.
        right: The right part.
        first: Where the left part begins, in bytes from the beginning of the pre-token.
        phase: Where it was learned.
    """

    rank: int
    left: bytes
    right: bytes
    first: int
    phase: Phase

    @property
    def made(self) -> bytes:
        """The token that it made."""
        return self.left + self.right


@dataclass(frozen=True)
class MadeToken:
    """A token of a text, and the merges that made it.

    Attributes:
        entry: The token.
        band: The band that it belongs to.
        merges: What made it of single bytes, in the order in which it happened; none of a single byte.
    """

    entry: Entry
    band: str
    merges: tuple[Applied, ...]


@dataclass(frozen=True)
class Origins:
    """A tokenizer with what its directory says of each id and merge.

    Attributes:
        tokenizer: The encoder.
        entries: Every id, in order.
        bands: Name of the band by id; `learned` for what was learned into a freed id too.
        merges: Every merge, in order.
        first_word_merge: Number of seed merges.
        first_line_merge: Number of the first merge that was learned in lines; the number of merges if there is none.
    """

    tokenizer: cppmill_core.Tokenizer
    entries: tuple[Entry, ...]
    bands: tuple[str, ...]
    merges: tuple[Pair, ...]
    first_word_merge: int
    first_line_merge: int

    @cached_property
    def ranks(self) -> dict[Pair, int]:
        """The rank of each pair."""
        return {pair: rank for rank, pair in enumerate(self.merges)}

    def phase(self, rank: int) -> Phase:
        """Return where the merge of a rank was learned."""
        if rank < self.first_word_merge:
            return Phase.SEED
        return Phase.WORDS if rank < self.first_line_merge else Phase.LINES

    def explain(self, text: bytes) -> Iterator[MadeToken]:
        r"""Yield the tokens of a text with the merges that made each.

        Args:
            text: Any bytes; the time grows with the square of the longest pre-token.

        Example:
            >>> [str(token.entry) for token in origins.explain(b"int x;")]  # doctest: +SKIP
            ["'int'", "' x'", "';'"]
        """
        numbers: list[Any] = self.tokenizer.encode(text).to_pylist()
        words: list[Any] = cppmill_core.split(self.tokenizer.pattern, text).to_pylist()
        ids = iter(numbers)
        for word in words:
            pieces, applied = apply_merges(word, self.ranks)
            end = 0
            for piece in pieces:
                first, end = end, end + len(piece)
                merges = tuple(self._applied(rank, at) for rank, at in applied if first <= at < end)
                entry = self.entries[next(ids)]
                yield MadeToken(entry, self.bands[entry.id], merges)

    def _applied(self, rank: int, first: int) -> Applied:
        return Applied(rank, *self.merges[rank], first, self.phase(rank))


def read_origins(directory: Path, tokenizer: AnyTokenizer) -> Origins:
    """Read the ids and merges of a tokenizer directory.

    Raises:
        ConfigError: If it is not a byte-level BPE that the native core runs.
    """
    if not isinstance(tokenizer, cppmill_core.Tokenizer) or tokenizer.pattern not in cppmill_core.PATTERNS:
        raise ConfigError(
            f"{directory}: its merges cannot be followed; give a byte-level BPE that `cppmill build` made"
        )
    manifest: dict[str, Any] = parse_json((directory / MANIFEST_JSON).read_bytes())
    merges = _read_merges(directory / TOKENIZER_JSON)
    entries = read_ids(directory, tokenizer).entries
    return Origins(
        tokenizer=tokenizer,
        entries=entries,
        bands=display_bands(directory, entries),
        merges=merges,
        first_word_merge=_count_seed_merges(merges, (entry.token for entry in entries if entry.strength in _PROMISED)),
        first_line_merge=manifest.get("superwords", {}).get("first_merge", len(merges)),
    )


def display_bands(directory: Path, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the band of each id as it is shown: superwords are `learned`, unused ids `reserve`."""
    return tuple(_SHOWN.get(band, band) for band in bands_of(directory, entries))


def apply_merges(word: bytes, ranks: Mapping[Pair, int]) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Merge a pre-token's bytes: again and again the pair of the lowest rank, the leftmost among equals.

    Returns:
        The tokens, and (rank, where the left part begins) of each merge in the order in which it was applied.

    Example:
        >>> apply_merges(b"hugs", {(b"u", b"g"): 0, (b"h", b"ug"): 1})
        ([b'hug', b's'], [(0, 1), (1, 0)])
    """
    pieces = [word[at : at + 1] for at in range(len(word))]
    applied: list[tuple[int, int]] = []
    while True:
        ranked = ((ranks[pair], at) for at, pair in enumerate(pairwise(pieces)) if pair in ranks)
        rank, at = min(ranked, default=(-1, -1))
        if rank < 0:
            return pieces, applied
        applied.append((rank, sum(map(len, pieces[:at]))))
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]


def _read_merges(path: Path) -> tuple[Pair, ...]:
    found = parse_json(path.read_bytes())["model"]["merges"]
    return tuple((read_spelling(left), read_spelling(right)) for left, right in found)


def _count_seed_merges(merges: Sequence[Pair], fixed: Iterable[bytes]) -> int:
    """Return how many merges it takes until every fixed token is one token."""
    made: dict[bytes, int] = {}
    for rank, (left, right) in enumerate(merges):
        made.setdefault(left + right, rank)
    return 1 + max((made[token] for token in fixed if token in made), default=-1)


def _superword_ids(directory: Path, manifest: Mapping[str, Any]) -> list[int]:
    if "superwords" not in manifest:
        return []
    model: Mapping[str, Any] = parse_json((directory / TOKENIZER_JSON).read_bytes())["model"]
    merges = model["merges"][manifest["superwords"]["first_merge"] :]
    return [model["vocab"][left + right] for left, right in merges]
