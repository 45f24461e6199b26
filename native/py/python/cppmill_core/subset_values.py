"""Checks of files that choose among the ids of a tokenizer: masks and working sets.

Each has a digest, but no digest says that ids are below the size of the vocabulary, each once and in order, or that
this is the size of the tokenizer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from cppmill_core._native import InvalidInputError
from cppmill_core.manifests import MAX_IDS
from cppmill_core.protocol import AnyTokenizer

__all__ = ["check_ids", "check_ranges", "check_tokenizer", "read_tokenizer", "same_values"]

_DIGEST = re.compile("[0-9a-f]{64}")


def read_tokenizer(value: Any) -> tuple[str, int]:  # noqa: ANN401 - any JSON value
    """Return the digest and the number of ids of the tokenizer that a file names.

    Raises:
        ValueError: If it names none.
    """
    digest, size = value["tokenizer"]["digest"], value["tokenizer"]["vocab_size"]
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ValueError(f"the tokenizer {digest!r}")
    if type(size) is not int or not 0 < size <= MAX_IDS:
        raise ValueError(f"{size!r} ids")
    return digest, size


def check_tokenizer(tokenizer: AnyTokenizer | str | None, digest: str, size: int, *, where: str) -> None:
    """Check that a file is for a tokenizer, or for one of a digest.

    Args:
        tokenizer: The tokenizer or its digest; None if any will do.
        digest: The digest of the tokenizer that the file names.
        size: The number of ids that the file says it has.
        where: Names the file in the message, and says what it is.

    Raises:
        InvalidInputError: If it is for another one.
        ValueError: If it is for this one, which has another number of ids.
    """
    expected = getattr(tokenizer, "digest", tokenizer)
    if expected is not None and expected != digest:
        raise InvalidInputError(f"{where} of tokenizer {digest}, not of {expected}; write one for it")
    found = getattr(tokenizer, "vocab_size", size)
    if found != size:
        raise ValueError(f"it says {size:,} ids, the tokenizer has {found:,}")


def check_ids(ids: Any, size: int) -> list[int]:  # noqa: ANN401 - any JSON value
    """Return ids that ascend, each once and below the size of the vocabulary.

    Raises:
        ValueError: If they are others.
    """
    return [first for first, _ in check_ranges([[id_, id_] for id_ in ids], size)]


def check_ranges(found: Iterable[Any], size: int) -> list[tuple[int, int]]:
    """Return ranges `[first, last]` that ascend, do not overlap, and are below the size of the vocabulary.

    Raises:
        ValueError: If they are others.
    """
    ranges, next_id = list[tuple[int, int]](), 0
    for first, last in found:
        if type(first) is not int or type(last) is not int or not next_id <= first <= last < size:
            shown = str(first) if first == last else f"{first} to {last}"
            raise ValueError(f"the ids {shown} after those below {next_id}, of {size:,}")
        ranges.append((first, last))
        next_id = last + 1
    return ranges


def same_values(one: Any, other: Any) -> bool:  # noqa: ANN401 - any JSON values
    """Return whether values are the same as JSON, in which 1.0 is 1 and true is not."""
    return one == other and _kinds(one) == _kinds(other)


def _kinds(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return the layout of a value: keys, and the kind of each value."""
    if isinstance(value, dict):
        return json.dumps({key: _kinds(value[key]) for key in sorted(value)})
    if isinstance(value, list):
        return f"[{','.join(map(_kinds, value))}]"
    return "number" if type(value) in (int, float) else type(value).__name__
