"""The content filters, in their order."""

from __future__ import annotations

from pathlib import Path

import cppmill_core
import pyarrow as pa
import pytest

from schemas.options import IngestOptions
from schemas.reasons import Column, Filtered
from transforms.filters.verdicts import KEPT, make_content_filter
from transforms.sources.batches import to_batch
from transforms.sources.document import Document

ALL = IngestOptions(drop_generated=True, max_line_bytes=100, min_unique_line_ratio=0.5, max_document_bytes=10_000)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"int a;\n", ""),
        (b"x" * 10_001, "size"),
        (b"\0" * 10_001, "size"),
        (b"int a;\0", "binary"),
        (b"// @generated\n\0", "binary"),
        (b"// @generated\n" + b"x" * 101, "generated"),
        (b"x" * 101 + b"\nx\nx\nx\nx", "long_lines"),
        (b"x" * 100 + b"\n", ""),
        (b"x;\n" * 10, "unique_lines"),
        (b"x;\ny;\n", ""),
    ],
)
def test_the_first_filter_that_matches_counts(content: bytes, reason: str) -> None:
    assert make_content_filter(ALL)(content, None).reason == reason


def test_nothing_is_empty_and_no_reason() -> None:
    assert make_content_filter(ALL)(b"", None)[:2] == (Column.EMPTY, "")


def test_by_default_only_size_binary_and_empty_drop() -> None:
    content = b"// @generated DO NOT EDIT\n// SPDX-License-Identifier: GPL-3.0-only\n" + b"0," * 100_000 + b"\nx\n" * 99
    assert make_content_filter(IngestOptions())(content, "GPL-3.0-only") == KEPT
    assert make_content_filter(IngestOptions(drop_binary=False))(b"\0", None) == KEPT


@pytest.mark.parametrize("options", [IngestOptions(), ALL], ids=["bytes", "text"])
def test_a_batch_is_judged_as_its_documents_are(options: IngestOptions) -> None:
    contents = [b"", b"int a;\n", b"int a;\0", b"x" * 10_001, b"// @generated\n", b"x;\n" * 10, None]
    documents = [Document("p", f"{row}.cpp", len(text or b""), text) for row, text in enumerate(contents)]
    filters = make_content_filter(options)
    judged = dict(filters.judge(to_batch(documents, keep=filters.reads_text)))
    expected = [KEPT if text is None else filters(text, None) for text in contents]
    assert [judged.get(row, KEPT) for row in range(len(contents))] == expected


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_text_of_other_encodings_has_a_reason_of_its_own(codec: str, tmp_path: Path) -> None:
    content = "\ufeffint \xe9;\n".encode(codec)
    judge = make_content_filter(IngestOptions())
    assert judge(content, None).reason == Filtered.WIDE_TEXT
    assert judge(content.removeprefix("\ufeff".encode(codec)), None).reason == Filtered.BINARY
    assert make_content_filter(IngestOptions(drop_binary=False))(content, None) == KEPT
    (tmp_path / "a.cpp").write_bytes(content)
    (tmp_path / "b.cpp").write_bytes(b"\0" + content)
    files = cppmill_core.read_files(
        bytes(tmp_path), pa.array([b"a.cpp", b"b.cpp"]), pa.array([9, 9], pa.uint64()), max_bytes=99
    )
    assert files["is_wide"].to_pylist() == [True, False]
