"""A document's licence where a source gives it as a list: the list becomes one expression."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from transforms.sources.document import bounded, label

_MAX_BYTES = 16 << 10
_NO_TEXT = "(what is no text)"
_NAME = re.compile(r"[\w.+:-]+(?:\s+WITH\s+[\w.+:-]+)?", re.IGNORECASE)
_GNU = re.compile(r"((?:[AL]?GPL|GFDL)-\d+\.\d+)(-only|-or-later|\+?)(?![\w.+-])", re.IGNORECASE)
_OTHER_SPELLING = {"": "-only", "-only": "", "+": "-or-later", "-or-later": "+"}
"""SPDX has two identifiers for each of the GNU licences, of which the shorter ones are deprecated."""

NAMES_READING = "2"
"""How names are found in expressions; since the first version, those with exceptions and in both spellings."""


def read_terms(value: object) -> str | None:
    """Return the expression of a licence that is not text: all texts of a list hold; None if it names none.

    Example:
        >>> read_terms(["MIT", "ISC"]), read_terms(["NOASSERTION"]), read_terms([]), read_terms(3)
        ('(MIT) AND (ISC)', 'NOASSERTION', None, '(what is no text)')
    """
    if value is None or isinstance(value, str):
        return None
    names = [name for name in value if name is not None] if isinstance(value, list) else [value]
    return all_of((label(name) or "").strip() if isinstance(name, str) else _NO_TEXT for name in names)


def all_of(texts: Iterable[str]) -> str | None:
    """Return one expression of several that hold together; an unreadable one if brackets would reach across them."""
    names = [name for name in dict.fromkeys(texts) if name]
    if len(names) < 2:
        return names[0] if names else None
    joined = " AND ".join(f"({name})" for name in names) if all(map(_is_balanced, names)) else ", ".join(names)
    return bounded(joined, _MAX_BYTES)


def named_licenses(expression: str) -> Iterator[str]:
    """Yield an expression as it is, and every name in it: with its exception and without, in both spellings of SPDX.

    Example:
        >>> list(named_licenses("MIT OR GPL-2.0+"))
        ['MIT OR GPL-2.0+', 'MIT', 'OR', 'GPL-2.0+', 'GPL-2.0-or-later']
    """
    if expression:
        yield expression
        for found in _NAME.findall(expression):
            words = found.split()
            for name in dict.fromkeys((" ".join(words), *words)):
                yield from dict.fromkeys((name, _GNU.sub(_other_spelling, name)))


def _other_spelling(name: re.Match[str]) -> str:
    return f"{name[1]}{_OTHER_SPELLING[name[2].lower()]}"


def _is_balanced(text: str) -> bool:
    depths = [*accumulate((character == "(") - (character == ")") for character in text)]
    return min(depths) >= 0 and depths[-1] == 0
