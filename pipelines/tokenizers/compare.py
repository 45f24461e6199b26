"""The program of `cppmill compare`: tokenizers and a text to tables or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines.tokenizers.comparison import records, tables
from pipelines.tokenizers.texts import read_texts
from schemas.errors import ConfigError
from schemas.options import IngestOptions
from tokenizer_build.compare.candidates import open_candidate, set_rayon_threads
from tokenizer_build.compare.comparison import Comparison, Entrant
from tokenizer_build.compare.comparison import compare as compare_candidates
from tokenizer_build.compare.origins import read_bands

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kMGTP]B|)")


def compare(
    tokenizers: Sequence[str],
    places: Sequence[str],
    *,
    pattern: str | None = None,
    sample: float = 1.0,
    threads: int = 1,
) -> Comparison:
    """Compare tokenizers on the documents of runs or sources.

    Args:
        tokenizers: Paths of what `open_candidate` takes, with a name for the tables before it if wanted: `NAME=PATH`.
        places: Folders of runs, and sources.
        pattern: The pattern of files of ranks.
        sample: Take this share of the documents, chosen by path.
        threads: How many threads encode.

    Raises:
        ConfigError: If something is no tokenizer, two have one name, or there is no document.
    """
    set_rayon_threads(threads)
    entrants = [_open(name, path, pattern) for name, path in _named(tokenizers)]
    documents = read_texts(places, IngestOptions(sample=sample, detect_platforms=False), argument="--on")
    return compare_candidates(entrants, documents, threads=threads)


def _named(tokenizers: Sequence[str]) -> list[tuple[str, Path]]:
    """Return name and path of each tokenizer.

    Raises:
        ConfigError: If two have one name.
    """
    named = [_name_of(text) for text in tokenizers]
    names = [name for name, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"TOKENIZER {name}: two have this name; give them names: one={named[0][1]}")
    return named


def _name_of(text: str) -> tuple[str, Path]:
    name, equals, place = text.partition("=")
    if equals and name and "/" not in name:
        return name, Path(place)
    path = Path(text)
    if path.name in ("tokenizer", "tokenizer.json", "tokenizer.model", "manifest.json"):
        path = path.resolve().parent
    return path.name.partition(".")[0] or str(path), Path(text)


def _open(name: str, path: Path, pattern: str | None) -> Entrant:
    candidate = open_candidate(path, pattern=pattern)
    return Entrant(name, candidate, candidate.token_bytes(), read_bands(path))


def comparison_lines(comparison: Comparison, *, corpus_bytes: int, as_json: bool, every_project: bool) -> Iterator[str]:
    """Yield what the command prints: tables, or a JSON object per line, the text's first."""
    if as_json:
        yield from (json.dumps(record) for record in records(comparison, corpus_bytes))
    else:
        yield from tables(comparison, corpus_bytes, every_project=every_project)


def parse_size(text: str, *, argument: str = "--corpus-bytes") -> int:
    """Return the bytes of a size as it was typed.

    Raises:
        ConfigError: If it is no size.

    Example:
        >>> parse_size("1.5TB"), parse_size("4096")
        (1500000000000, 4096)
    """
    found = _SIZE.fullmatch(text)
    num_bytes = round(float(found[1]) * _UNITS[found[2]]) if found else 0
    if num_bytes < 1:
        raise ConfigError(f"{argument} {text}: no size; it takes a number with kB, MB, GB, TB or PB, or one of bytes")
    return num_bytes
