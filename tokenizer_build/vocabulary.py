"""The fixed vocabulary: every token with its id, the candidates that a scan counts, the morphemes.

Read from a folder of TOML files (`band_files.py`). Every candidate has its id here before any scan; a scan only decides
whether the id is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from schemas.errors import VocabularyConfigError
from tokenizer_build.band_files import BandFile, CandidateGroup, read_band_files
from tokenizer_build.bands import BANDS, Band, Strength, token_strength


@dataclass(frozen=True)
class FixedToken:
    """A token with an id of its own choosing.

    Attributes:
        id: The id.
        token: The characters; of a control token, its name.
        band: The band that its file names.
        source: File and key that give it its id, for messages.
    """

    id: int
    token: str
    band: Band
    source: str

    @property
    def strength(self) -> Strength:
        """What is promised of the token."""
        return token_strength(self.token, self.band)


@dataclass(frozen=True)
class Candidate:
    """A term that the scan counts in one category.

    Attributes:
        token: The term.
        category: The category in the counts.
        match: Where the scan counts it (`ident`, `dollar`, `sql_string`).
        api_prefixes: Prefixes that make a name of this category distinctive.
        source: File and key, for messages.
    """

    token: str
    category: str
    match: str
    api_prefixes: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Morpheme:
    """A piece of identifiers that the scan counts in one position, and that seeds merges."""

    morpheme: str
    position: str
    source: str


@dataclass(frozen=True)
class Vocabulary:
    """A folder's fixed vocabulary.

    Attributes:
        directory: The folder it was read from.
        tokens: Every fixed token, by id.
        candidates: Every candidate of every category, in file order.
        morphemes: Every morpheme, in file order.
    """

    directory: Path
    tokens: tuple[FixedToken, ...]
    candidates: tuple[Candidate, ...]
    morphemes: tuple[Morpheme, ...]

    @cached_property
    def by_token(self) -> dict[str, FixedToken]:
        """Each fixed token by its characters."""
        return {token.token: token for token in self.tokens}

    @cached_property
    def by_id(self) -> dict[int, FixedToken]:
        """Each fixed token by its id."""
        return {token.id: token for token in self.tokens}

    @property
    def control(self) -> tuple[FixedToken, ...]:
        """The control tokens."""
        return tuple(token for token in self.tokens if token.strength is Strength.CONTROL)

    def scanner_candidates(self) -> list[dict[str, str]]:
        """Return what configures the scan: `[{"term", "category", "match"}]`, sorted by category and term."""
        rows = [{"term": c.token, "category": c.category, "match": c.match} for c in self.candidates]
        return sorted(rows, key=lambda row: (row["category"], row["term"]))

    def scanner_morphemes(self) -> list[dict[str, str]]:
        """Return what configures the scan: `[{"morpheme", "position"}]`, sorted by position and morpheme."""
        rows = [{"morpheme": m.morpheme, "position": m.position} for m in self.morphemes]
        return sorted(rows, key=lambda row: (row["position"], row["morpheme"]))


def read_vocabulary(directory: Path) -> Vocabulary:
    """Read a vocabulary folder without checking what must hold between its files; `lint.load_vocabulary` checks it.

    Raises:
        VocabularyConfigError: For a file that is not of the form, or a key of a token table that is no id.
    """
    files = read_band_files(directory)
    tokens = [token for name, file in files.items() for token in _file_tokens(name, file)]
    return Vocabulary(
        directory=directory,
        tokens=tuple(sorted(tokens, key=lambda token: token.id)),
        candidates=tuple(c for name, file in files.items() for c in _file_candidates(name, file)),
        morphemes=tuple(m for name, file in files.items() for m in _file_morphemes(name, file)),
    )


def _file_tokens(name: str, file: BandFile) -> list[FixedToken]:
    band = next(band for band in BANDS if band.name == file.band)
    tables = [("tokens", file.tokens)]
    tables += [(f"candidates[{group.category}].tokens", group.tokens) for group in file.candidates]
    return [
        FixedToken(_token_id(name, table, key), token, band, f"{name}: {table}.{key}")
        for table, tokens in tables
        for key, token in tokens.items()
    ]


def _token_id(name: str, table: str, key: str) -> int:
    if not (key.isascii() and key.isdigit() and str(int(key)) == key):
        raise VocabularyConfigError(f"{name}: {table}.{key}: not an id; keys of token tables are decimal ids")
    return int(key)


def _file_candidates(name: str, file: BandFile) -> list[Candidate]:
    return [
        Candidate(
            token, group.category, group.match, tuple(group.api_prefixes), f"{name}: candidates[{group.category}]"
        )
        for group in file.candidates
        for token in _terms(group)
    ]


def _terms(group: CandidateGroup) -> Sequence[str]:
    return [*group.tokens.values(), *group.elsewhere]


def _file_morphemes(name: str, file: BandFile) -> list[Morpheme]:
    return [
        Morpheme(term, group.position, f"{name}: morphemes[{group.position}]")
        for group in file.morphemes
        for term in group.terms
    ]
