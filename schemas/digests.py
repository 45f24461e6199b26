"""SHA-256 digests, canonical JSON (RFC 8785), JSON and TOML that may be hostile, and sums of digests in any order."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import rfc8785

HEX_DIGEST = re.compile("[0-9a-f]{64}")
"""A SHA-256 in lower-case hex, as keys, doc_ids and digests of files are written."""

_CONTAINERS = (dict, list)
MAX_TOML_CHARACTERS = 4 << 20
"""No file that a person writes is longer; the parser takes seconds for that many."""

_MAX_TOML_DEPTH = 100
_MODULUS = 1 << 256
_HEX_DIGITS = 13  # 52 bits, which a float holds


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Return `value` as canonical JSON (RFC 8785): the bytes that digests are taken of.

    Raises:
        rfc8785.CanonicalizationError: For what JSON cannot hold, integers beyond 2^53 among it.
    """
    return rfc8785.dumps(value)


def parse_json(data: str | bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a JSON text.

    Raises:
        ValueError: If it is not JSON, nested more deeply than Python reads, or has a number of thousands of digits.

    Example:
        >>> parse_json(b'{"a": [1]}')
        {'a': [1]}
    """
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError as error:  # of `int`, whose advice is for programmers
        raise ValueError("a number has thousands of digits") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises:
        tomllib.TOMLDecodeError: If it is not TOML, nested too deeply, longer than `MAX_TOML_CHARACTERS`, or has a whole
            number of more than 64 bits.

    Example:
        >>> parse_toml("limit = 3")
        {'limit': 3}
    """
    if len(text) > MAX_TOML_CHARACTERS:
        raise tomllib.TOMLDecodeError(f"more than {MAX_TOML_CHARACTERS:,} characters")
    try:
        found = tomllib.loads(text)
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("nested too deeply") from error
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # of more digits than Python reads, or a date that there is none of
        raise tomllib.TOMLDecodeError(str(error)) from error
    level: list[Any] = [found]
    for _ in range(_MAX_TOML_DEPTH):
        if any(type(value) is int and not -(1 << 63) <= value < 1 << 63 for value in level):
            raise tomllib.TOMLDecodeError("a whole number has more than 64 bits")
        tables = (value.values() if isinstance(value, dict) else value for value in level if type(value) in _CONTAINERS)
        level = list(chain.from_iterable(tables))
    if level:
        raise tomllib.TOMLDecodeError("nested too deeply")
    return found


def same_json(one: Any, other: Any) -> bool:  # noqa: ANN401 - any JSON values
    """Return whether two values are the same JSON: for Python, true is 1 and false is 0.

    Raises:
        rfc8785.CanonicalizationError: For what JSON cannot hold.

    Example:
        >>> same_json({"bos": True}, {"bos": 1}), True == 1
        (False, True)
    """
    return one == other and canonical_json(one) == canonical_json(other)


def differing_keys(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the keys, sorted, that two JSON objects do not both have with the same value; null is a value.

    Example:
        >>> differing_keys({"bos": 1, "eos": None}, {"bos": 1})
        ['eos']
    """
    return [
        key
        for key in sorted(one.keys() | other.keys())
        if (key in one) is not (key in other) or not same_json(one.get(key), other.get(key))
    ]


def sha256_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return the lower-case hex SHA-256 of `value` as canonical JSON."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def with_digest(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the key `digest`, the SHA-256 of the rest as canonical JSON."""
    return {**record, "digest": sha256_json(record)}


def seal(record: Mapping[str, Any]) -> bytes:
    """Return a record as canonical JSON, with its digest."""
    return canonical_json(with_digest(record))


def sha256_file(path: Path) -> str:
    """Return the lower-case hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def add_digests(digests: Iterable[str]) -> str:
    """Return the sum, modulo 2^256, of hex digests read as big-endian numbers: the digest of a multiset.

    Example:
        >>> add_digests(["01", "ff"]) == add_digests(["ff", "01"])
        True
    """
    return f"{sum(int(digest, 16) for digest in digests) % _MODULUS:064x}"


def choose_share(digests: Sequence[str], share: float) -> list[int]:
    """Return the positions of a part of hex digests, the same for everyone: those below a bound; above 0 at least one.

    Args:
        digests: Digests in hex, each of 13 digits or more.
        share: The part to choose, 0 to 1.

    Example:
        >>> choose_share(["c" * 64, "1" * 64, "7" * 64], 0.5)
        [1, 2]
    """
    if not digests or share <= 0:
        return []
    least = min(range(len(digests)), key=digests.__getitem__)
    bound = share * 16**_HEX_DIGITS
    return [number for number, digest in enumerate(digests) if number == least or int(digest[:_HEX_DIGITS], 16) < bound]


def path_fraction(path: str) -> float:
    """Return the hash of a path as a fraction in [0, 1): the first 8 bytes of its SHA-256, big-endian, over 2^64.

    Args:
        path: A relative path; bytes that are not UTF-8 are surrogate escapes in it.
    """
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") / (1 << 64)
