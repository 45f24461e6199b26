"""The fixed vocabulary: every token with its id, the candidates that a scan counts, the morphemes.

It is read from a folder of TOML files. A file says in its first comment why its tokens exist, names its band, and gives
each token its id::

    band = "domain"

    [[candidates]]
    category = "nccl"
    match = "ident"
    api_prefixes = ["nccl"]
    [candidates.tokens]
    5622 = "ncclAllReduce"

Every candidate has its id here before any scan; a scan only decides whether the id is used. What must hold between
files is checked in `lint.py`. A tokenizer that was built with a vocabulary of the user's own has all of it in one file,
`vocabulary.json`, and is read as a vocabulary folder too.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from schemas.digests import parse_json, parse_toml
from schemas.errors import VocabularyConfigError
from tokenizer_build.bands import BANDS, DOMAIN, MORPHEMES, Band, Strength, token_strength

VOCABULARY_JSON = "vocabulary.json"
"""The vocabulary that a tokenizer was built with, in the tokenizer's folder: canonical JSON."""

VOCABULARY_FORMAT = "cppmill-vocabulary-1"

INHERITED = "inherited"
"""The subfolder of a vocabulary of the user's own with the files that it was begun with; the others are its own."""

Match = Literal["ident", "prefix", "qualified", "dollar", "sql_string", "string"]
"""Where the scan counts a candidate: identifiers in code, those that begin with it, `$name`, words inside strings.

`qualified` counts whole names with `::` between them, `sql_string` words in capitals, `string` any words, and words
with dots between them.
"""

Position = Literal["prefix", "suffix", "cpp_stem", "component"]
"""Where in an identifier the scan counts a morpheme."""

Tokens = dict[str, str]

_MAX_DIGITS = 10  # of a number of 32 bits
_SHOWN = 80
"""How many characters of a text that is no id messages show."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CandidateGroup(_Record):
    """Candidates of one category, which the scan counts and the build keeps or cuts.

    Attributes:
        category: Name of the category in the counts and in the decisions.
        match: Where the scan counts them.
        api_prefixes: Prefixes that make a name distinctive (`cuda`, `sqlite3_`).
        keep: Whether a scan never cuts them.
        elsewhere: Terms that are counted in this category and have their id in another group or band.
        tokens: Id to token.
    """

    category: str = Field(min_length=1)
    match: Match
    api_prefixes: list[str] = []
    keep: bool = False
    elsewhere: list[str] = []
    tokens: Tokens = {}


class MorphemeGroup(_Record):
    """Morphemes of one position.

    Attributes:
        position: Where in an identifier the scan counts them.
        terms: Morphemes that have their id in another table, of any band.
        tokens: Id to morpheme; the ids are of the band `morphemes`, whatever the band of the file.
    """

    position: Position
    terms: list[str] = []
    tokens: Tokens = {}


class BandFile(_Record):
    """One file of a vocabulary folder.

    Attributes:
        band: Name of the band of its tokens; the domain band where none is named.
        tokens: Id to token; a scan never cuts them.
        candidates: What a scan may cut, by category.
        morphemes: Pieces of identifiers, by position.
        cut: Tokens of other files to leave out.
        cut_categories: Categories of other files to leave out, with the tokens that have their id in them.
    """

    band: str = DOMAIN
    tokens: Tokens = {}
    candidates: list[CandidateGroup] = []
    morphemes: list[MorphemeGroup] = []
    cut: list[str] = []
    cut_categories: list[str] = []


def read_band_files(directory: Path) -> dict[str, BandFile]:
    """Read every `*.toml` of a vocabulary folder and its subfolders.

    Returns:
        Path in the folder to contents, in the order of the file names; subfolders have no effect on the order.

    Raises:
        VocabularyConfigError: If there is no such file, two have one name, or one is not TOML or not of the form (file,
            key and value).
    """
    return _parse_band_files(directory, _read_band_files(directory))


def _read_band_files(directory: Path) -> tuple[tuple[Path, bytes], ...]:
    paths = band_file_paths(directory)
    if not paths:
        raise VocabularyConfigError(f"{directory}: no *.toml files; give the folder that holds one file per band")
    for path in paths:
        if not path.is_file():
            raise VocabularyConfigError(f"{path}: not a file, but a folder, a pipe or a link to nothing; remove it")
    for first, second in pairwise(paths):
        if first.name == second.name:
            raise VocabularyConfigError(f"{first} and {second}: two files with one name; rename one")
    return tuple((path, path.read_bytes()) for path in paths)


def _parse_band_files(directory: Path, contents: Iterable[tuple[Path, bytes]]) -> dict[str, BandFile]:
    return {path.relative_to(directory).as_posix(): _parse_band_file(path, content) for path, content in contents}


def band_file_paths(directory: Path) -> list[Path]:
    """Return the `*.toml` files of a vocabulary folder and its subfolders, sorted by file name.

    Raises:
        VocabularyConfigError: If a link leads to a folder with more of them.
        OSError: If a folder cannot be listed.
    """
    return sorted(_walk_band_files(directory), key=lambda path: (path.name, path))


def _walk_band_files(directory: Path) -> Iterator[Path]:
    """Yield what is named `*.toml` in a folder and its subfolders; `rglob` leaves out what it cannot list."""
    for path in directory.iterdir() if directory.is_dir() else ():
        if path.name.endswith(".toml"):
            yield path
        elif path.is_symlink():
            if any(path.rglob("*.toml")):
                raise VocabularyConfigError(f"{path}: a link to a folder of *.toml files; put the folder itself there")
        elif path.is_dir():
            yield from _walk_band_files(path)


def nearest(value: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'? ...)` for an unknown value: the nearest known one, and all of them."""
    names = list(known)
    close = difflib.get_close_matches(value, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(names)}"


def _parse_band_file(path: Path, content: bytes) -> BandFile:
    try:
        raw = parse_toml(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise VocabularyConfigError(f"{path}: not TOML: {error}") from error
    try:
        parsed = BandFile.model_validate(raw)
    except ValidationError as error:
        lines = "\n".join(_describe(path, details) for details in error.errors())
        raise VocabularyConfigError(lines) from error
    names = [band.name for band in BANDS]
    if parsed.band not in names:
        raise VocabularyConfigError(f"{path}: band = {parsed.band!r}: no such band; {nearest(parsed.band, names)}")
    return parsed


def _describe(path: Path, details: ErrorDetails) -> str:
    """Return one line for one of pydantic's findings: file, key, value, what is allowed."""
    location = details["loc"]
    key = ".".join(str(part) for part in location)
    if details["type"] == "extra_forbidden":
        return f"{path}: {key}: unknown key; {nearest(str(location[-1]), _allowed_keys(location))}"
    if details["type"] == "missing":
        return f"{path}: {key}: missing; add it"
    value: Any = details["input"]
    if details["type"] == "literal_error":
        literal = Match if location[-1] == "match" else Position
        return f"{path}: {key} = {value!r}: not allowed; {nearest(str(value), get_args(literal))}"
    return f"{path}: {key} = {value!r}: {details['msg']}"


def _allowed_keys(location: tuple[int | str, ...]) -> Iterable[str]:
    records: dict[int | str, type[_Record]] = {"candidates": CandidateGroup, "morphemes": MorphemeGroup}
    return records.get(location[0], BandFile).model_fields if len(location) > 1 else BandFile.model_fields


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
        match: Where the scan counts it (`ident`, `prefix`, `qualified`, `dollar`, `sql_string`, `string`).
        api_prefixes: Prefixes that make a name of this category distinctive.
        source: File and key, for messages.
        keep: Whether a scan never cuts it.
    """

    token: str
    category: str
    match: str
    api_prefixes: tuple[str, ...]
    source: str
    keep: bool = False


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
        own: The tokens that a vocabulary of the user's own has added; empty for the one that comes with cppmill.
    """

    directory: Path
    tokens: tuple[FixedToken, ...]
    candidates: tuple[Candidate, ...]
    morphemes: tuple[Morpheme, ...]
    own: frozenset[str] = frozenset()

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

    @property
    def kept(self) -> frozenset[str]:
        """The candidates that a scan never cuts."""
        return frozenset(candidate.token for candidate in self.candidates if candidate.keep)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values, for `VOCABULARY_JSON`; comments and names of files are not in it."""
        rows = sorted(self.candidates, key=lambda row: (row.category, row.token))
        return {
            "format": VOCABULARY_FORMAT,
            "tokens": [{"id": token.id, "token": token.token, "band": token.band.name} for token in self.tokens],
            "own": sorted(self.own),
            "candidates": [
                {"token": c.token, "category": c.category, "match": c.match, "api_prefixes": list(c.api_prefixes)}
                | ({"keep": True} if c.keep else {})
                for c in rows
            ],
            "morphemes": self.scanner_morphemes(),
        }

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

    Args:
        directory: A folder of TOML files, or a tokenizer's with `VOCABULARY_JSON`.

    Raises:
        VocabularyConfigError: For a file that is not of the form, a key of a token table that is not an id, or a cut of
            what there is not.
    """
    if (directory / VOCABULARY_JSON).is_file():
        return _read_recorded(directory)
    return _assemble(directory, _read_band_files(directory), (directory / INHERITED).is_dir())


@lru_cache(maxsize=4)
def _assemble(directory: Path, contents: tuple[tuple[Path, bytes], ...], is_own: bool) -> Vocabulary:
    """Return the vocabulary of the contents of files: a run asks for it several times, and parsing takes a while."""
    files = _parse_band_files(directory, contents)
    tokens = [token for name, file in files.items() for token in _file_tokens(name, file)]
    own = (t.token for name, file in files.items() if _is_own(name) for t in _file_tokens(name, file)) if is_own else ()
    found = Vocabulary(
        directory=directory,
        tokens=tuple(sorted(tokens, key=lambda token: token.id)),
        candidates=tuple(c for name, file in files.items() for c in _file_candidates(name, file)),
        morphemes=tuple(m for name, file in files.items() for m in _file_morphemes(name, file)),
        own=frozenset(own),
    )
    return _without(found, files)


def _is_own(name: str) -> bool:
    return not name.startswith(f"{INHERITED}/")


def _without(found: Vocabulary, files: dict[str, BandFile]) -> Vocabulary:
    """Return a vocabulary without what its files cut.

    Raises:
        VocabularyConfigError: If there is no such token or category, or the token is a control token.
    """
    cut = {token: name for name, file in files.items() for token in file.cut}
    categories = {category: name for name, file in files.items() for category in file.cut_categories}
    groups = {group.category: group for file in files.values() for group in file.candidates}
    controls = {token.token for token in found.control}
    for token, name in cut.items():
        if token not in found.by_token:
            close = difflib.get_close_matches(token, found.by_token, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise VocabularyConfigError(f"{name}: cut = {token!r}: no such token{hint}")
        if token in controls:
            raise VocabularyConfigError(f"{name}: cut = {token!r}: a control token, which every build needs; leave it")
    for category, name in categories.items():
        if category not in groups:
            known = nearest(category, groups)
            raise VocabularyConfigError(f"{name}: cut_categories = {category!r}: no such category; {known}")
    gone = {*cut, *(token for category in categories for token in groups[category].tokens.values())}
    left = (candidate for candidate in found.candidates if candidate.category not in categories)
    return replace(
        found,
        tokens=tuple(token for token in found.tokens if token.token not in gone),
        candidates=tuple(candidate for candidate in left if candidate.token not in gone),
        morphemes=tuple(morpheme for morpheme in found.morphemes if morpheme.morpheme not in gone),
        own=found.own - gone,
    )


def _read_recorded(directory: Path) -> Vocabulary:
    """Read what `Vocabulary.to_json` returned."""
    path = directory / VOCABULARY_JSON
    bands = {band.name: band for band in BANDS}
    try:
        value = parse_json(path.read_bytes())
        if value["format"] != VOCABULARY_FORMAT:
            raise ValueError(f"format {value['format']!r}")
        return Vocabulary(
            directory=directory,
            tokens=tuple(
                FixedToken(row["id"], row["token"], bands[row["band"]], f"{VOCABULARY_JSON}: {row['id']}")
                for row in value["tokens"]
            ),
            candidates=tuple(
                Candidate(
                    row["token"],
                    row["category"],
                    row["match"],
                    tuple(row["api_prefixes"]),
                    f"{VOCABULARY_JSON}: candidates[{row['category']}]",
                    row.get("keep", False),
                )
                for row in value["candidates"]
            ),
            morphemes=tuple(
                Morpheme(row["morpheme"], row["position"], f"{VOCABULARY_JSON}: morphemes[{row['position']}]")
                for row in value["morphemes"]
            ),
            own=frozenset(value["own"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise VocabularyConfigError(
            f"{path}: not a vocabulary of format {VOCABULARY_FORMAT} ({error!r}); restore it, or give the folder that "
            "the tokenizer was built with"
        ) from error


def _file_tokens(name: str, file: BandFile) -> list[FixedToken]:
    bands = {band.name: band for band in BANDS}
    tables = [(file.band, "tokens", file.tokens)]
    tables += [(file.band, f"candidates[{group.category}].tokens", group.tokens) for group in file.candidates]
    tables += [(MORPHEMES, f"morphemes[{group.position}].tokens", group.tokens) for group in file.morphemes]
    return [
        FixedToken(_token_id(name, table, key), token, bands[band], f"{name}: {table}.{key}")
        for band, table, tokens in tables
        for key, token in tokens.items()
    ]


def _token_id(name: str, table: str, key: str) -> int:
    try:
        return parse_id(key)
    except ValueError as error:
        place = f"{name}: {table}.{key[:_SHOWN]}"
        raise VocabularyConfigError(f"{place}: not an id; keys of token tables are decimal ids") from error


def parse_id(text: str) -> int:
    """Return the id that a text is, as `str` writes it.

    Raises:
        ValueError: If it is something else, such as `+1`, ` 1`, `01`, `1_0` or `-1`.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and str(int(text)) == text):
        raise ValueError(f"{text[:_SHOWN]!r} is not an id")
    return int(text)


def _file_candidates(name: str, file: BandFile) -> list[Candidate]:
    return [
        Candidate(
            token,
            group.category,
            group.match,
            tuple(group.api_prefixes),
            f"{name}: candidates[{group.category}]",
            group.keep,
        )
        for group in file.candidates
        for token in (*group.tokens.values(), *group.elsewhere)
    ]


def _file_morphemes(name: str, file: BandFile) -> list[Morpheme]:
    return [
        Morpheme(term, group.position, f"{name}: morphemes[{group.position}]")
        for group in file.morphemes
        for term in (*group.tokens.values(), *group.terms)
    ]
