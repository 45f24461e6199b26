"""The rules of the platform detector: `platforms.toml`, checked and joined with the ids of `platform_vocab.json`.

The top of `platforms.toml` describes what each kind of evidence matches. Nothing here looks at code: the result is what
`cppmill_core.PlatformDetector` compiles. `own_platforms` adds what a user has of their own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import rfc8785
from cppmill_core.platforms import PLATFORM_VOCAB

from configs.problems import did_you_mean, show
from schemas.digests import parse_json, parse_toml
from schemas.errors import ConfigError

PLATFORMS: Path = Path(__file__).with_name("platforms.toml")
"""The rules that come with cppmill."""

KINDS = ("identifiers", "includes", "paths", "sequences")
"""The kinds of evidence that a label may have."""


@dataclass(frozen=True, kw_only=True)
class Platforms:
    """The platforms that a run finds: their ids, and the rules to find them.

    Attributes:
        vocab: The bytes of the run's `platform_vocab.json`.
        size: Number of ids, padding included.
        own_rules: The rules, if the user has added any.
    """

    vocab: bytes
    size: int
    own_rules: str | None = None

    @property
    def is_own(self) -> bool:
        """Whether the user has added any."""
        return self.own_rules is not None

    @cached_property
    def rules(self) -> str:
        """The canonical JSON text that `cppmill_core.PlatformDetector` takes."""
        return load_platform_rules() if self.own_rules is None else self.own_rules

    @property
    def digest(self) -> str:
        """SHA-256 of the run's `platform_vocab.json`."""
        return sha256(self.vocab).hexdigest()


def published_platforms() -> Platforms:
    """Return the platforms that come with cppmill."""
    vocab = PLATFORM_VOCAB.read_bytes()
    return Platforms(vocab=vocab, size=parse_json(vocab)["size"])


def load_platform_rules(path: Path = PLATFORMS) -> str:
    """Return the rules in a file as the canonical JSON text that `cppmill_core.PlatformDetector` takes.

    Args:
        path: A TOML file with a table for every label of `PLATFORM_VOCAB`, each with lists of evidence.

    Raises:
        ConfigError: The file is not TOML, a category, label or kind of evidence is unknown or missing, or an entry is
            not a string, empty, or there twice. The message names the file, the key and the nearest known key.

    Example:
        >>> import json
        >>> [rule["label"] for rule in json.loads(load_platform_rules())["labels"]][:2]
        ['windows', 'linux']
    """
    return _canonical_rules(path, _read(path))


@lru_cache(maxsize=4)
def _canonical_rules(path: Path, text: str) -> str:
    """Return the rules of a file's text; each run of a process asks for them."""
    vocab = parse_json(PLATFORM_VOCAB.read_text(encoding="utf-8"))
    rules = _parse(path, text)
    _check_names(path, rules, vocab["categories"])
    labels = list(_labels(path, rules, vocab["categories"]))
    return rfc8785.dumps({"labels": labels, "max_ids": vocab["max_ids_per_document"]}).decode()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"{path}: the platform rules cannot be read: {error}")


def _check_names(path: Path, rules: dict[str, Any], categories: dict[str, dict[str, int]]) -> None:
    """Check that no table of the rules is unknown."""
    for category, tables in rules.items():
        if category not in categories:
            raise ConfigError(f"{path}: [{category}]: unknown category{did_you_mean(category, categories)}")
        if not isinstance(tables, dict):
            raise ConfigError(f"{path}: {category}: {show(tables)} is not a table; give one table per label")
        for label in tables:
            if label not in categories[category]:
                near = did_you_mean(label, categories[category])
                raise ConfigError(f"{path}: [{category}.{label}]: unknown label{near}")


def _labels(path: Path, rules: dict[str, Any], categories: dict[str, dict[str, int]]) -> Iterator[dict[str, Any]]:
    """Yield the rules of every label, by id."""
    named = [(number, category, label) for category, ids in categories.items() for label, number in ids.items()]
    for number, category, label in sorted(named):
        evidence = rules.get(category, {}).get(label)
        place = f"{path}: [{category}.{label}]"
        if not evidence:
            raise ConfigError(f"{place}: no evidence; every label of {PLATFORM_VOCAB.name} has a table with some")
        check_evidence(place, evidence)
        yield {"id": number, "category": category, "label": label, **evidence}


def check_evidence(place: str, evidence: object) -> None:
    """Check one label's table.

    Args:
        place: The table, as messages name it.
        evidence: Lists of strings by kind.

    Raises:
        ConfigError: A kind is unknown, or an entry is not a string, empty, or there twice.
    """
    if not isinstance(evidence, dict):
        raise ConfigError(f"{place}: {show(evidence)} is not a table; give lists of evidence: {', '.join(KINDS)}")
    for kind, entries in evidence.items():
        if kind not in KINDS:
            raise ConfigError(f"{place} {kind}: unknown key{did_you_mean(kind, KINDS)} (known: {', '.join(KINDS)})")
        if not isinstance(entries, list) or not entries:
            raise ConfigError(f"{place} {kind}: {show(entries)} is not allowed; it takes a list of strings")
        for at, entry in enumerate(entries):
            if not isinstance(entry, str) or not entry.strip():
                raise ConfigError(f"{place} {kind}: {show(entry)} is not allowed; an entry is a string with text in it")
            if entry in entries[:at]:
                raise ConfigError(f"{place} {kind}: {show(entry)} is listed twice; remove one")
