"""Text files: cut at a separator that is in no document, whatever the pieces in which they are read."""

from __future__ import annotations

import io
from typing import Any

import pytest

from schemas.options import IngestOptions
from transforms.sources.document import Archive, DamageError
from transforms.sources.streams import MemberStream
from transforms.sources.text import iter_text

SEPARATOR = "<|endoftext|>"


class Slow(io.BytesIO):
    """A file that gives a few bytes at a time, so that a separator is cut anywhere."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(3)


def read(data: bytes, **options: Any) -> list[tuple[str, bytes | None, int, str]]:
    archive = Archive("a.txt", len(data), "p", IngestOptions(document_separator=SEPARATOR, **options))
    with MemberStream(archive, lambda: Slow(data), "") as stream:
        return [(d.path, d.content, d.num_bytes, d.reason) for d in iter_text(archive, stream)]


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("one\n<|endoftext|>\ntwo<|endoftext|>\r\n\nthree", ["one\n", "two", "\nthree"]),
        ("one<|endoftext|>\n", ["one"]),
        ("<|endoftext|><|endoftext|>x", ["", "", "x"]),
        ("one <|endoftex t|>", ["one <|endoftex t|>"]),
        ("", [""]),
    ],
)
def test_the_separator_is_in_no_document(text: str, documents: list[str]) -> None:
    expected = [(f"a.txt/document-{number}", d.encode(), len(d), "") for number, d in enumerate(documents, start=1)]
    assert read(text.encode()) == expected


def test_of_a_document_that_is_too_large_only_the_size_is_known() -> None:
    long = "x" * 5000
    found = read(f"{'y' * 40}{SEPARATOR}{long}{SEPARATOR}\nz{SEPARATOR}\n".encode(), max_document_bytes=40)
    assert found == [
        ("a.txt/document-1", b"y" * 40, 40, ""),
        ("a.txt/document-2", None, len(long), "size"),
        ("a.txt/document-3", b"z", 1, ""),
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-be", "utf-32-be"])
def test_wide_text_is_not_cut_and_so_is_no_document(encoding: str) -> None:
    data = f"\ufeffone{SEPARATOR}two".encode(encoding)
    with pytest.raises(DamageError, match="unsupported: UTF-16 or UTF-32"):
        read(data, convert_wide_text=True)
    assert len(read(data)) == 1
