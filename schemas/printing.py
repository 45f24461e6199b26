"""Text from data, as it may be printed: nothing in it that a terminal or a reader would obey. Numbers with nouns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_KEPT = "\n\t"
_IS_ASIDE = ContextVar("is_aside", default=False)


@contextmanager
def printing_aside() -> Iterator[None]:
    """Let what this thread prints in the block go to the error stream: the output stream is for what a command says."""
    token = _IS_ASIDE.set(True)
    try:
        yield
    finally:
        _IS_ASIDE.reset(token)


def is_aside() -> bool:
    """Return whether this thread is in such a block."""
    return _IS_ASIDE.get()


def printable(text: str) -> str:
    r"""Return a text with escapes in place of every character that is not printed; line ends and tabs stay.

    That leaves no control sequences (C0, C1, DEL), no marks that turn the direction of writing, no lone surrogates.

    Example:
        >>> printable("a\x1b]0;b\x07\tc\u202e\n")
        'a\\x1b]0;b\\x07\tc\\u202e\n'
    """
    return _escaped(text, lambda character: repr(character)[1:-1])


def one_line(text: str) -> str:
    r"""Return a text with escapes for line ends and tabs too: a name of a file may have them.

    Example:
        >>> one_line("a\n\tb")
        'a\\n\\tb'
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def printable_json(text: str) -> str:
    r"""Return JSON text that means the same, with JSON's escapes in place of every character that is not printed.

    Example:
        >>> printable_json('{"a": "é\x9b"}')
        '{"a": "é\\u009b"}'
    """
    return _escaped(text, lambda character: json.dumps(character)[1:-1])


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Example:
        >>> count(1, "project"), count(1200, "document"), count(2, "category", "categories")
        ('1 project', '1,200 documents', '2 categories')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    lines = text.split("\n")  # most are printable as they are, which is found at once
    return "\n".join(
        line if line.isprintable() else "".join(c if c.isprintable() or c in _KEPT else escape(c) for c in line)
        for line in lines
    )
