"""Reads the TOML files of a vocabulary folder into checked records.

A file says in its first comment why its tokens exist, names its band, and gives each token its id::

    band = "domain"

    [[candidates]]
    category = "nccl"
    match = "ident"
    api_prefixes = ["nccl"]
    [candidates.tokens]
    5622 = "ncclAllReduce"

Only the form of each file is checked here; what must hold between files is `lint.py`'s.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from schemas.errors import VocabularyConfigError
from tokenizer_build.bands import BANDS

Match = Literal["ident", "dollar", "sql_string"]
"""Where the scan counts a candidate: identifiers in code, `$name`, words inside string literals."""

Position = Literal["prefix", "suffix", "cpp_stem", "component"]
"""Where in an identifier the scan counts a morpheme."""

Tokens = dict[str, str]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CandidateGroup(_Record):
    """Candidates of one category, which the scan counts and the build keeps or cuts.

    Attributes:
        category: Name of the category in the counts and in the decisions.
        match: Where the scan counts them.
        api_prefixes: Prefixes that make a name distinctive (`cuda`, `sqlite3_`).
        elsewhere: Terms that are counted in this category and have their id in another group or band.
        tokens: Id to token.
    """

    category: str = Field(min_length=1)
    match: Match
    api_prefixes: list[str] = []
    elsewhere: list[str] = []
    tokens: Tokens = {}


class MorphemeGroup(_Record):
    """Morphemes of one position; each has its id in some band."""

    position: Position
    terms: list[str]


class BandFile(_Record):
    """One file of a vocabulary folder."""

    band: str
    tokens: Tokens = {}
    candidates: list[CandidateGroup] = []
    morphemes: list[MorphemeGroup] = []


def read_band_files(directory: Path) -> dict[str, BandFile]:
    """Read every `*.toml` of a vocabulary folder and its subfolders.

    Returns:
        Path in the folder to contents, in the order of the file names; subfolders have no effect on the order.

    Raises:
        VocabularyConfigError: If there is no such file, two have one name, or one is no TOML or not of the form (file,
            key and value).
    """
    paths = band_file_paths(directory)
    if not paths:
        raise VocabularyConfigError(f"{directory}: no *.toml files; give the folder that holds one file per band")
    for first, second in pairwise(paths):
        if first.name == second.name:
            raise VocabularyConfigError(f"{first} and {second}: two files with one name; rename one")
    return {path.relative_to(directory).as_posix(): _read_band_file(path) for path in paths}


def band_file_paths(directory: Path) -> list[Path]:
    """Return the `*.toml` files of a vocabulary folder and its subfolders, sorted by file name."""
    return sorted(directory.rglob("*.toml"), key=lambda path: (path.name, path))


def nearest(value: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'? ...)` for an unknown value: the nearest known one, and all of them."""
    names = list(known)
    close = difflib.get_close_matches(value, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(names)}"


def _read_band_file(path: Path) -> BandFile:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
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
