"""Redaction: what identifies people or opens doors is replaced in a document, and the rest of it is kept.

What is found becomes a word, `REDACTED_EMAIL`, or text of the same length. The words are C++ identifiers: a pattern
keeps each whole, so a vocabulary can give each an id of its own, and code stays code. They are no control tokens,
because no text can spell one, and `doc_id` is the digest of a document that has to come back from its ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.options import IngestOptions, Redacted
from schemas.tables import REDACTED_COLUMNS
from transforms.filters.addresses import Span, find_emails, find_ips
from transforms.filters.secrets import KEY_TEXT, SecretDetectors
from transforms.sources.batches import is_equal, replace_contents

REDACTION = "5"
"""The version of what is found and of what it is replaced by; what was redacted by another one is read again."""

WORDS: dict[Redacted, bytes] = {"email": b"REDACTED_EMAIL", "ip": b"REDACTED_IP", "secret": b"REDACTED_SECRET"}
"""What replaces what was found."""

_MASKS: dict[Redacted, tuple[re.Pattern[bytes], bytes]] = {
    "email": (re.compile(rb"(?P<text>[A-Za-z0-9]+)"), b"x"),
    "ip": (re.compile(rb"(?P<text>[0-9A-Fa-f]+)"), b"0"),
    "secret": (KEY_TEXT, b"x"),
}
"""The characters that text of the same length has others for; escapes in secrets stay, or code would not compile."""


@dataclass(frozen=True)
class Redactor:
    """Replaces what options ask for; made once per worker.

    Attributes:
        finders: What finds the places of each kind; the first of them has places that overlap.
        same_length: Whether the text keeps its length.
    """

    finders: dict[Redacted, Callable[[bytes], Iterable[Span]]]
    same_length: bool

    def redact(self, content: bytes) -> tuple[bytes, dict[Redacted, int]]:
        """Return a document without what was found in it, and the number of places by kind."""
        pieces, end, counts = list[bytes](), 0, dict[Redacted, int]()
        for first, last, kind in self._places(content):
            pieces += [content[end:first], self._replace(kind, content[first:last])]
            counts[kind] = counts.get(kind, 0) + 1
            end = last
        return b"".join([*pieces, content[end:]]) if counts else content, counts

    def redact_batch(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of READ redacted, with the columns `source_doc_id` and REDACTED_COLUMNS."""
        contents, counts = dict[int, bytes](), {kind: np.zeros(documents.num_rows, np.uint32) for kind in WORDS}
        column = documents.column("content")
        for row in np.flatnonzero(~is_equal(documents.column("doc_id"), "")).tolist():
            before: Any = column[row].as_py()
            after, found = self.redact(before)
            for kind, number in found.items():
                counts[kind][row] = number
            if after != before:
                contents[row] = after
        redacted = replace_contents(documents, contents)
        for field, kind in zip(REDACTED_COLUMNS, WORDS, strict=True):
            redacted = redacted.append_column(field, pa.array(counts[kind], field.type))
        return redacted

    def _places(self, content: bytes) -> Iterator[tuple[int, int, Redacted]]:
        """Yield what is found, in order; places that overlap are one, of the first kind."""
        found = sorted(
            (first, last, rank) for rank, find in enumerate(self.finders.values()) for first, last in find(content)
        )
        kinds, merged = list(self.finders), list[tuple[int, int, int]]()
        for first, last, rank in found:
            if merged and first < merged[-1][1]:
                before = merged.pop()
                first, last, rank = before[0], max(last, before[1]), min(rank, before[2])
            merged.append((first, last, rank))
        yield from ((first, last, kinds[rank]) for first, last, rank in merged)

    def _replace(self, kind: Redacted, text: bytes) -> bytes:
        if not self.same_length:
            return WORDS[kind]
        pattern, mask = _MASKS[kind]
        return pattern.sub(lambda found: mask * len(found[0]) if found["text"] else found[0], text)


def redacted(documents: Iterator[pa.RecordBatch], options: IngestOptions) -> Iterator[pa.RecordBatch]:
    """Return batches of READ as both passes of ingest see them: redacted if options ask for that.

    Raises:
        ConfigError: As `make_redactor`.
    """
    redactor = make_redactor(options)
    return documents if redactor is None else map(redactor.redact_batch, documents)


def make_redactor(options: IngestOptions) -> Redactor | None:
    """Return what redacts documents as options ask for; None if they ask for nothing.

    Raises:
        ConfigError: If secrets are to be found and their library is not installed.
    """
    if not options.redact:
        return None
    found: dict[Redacted, Callable[[bytes], Iterable[Span]]] = {}
    if "secret" in options.redact:
        found["secret"] = SecretDetectors().find_places
    if "email" in options.redact:
        found["email"] = find_emails
    if "ip" in options.redact:
        found["ip"] = find_ips
    return Redactor(found, same_length=options.redact_with == "same-length")
