"""Options as keyword arguments of a program: any key by its name, or a table of keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from configs.layers import Layer, freeze
from configs.problems import did_you_mean
from configs.tables import KEYS
from schemas.errors import ConfigError

HOMES: dict[str, str] = {key: table for table, keys in KEYS.items() for key in keys}
"""The table of each key; no two tables have a key of the same name."""


def read_keywords(keywords: Mapping[str, object]) -> Layer:
    """Return the layer of keyword arguments.

    Args:
        keywords: Values by key (`vocab_size=32_768`), tables by name (`ingest={"max_file_bytes": 1000}`). Paths and
            lists may be given where a file has strings and arrays; None is as if it was not given.

    Raises:
        ConfigError: For names that there are none of, one line each.

    Example:
        >>> read_keywords({"vocab_size": 9000, "ingest": {"drop_generated": True}}).values
        {'build': {'vocab_size': 9000}, 'ingest': {'drop_generated': True}}
    """
    tables: dict[str, dict[str, Any]] = {}
    problems = []
    for name, value in keywords.items():
        if name in KEYS and isinstance(value, Mapping):
            tables.setdefault(name, {}).update(given_values(value))
        elif name in HOMES:
            tables.setdefault(HOMES[name], {}).update(given_values({name: value}))
        elif name in KEYS:
            problems.append(f"{name}: a table of options, to be given as a dict: {name}={{...}}")
        else:
            problems.append(f"{name}: no such option{did_you_mean(name, {*KEYS, *HOMES})}")
    if problems:
        raise ConfigError("\n".join(problems))
    return Layer(origin="", values=tables, form="{name} = {value}")


def given_values(values: Mapping[str, object]) -> dict[str, Any]:
    """Return the keys that are given: not None; paths are text and lists are tuples."""
    return {key: _plain(value) for key, value in values.items() if value is not None}


def _plain(value: object) -> Any:  # noqa: ANN401 - what a TOML file could have
    """Return a value with paths as text and lists as tuples."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(_plain(item) for item in value)
    return freeze(value)
