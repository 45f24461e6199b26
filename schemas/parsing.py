"""Reads JSON and TOML from files that may be damaged or hostile."""

from __future__ import annotations

import json
import tomllib
from typing import Any


def parse_json(data: str | bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a JSON text.

    Raises:
        ValueError: If it is not JSON, or nested more deeply than Python reads.

    Example:
        >>> parse_json(b'{"a": [1]}')
        {'a': [1]}
    """
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises:
        tomllib.TOMLDecodeError: If it is not TOML, or nested more deeply than Python reads.
    """
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("nested too deeply") from error
