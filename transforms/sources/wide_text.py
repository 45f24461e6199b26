"""Text of UTF-16 and UTF-32 as UTF-8, by its byte-order mark, which UTF-8 needs none of.

The Unicode Standard, section 23.8, says which mark is of which form. Text without a mark is not guessed at.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from transforms.sources.batches import replace_contents

_FORMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16, and U+0000 begins no source
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte-order marks, and the encodings that they are of."""

MARKS = tuple(mark for mark, _ in _FORMS)
"""How wide text begins."""


def to_utf8(content: bytes) -> bytes | None:
    r"""Return text with a byte-order mark as UTF-8 without one; None if it is not well-formed.

    Example:
        >>> to_utf8("int x; // \u00e9".encode("utf-16")), to_utf8(b"\xff\xfei\0n")
        (b'int x; // \xc3\xa9', None)
    """
    form = next(((mark, name) for mark, name in _FORMS if content.startswith(mark)), None)
    if form is None:
        return None
    mark, name = form
    try:
        return content[len(mark) :].decode(name).encode()
    except UnicodeDecodeError:
        return None


def wide_forms(text: bytes) -> Iterator[bytes]:
    """Yield the wide texts that `to_utf8` converts to a text; none if it is not UTF-8.

    Example:
        >>> [to_utf8(form) for form in wide_forms(b"int x;")] == 4 * [b"int x;"]
        True
    """
    try:
        characters = text.decode()
    except UnicodeDecodeError:
        return
    yield from (mark + characters.encode(name) for mark, name in _FORMS)


def convert_wide_text(documents: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of READ with wide text as UTF-8 where it is well-formed, and the column `source_doc_id`."""
    wide = np.flatnonzero(documents.column("is_wide").to_numpy(zero_copy_only=False)).tolist()
    found = {row: to_utf8(documents.column("content")[row].as_py()) for row in wide}
    return replace_contents(documents, {row: content for row, content in found.items() if content is not None})
