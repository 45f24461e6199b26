"""How far the lexer and libclang's raw lexer agree, byte by byte, and where they do not.

Every byte of a document is in one class for either side: comment, string (string, raw string and character literals),
identifier (and keyword), header name, or rest. Agreement on a class is bytes in it for both over bytes in it for
either. Clang's raw lexer knows no header names; on its side they are what a regular expression finds after a `#` that
it sees in code.

What it does not do: compare where numbers and punctuators end, which CUDA's `<<<` would need another language for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt

from benches.agreement.causes import ByteClass, Difference, Place, find_cause
from benches.agreement.libclang import ClangKind, ClangTokens, Libclang

CLASSES = tuple(ByteClass)
REST, COMMENT, STRING, IDENTIFIER, HEADER = range(len(CLASSES))
JUDGED = (ByteClass.COMMENT, ByteClass.STRING, ByteClass.IDENTIFIER)
"""The classes that agreement is demanded of."""

_OUR_CLASS = {
    "line_comment": COMMENT,
    "block_comment": COMMENT,
    "identifier": IDENTIFIER,
    "string": STRING,
    "raw_string": STRING,
    "char": STRING,
    "header_name": HEADER,
}
_NAME = rb'(<[^>\r\n]*>|"[^"\r\n]*")'
_SPLICED_NUMBER = re.compile(rb"(?:\\[ \t\v\f]*(?:\r\n|\n|\r))+[0-9.]")
_INCLUDE = re.compile(rb"(?:#|%:)[ \t]*(?:include|include_next|import|embed)\b[ \t]*" + _NAME)
_HAS_INCLUDE = re.compile(rb"__has_(?:include|include_next|embed)[ \t]*\([ \t]*" + _NAME)
_CONDITIONAL = re.compile(rb"[ \t]*#[ \t]*(?:if|elif)\b")

Bytes = npt.NDArray[np.uint8]


@dataclass(kw_only=True)
class Agreement:
    """Sums over documents, which add up with `+=`.

    Attributes:
        documents: How many were compared.
        left_out: How many were not, as they hold a NUL byte or are too long.
        confusion: Bytes by our class (row) and libclang's (column).
        differences: What differs, by cause.
    """

    documents: int = 0
    left_out: int = 0
    confusion: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((len(CLASSES), len(CLASSES)), np.int64))
    differences: dict[str, Difference] = field(default_factory=dict)

    @property
    def num_bytes(self) -> int:
        """Bytes of the documents that were compared."""
        return int(self.confusion.sum())

    def of(self, byte_class: ByteClass) -> float:
        """Return the bytes that both put in a class divided by those that either does; 1 without such bytes."""
        index = CLASSES.index(byte_class)
        both = int(self.confusion[index, index])
        either = int(self.confusion[index].sum() + self.confusion[:, index].sum()) - both
        return both / either if either else 1.0

    def __iadd__(self, other: Agreement) -> Agreement:
        """Add the sums of other documents."""
        self.documents += other.documents
        self.left_out += other.left_out
        self.confusion += other.confusion
        for cause, difference in other.differences.items():
            self.differences.setdefault(cause, Difference()).add(difference)
        return self


def compare(libclang: Libclang, source: bytes, name: str) -> Agreement:
    """Compare the lexer and libclang on one document.

    Args:
        libclang: The peer.
        source: The document; no NUL byte in it.
        name: What to call it in examples.
    """
    ours, theirs = our_classes(source), clang_classes(source, libclang.tokenize(source))
    pairs = np.bincount(ours * np.uint8(len(CLASSES)) + theirs, minlength=len(CLASSES) ** 2)
    result = Agreement(documents=1, confusion=pairs.reshape(len(CLASSES), -1).astype(np.int64))
    for start, end in _runs(ours, theirs):
        place = Place(source, start, end, CLASSES[ours[start]], CLASSES[theirs[start]])
        difference = Difference(num_bytes=end - start, places=1, example=place.example(name))
        result.differences.setdefault(find_cause(place), Difference()).add(difference)
    return result


def our_classes(source: bytes) -> Bytes:
    """Return the class of every byte as the lexer sees it."""
    tokens = cppmill_core.lex(source)
    kinds: Any = tokens["kind"]
    names: list[str] = kinds.dictionary.to_pylist()
    class_of = np.array([_OUR_CLASS.get(name, REST) for name in names], np.uint8)
    lengths = tokens["end"].to_numpy() - tokens["start"].to_numpy()
    return np.repeat(class_of[kinds.indices.to_numpy()], lengths.astype(np.int64))


def clang_classes(source: bytes, tokens: ClangTokens) -> Bytes:
    """Return the class of every byte as libclang sees it."""
    class_of = np.array([REST, IDENTIFIER, IDENTIFIER, STRING, COMMENT], np.uint8)
    classes = class_of[tokens.kind]
    first = np.frombuffer(source, np.uint8)[tokens.start]
    is_number = ((first >= ord("0")) & (first <= ord("9"))) | (first == ord("."))
    is_literal = tokens.kind == ClangKind.LITERAL
    for token in np.flatnonzero(is_literal & (first == ord("\\"))):
        is_number[token] = _SPLICED_NUMBER.match(source, int(tokens.start[token])) is not None
    classes[is_literal & is_number] = REST
    borders = np.empty(2 * len(classes) + 2, np.int64)
    borders[0], borders[-1] = 0, len(source)
    borders[1:-1:2], borders[2:-1:2] = tokens.start, tokens.end
    between = np.full(2 * len(classes) + 1, REST, np.uint8)
    between[1::2] = classes
    result = np.repeat(between, np.diff(borders))
    for start, end in list(_header_names(source, result)):
        result[start:end] = HEADER
    return result


def _header_names(source: bytes, classes: Bytes) -> Iterator[tuple[int, int]]:
    """Find the header names of directives in code."""
    for match in _INCLUDE.finditer(source):
        line = source[source.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        if classes[match.start()] == REST and not line.strip(b" \t\r\v\f\xef\xbb\xbf"):
            yield match.span(1)
    for match in _HAS_INCLUDE.finditer(source):
        line_start = source.rfind(b"\n", 0, match.start()) + 1
        if classes[match.start()] == IDENTIFIER and _CONDITIONAL.match(source, line_start):
            yield match.span(1)


def _runs(ours: Bytes, theirs: Bytes) -> Iterator[tuple[int, int]]:
    """Yield the ranges of bytes with one pair of classes that differ."""
    at = np.flatnonzero(ours != theirs)
    if not len(at):
        return
    same = (np.diff(at) == 1) & (np.diff(ours[at]) == 0) & (np.diff(theirs[at]) == 0)
    breaks = np.flatnonzero(~same) + 1
    starts, ends = at[np.r_[0, breaks]], at[np.r_[breaks - 1, len(at) - 1]] + 1
    yield from zip(starts.tolist(), ends.tolist(), strict=True)
