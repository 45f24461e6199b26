"""The rules of the platform detector: `platforms.toml`, checked and joined with the ids of `platform_vocab.json`.

The top of `platforms.toml` describes what each kind of evidence matches. Nothing here looks at code: the result is what
`cppmill_core.PlatformDetector` compiles.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rfc8785

from configs.problems import did_you_mean, show
from schemas.errors import ConfigError

PLATFORMS: Path = Path(__file__).with_name("platforms.toml")
"""The rules that come with cppmill."""

PLATFORM_VOCAB: Path = Path(__file__).with_name("platform_vocab.json")
"""The ids of the labels: six categories, ids from 1, 0 for padding."""

KINDS = ("identifiers", "includes", "paths", "sequences")
"""The kinds of evidence that a label may have."""


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
    vocab = json.loads(PLATFORM_VOCAB.read_text(encoding="utf-8"))
    rules = _read(path)
    _check_names(path, rules, vocab["categories"])
    labels = list(_labels(path, rules, vocab["categories"]))
    return rfc8785.dumps({"labels": labels, "max_ids": vocab["max_ids_per_document"]}).decode()


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: the platform rules cannot be read: {error}") from error


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
        _check_evidence(place, evidence)
        yield {"id": number, "category": category, "label": label, **evidence}


def _check_evidence(place: str, evidence: object) -> None:
    """Check one label's table."""
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
