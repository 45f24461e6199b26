"""Text of UTF-16 and UTF-32 becomes the same text in UTF-8; what is not well-formed stays as it is."""

from __future__ import annotations

import codecs
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from transforms.sources.batches import replace_contents, to_batch
from transforms.sources.document import Document
from transforms.sources.wide_text import convert_wide_text, to_utf8

HEADER = Path(np.get_include()) / "numpy" / "npy_common.h"
MARKS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


@pytest.mark.parametrize(("codec", "mark"), MARKS.items(), ids=MARKS)
def test_a_header_in_every_form_is_the_same_header(codec: str, mark: bytes) -> None:
    text = HEADER.read_text() + "// \u00e9 \u4e2d \U0001f600 \r\n"
    assert to_utf8(mark + text.encode(codec)) == text.encode()


@pytest.mark.parametrize(
    "content",
    [
        codecs.BOM_UTF16_LE + b"i\0n",
        codecs.BOM_UTF16_LE + b"i\0\x00\xd8n\0",
        codecs.BOM_UTF16_BE + b"\xdc\x00\0i",
        codecs.BOM_UTF32_LE + b"i\0\0\0n\0",
        codecs.BOM_UTF32_BE + b"\0\x11\0\0",
        "int x;".encode("utf-16-le"),
    ],
    ids=["odd", "lone surrogate", "lone low surrogate", "cut", "beyond Unicode", "no mark"],
)
def test_what_is_not_well_formed_is_left_alone(content: bytes) -> None:
    assert to_utf8(content) is None


def test_a_batch_has_the_digests_of_both() -> None:
    contents = [b"int a;", "int b;".encode("utf-16"), codecs.BOM_UTF16_LE + b"i\0n", None]
    before = to_batch([Document("p", f"{row}.h", 99, content) for row, content in enumerate(contents)], keep=True)
    after = convert_wide_text(before)
    expected = [b"int a;", b"int b;", contents[2], b""]
    assert after.column("content").to_pylist() == expected
    assert after.column("num_bytes").to_pylist() == [99, len(b"int b;"), 99, 99]
    assert after.column("has_nul").to_pylist() == after.column("is_wide").to_pylist() == [False, False, True, False]
    assert after.column("doc_id").to_pylist() == [*(sha256(text or b"").hexdigest() for text in expected[:3]), ""]
    sources = [None, sha256(contents[1] or b"").hexdigest(), None, None]
    assert after.column("source_doc_id").to_pylist() == sources
    again = replace_contents(after, {0: b"int c;", 1: b"int d;"})
    assert again.column("source_doc_id").to_pylist() == [sha256(b"int a;").hexdigest(), *sources[1:]]
