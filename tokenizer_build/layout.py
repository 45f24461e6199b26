"""Gives every id of a tokenizer its token: fixed, learned or reserved, none left out.

Learned ids hold the bytes that have no fixed id, in the order of the byte alphabet, then the learned tokens in creation
order. They fill `Slots.first_learned` upwards, then the freed ids below, ascending.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cppmill_core.byte_alphabet import BYTES_IN_ORDER, spell

from tokenizer_build.bands import BANDS, RESERVED_IDS, Band, Strength, reserved_name
from tokenizer_build.lock import Lock
from tokenizer_build.vocabulary import FixedToken

LEARNED = "learned"
"""The band of the ids that no other has, and what learned tokens are counted as."""

_NAMED = (Strength.CONTROL, Strength.RESERVED)


@dataclass(frozen=True)
class Slots:
    """The ids of a vocabulary of a given size, before anything is learned.

    Attributes:
        vocab_size: Number of ids.
        fixed: The fixed tokens of this build, by id; controls included.
        reserved: Ids that nothing uses.
        missing_bytes: Bytes without a fixed id, in alphabet order.
        bands: The bands below the learned one.
    """

    vocab_size: int
    fixed: tuple[FixedToken, ...]
    reserved: frozenset[int]
    missing_bytes: tuple[int, ...]
    bands: tuple[Band, ...] = BANDS

    @property
    def first_learned(self) -> int:
        """Where the learned band begins; also the least vocabulary size."""
        return self.bands[-1].last + 1

    @property
    def all_bands(self) -> tuple[Band, ...]:
        """Every band, the learned one included if it has ids."""
        learned = Band(LEARNED, self.first_learned, self.vocab_size - 1, Strength.LEARNED)
        return (*self.bands, learned) if self.vocab_size > self.first_learned else self.bands

    @property
    def learned_ids(self) -> list[int]:
        """The ids of missing bytes and learned tokens, in the order in which they are given out."""
        taken = {token.id for token in self.fixed} | self.reserved
        below = (i for i in range(self.first_learned) if i not in taken)
        return [*range(self.first_learned, self.vocab_size), *below]

    @property
    def learned_tokens(self) -> int:
        """How many tokens of two bytes and more there are to learn; negative if the size is too small."""
        return self.vocab_size - len(self.fixed) - len(self.reserved) - len(self.missing_bytes)

    def least_vocab_size(self, seed_pieces: int) -> int:
        """Return the least vocabulary size that holds everything fixed and this many pieces of it."""
        return max(self.first_learned, self.vocab_size - self.learned_tokens + seed_pieces)

    def names_that_text_must_not_spell(self) -> list[str]:
        """Return the names of control tokens and reserved ids: tokens that no merge may spell."""
        controls = [token.token for token in self.fixed if token.strength is Strength.CONTROL]
        return [*controls, *(reserved_name(token_id) for token_id in sorted(self.reserved))]


@dataclass(frozen=True)
class Slot:
    """One id of a finished tokenizer.

    Attributes:
        id: The id.
        token: Its bytes; of a control token or reserved id, the name.
        strength: What is promised of it.
        band: Name of the band; `learned` behind the others.
    """

    id: int
    token: bytes
    strength: Strength
    band: str

    @property
    def spelling(self) -> str:
        """Its key in tokenizer.json: the byte alphabet, or a control or reserved name as it is."""
        return self.token.decode() if self.strength in _NAMED else spell(self.token)


def plan_slots(fixed: Iterable[FixedToken], lock: Lock, vocab_size: int) -> Slots:
    """Sort the ids of a build into fixed, reserved and free.

    Args:
        fixed: The fixed tokens that this build keeps.
        lock: An id without its token in this build is reserved, if the lock binds builds to it.
        vocab_size: Number of ids.
    """
    tokens = tuple(sorted(fixed, key=lambda token: token.id))
    used = {token.id for token in tokens}
    single = {token.token.encode() for token in tokens if token.strength is not Strength.CONTROL}
    return Slots(
        vocab_size=vocab_size,
        fixed=tokens,
        reserved=frozenset(RESERVED_IDS | (lock.binding.by_id.keys() - used)),
        missing_bytes=tuple(byte for byte in BYTES_IN_ORDER if bytes([byte]) not in single),
    )


def plan_text_slots(control: Sequence[FixedToken], vocab_size: int) -> Slots:
    """Return the ids of a vocabulary that has control tokens of one band, and learns all others."""
    return Slots(
        vocab_size=vocab_size,
        fixed=tuple(control),
        reserved=frozenset(),
        missing_bytes=tuple(BYTES_IN_ORDER),
        bands=(control[0].band,),
    )


def assign_ids(slots: Slots, learned: Sequence[bytes]) -> list[Slot]:
    """Return every id with its token, by id.

    Args:
        slots: The plan.
        learned: The learned tokens of two bytes and more, in creation order; exactly `slots.learned_tokens`.

    Raises:
        ValueError: If they are more or fewer.
    """
    new = [*(bytes([byte]) for byte in slots.missing_bytes), *learned]
    tokens = {i: (token, Strength.LEARNED) for i, token in zip(slots.learned_ids, new, strict=True)}
    tokens |= {i: (reserved_name(i).encode(), Strength.RESERVED) for i in slots.reserved}
    tokens |= {token.id: (token.token.encode(), token.strength) for token in slots.fixed}
    names = {i: band.name for band in slots.all_bands for i in range(band.first, band.last + 1)}
    return [Slot(i, *tokens[i], names[i]) for i in range(slots.vocab_size)]


@dataclass(frozen=True)
class BandUse:
    """How the text that a vocabulary was learned from uses the ids of a band.

    Attributes:
        band: Name of the band; `learned` for learned tokens in the ids that other bands leave free, too.
        ids: Ids with a token that text can have.
        counts: How often each of them occurs, 0 included.
        num_bytes: The bytes that they cover.
    """

    band: str
    ids: int
    counts: tuple[int, ...]
    num_bytes: int

    @property
    def used(self) -> int:
        """How many of the ids occur at all."""
        return sum(count > 0 for count in self.counts)

    @property
    def tokens(self) -> int:
        """How often they occur."""
        return sum(self.counts)


def use_by_band(ids: Iterable[Slot], counts: Mapping[bytes, int]) -> list[BandUse]:
    """Return how often the ids of each band occur; without control tokens and reserved ids, which no text has.

    Args:
        ids: What `assign_ids` returned.
        counts: Occurrences by token.
    """
    found: dict[str, list[bytes]] = {}
    for slot in ids:
        if slot.strength not in _NAMED:
            band = LEARNED if slot.strength is Strength.LEARNED else slot.band
            found.setdefault(band, []).append(slot.token)
    return [
        BandUse(
            band,
            len(tokens),
            tuple(counts.get(token, 0) for token in tokens),
            sum(counts.get(token, 0) * len(token) for token in tokens),
        )
        for band, tokens in found.items()
    ]
