"""The bands of the id space and the strength of the tokens in them.

The borders follow the published v3 C++ layout. They are code, not configuration: a moved border would move ids.
Which tokens are in a band is configuration (`vocabulary.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Strength(StrEnum):
    """What is promised about a token, or about an id without one."""

    CONTROL = "control"
    PINNED = "pinned"
    ATOMIC = "atomic"
    LEARNED = "learned"
    RESERVED = "reserved"


@dataclass(frozen=True)
class Band:
    """A range of ids with one purpose.

    Attributes:
        name: Name in the vocabulary's files and in the manifest.
        first: First id.
        last: Last id, inclusive.
        strength: The strongest promise made in the band.
    """

    name: str
    first: int
    last: int
    strength: Strength

    def __contains__(self, token_id: object) -> bool:
        """Return whether an id is in the band."""
        return isinstance(token_id, int) and self.first <= token_id <= self.last


BANDS = (
    Band("control", 0, 63, Strength.CONTROL),
    Band("keywords", 64, 319, Strength.PINNED),
    Band("operators", 320, 639, Strength.PINNED),
    Band("preprocessor", 640, 799, Strength.PINNED),
    Band("numbers", 800, 1199, Strength.PINNED),
    Band("whitespace", 1200, 1499, Strength.PINNED),
    Band("library", 1500, 4699, Strength.PINNED),
    Band("morphemes", 4700, 4899, Strength.PINNED),
    Band("integers", 4900, 5299, Strength.PINNED),
    Band("domain", 5300, 6999, Strength.ATOMIC),
    Band("reserve", 7000, 7199, Strength.RESERVED),
)
"""Every band below the learned ones, in order; together they hold 0-7199 without a gap."""

CONTROL = "control"
"""The band of the control tokens."""

DOMAIN = "domain"
"""The band whose tokens the scan may cut."""

MORPHEMES = "morphemes"
"""The band of the pieces of identifiers, which a scan may cut by their hits."""

FIRST_LEARNED_ID = 7200
"""Where learned tokens begin; also the least vocabulary size."""

_CONTROL_RESERVE = range(48, 64)
_RESERVE = range(7000, FIRST_LEARNED_ID)
RESERVED_IDS = frozenset((*_CONTROL_RESERVE, *_RESERVE))
"""Ids that no token gets at any vocabulary size."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(token: str) -> bool:
    """Return whether a token is an ASCII identifier: the only kind that can be atomic."""
    return _IDENTIFIER.fullmatch(token) is not None


def band_of(token_id: int) -> Band | None:
    """Return the band of an id, or None from `FIRST_LEARNED_ID` on.

    Example:
        >>> band_of(5300).name
        'domain'
    """
    return next((band for band in BANDS if token_id in band), None)


def token_strength(token: str, band: Band) -> Strength:
    """Return the strength of a fixed token: its band's, but pinned where an atomic band holds no identifier.

    Example:
        >>> domain = band_of(5300)
        >>> token_strength("TEST", domain), token_strength("$match", domain)
        (<Strength.ATOMIC: 'atomic'>, <Strength.PINNED: 'pinned'>)
    """
    if band.strength is Strength.ATOMIC and not is_identifier(token):
        return Strength.PINNED
    return band.strength


def reserved_name(token_id: int) -> str:
    """Return the name that tokenizer.json gives an unused id."""
    return f"<RESERVED_{token_id}>"
