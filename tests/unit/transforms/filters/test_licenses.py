"""The allow-list of licences: expressions, tags, what tells none; on real headers too."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.options import IngestOptions
from schemas.reasons import Filtered
from transforms.filters.licenses import AllowList, find_tags
from transforms.filters.verdicts import make_content_filter


@pytest.mark.parametrize(
    ("allowed", "expression", "expected"),
    [
        (["MIT"], "MIT", True),
        (["MIT"], "mit", True),
        (["MIT"], "ISC", False),
        (["MIT"], "GPL-3.0-only OR MIT", True),
        (["MIT"], "GPL-3.0-only AND MIT", False),
        (["MIT", "ISC"], "(MIT AND ISC) OR GPL-3.0-only", True),
        (["MIT", "ISC"], "MIT AND (ISC OR GPL-3.0-only)", True),
        (["ISC"], "MIT AND (ISC OR GPL-3.0-only)", False),
        (["Apache-2.0"], "Apache-2.0 WITH LLVM-exception", True),
        (["Apache-2.0 WITH LLVM-exception"], "Apache-2.0 WITH LLVM-exception", True),
        (["Apache-2.0 WITH LLVM-exception"], "Apache-2.0", False),
        (["GPL-2.0-only"], "GPL-2.0", True),
        (["GPL-2.0"], "GPL-2.0-only", True),
        (["GPL-2.0-only"], "GPL-2.0+", True),
        (["GPL-2.0-only"], "GPL-2.0-or-later", True),
        (["GPL-2.0-or-later"], "GPL-2.0-only", False),
        (["GPL-3.0-only"], "GPL-2.0-only", False),
        (["Apache-1.0"], "Apache-1.0+", True),
        (["LicenseRef-Ours"], "LicenseRef-Ours", True),
        (["MIT"], "LicenseRef-Ours", False),
        (["MIT"], "MIT/X11", False),
        (["Apache-2.0"], "Apache 2.0", False),
        (["MIT"], "MIT OR", False),
        (["MIT"], "(", False),
        (["MIT"], "()", False),
        (["MIT"], "MIT WITH GPL-3.0-only", False),
        (["MIT"], "MIT & GPL-3.0-only", False),
        (["MIT"], "MIT, GPL-3.0-only", False),
        (["MIT"], "MIT_AND_GPL", False),
        (["MIT"], "(MIT OR A~0123456789abcdef~B)", False),
        (["MIT"], "((MIT))", True),
        (["MIT", "ISC"], "MIT AND ISC AND", False),
        (["MIT"], "(MIT) GPL-3.0-only OR", False),
        (["MIT"], "MIT OR (ISC) MIT", False),
        (["MIT"], "( OR MIT", False),
        (["MIT"], "( AND MIT", False),
        (["MIT"], "MIT OR (OR MIT)", False),
        (["MIT"], "MIT)", False),
        (["MIT"], "(MIT", False),
    ],
)
def test_an_expression_is_allowed_if_one_may_choose_what_is(
    allowed: list[str], expression: str, expected: bool
) -> None:
    assert AllowList(tuple(allowed), unlicensed="drop").allows(expression) is expected


@pytest.mark.parametrize(
    ("head", "expression"),
    [
        (b"// SPDX-License-Identifier: MIT\n", "MIT"),
        (b"/* SPDX-License-Identifier: GPL-2.0+ */\n", "GPL-2.0+"),
        (b" * SPDX-License-Identifier: (GPL-2.0-only OR MIT)\r\n", "(GPL-2.0-only OR MIT)"),
        (b"// SPDX-License-Identifier: MIT\n// SPDX-License-Identifier: MIT\n", "MIT"),
        (b"// SPDX-License-Identifier: MIT\n// SPDX-License-Identifier: ISC OR X11\n", "(MIT) AND (ISC OR X11)"),
        (b"// SPDX-License-Identifier:\nint MIT;\n", None),
        (b"/* SPDX-License-Identifier: */ int MIT;\n", None),
        (b"// SPDX-License-Identifier: MIT, GPL-3.0-only\n", "MIT, GPL-3.0-only"),
        (b"// SPDX-License-Identifier: MIT & GPL-3.0-only\r\n", "MIT & GPL-3.0-only"),
        (b"// SPDX-License-Identifier: MIT;GPL-3.0", "MIT;GPL-3.0"),
        (b"// SPDX-License-Identifier: MIT_AND_GPL\n", "MIT_AND_GPL"),
        (b"// SPDX-License-Identifier: MIT/X11\n", "MIT/X11"),
        (b"# SPDX-License-Identifier: <GPL-3.0-only>\n", "<GPL-3.0-only>"),
        (b"// SPDX-License-Identifier: \xa7GPL\n", "\ufffdGPL"),
        (b'x = "SPDX-License-Identifier: MIT"\n', "MIT"),
        (b'// SPDX-License-Identifier: "GPL-3.0-only"\n', "GPL-3.0-only"),
        (b"<!-- SPDX-License-Identifier: MIT -->\n", "MIT"),
        (b"/* SPDX-License-Identifier: MIT */ int a;\n", "MIT"),
        (b"/* SPDX-License-Identifier: MIT */ /* SPDX-License-Identifier: ISC */\n", "(MIT) AND (ISC)"),
        (b"** SPDX-License-Identifier: MIT     **\n", "MIT"),
        (b"// SPDX-License-Identifier: A)\n// SPDX-License-Identifier: B\n", "A), B"),
        (b"\n" * 4066 + b"// SPDX-License-Identifier: MIT AND GPL-3.0-only\n", "MIT AND GPL-3.0-only"),
        (b"// Licensed under the MIT licence\n", None),
        (b"\n" * 4096 + b"// SPDX-License-Identifier: MIT\n", None),
    ],
)
def test_the_tags_of_a_head_are_one_expression(head: bytes, expression: str | None) -> None:
    assert find_tags(head) == expression


@pytest.mark.parametrize("unlicensed", ["keep", "drop"])
@pytest.mark.parametrize("license_name", [None, "", "  ", "NOASSERTION", "NONE"])
def test_documents_without_a_licence_are_treated_as_asked(unlicensed: str, license_name: str | None) -> None:
    options = IngestOptions.model_validate({"allowed_licenses": ("MIT",), "unlicensed": unlicensed})
    found = make_content_filter(options)(b"int a;\n", license_name)
    assert found.reason == ("" if unlicensed == "keep" else Filtered.LICENSE)
    assert found.detail == ("" if unlicensed == "keep" else "tells no licence")


def test_the_source_knows_better_than_the_file() -> None:
    content_filter = make_content_filter(IngestOptions(allowed_licenses=("MIT",)))
    assert content_filter(b"// SPDX-License-Identifier: GPL-3.0-only\n", "MIT").reason == ""
    found = content_filter(b"// SPDX-License-Identifier: MIT\n", "GPL-3.0-only")
    assert (found.reason, found.detail) == (Filtered.LICENSE, "the source says GPL-3.0-only")


@pytest.mark.parametrize("license_name", [None, " ", "NOASSERTION", "NONE"])
def test_tags_count_where_the_source_has_no_licence(license_name: str | None) -> None:
    content_filter = make_content_filter(IngestOptions(allowed_licenses=("MIT",), unlicensed="keep"))
    assert content_filter(b"// SPDX-License-Identifier: GPL-3.0-only\n", license_name).detail == "tagged GPL-3.0-only"
    assert content_filter(b"// SPDX-License-Identifier: MIT\n", license_name).reason == ""


def test_a_tag_that_is_too_long_cannot_be_read() -> None:
    content_filter = make_content_filter(IngestOptions(allowed_licenses=("MIT",), unlicensed="keep"))
    found = content_filter(b"// SPDX-License-Identifier: (MIT OR " + b"A) AND (" * 1_000 + b"MIT)", None)
    assert found.reason == Filtered.LICENSE


TERMS = [
    (["MIT"], True),
    (["MIT", None, " "], True),
    (["GPL-3.0-only"], False),
    (["MIT", "GPL-3.0-only"], False),
    (["MIT", "NOASSERTION"], False),
    (["MIT) OR (MIT", "GPL-3.0-only"], False),
    ([], True),
    (["NOASSERTION"], True),
    (None, True),
    (3, False),
    ({"name": "MIT"}, False),
    ([["MIT"]], False),
    (["MIT", *(f"A-{number}" for number in range(9_000))], False),
]


@pytest.mark.parametrize(("value", "expected"), TERMS)
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_list_of_licences_holds_together(value: Any, expected: bool, suffix: str, read: Any) -> None:
    row = {"path": "a.cpp", "content": "int a;", "terms": value}
    options = IngestOptions(license_column="terms", allowed_licenses=("MIT",), unlicensed="keep")
    (document,) = read(
        f"a.{suffix}", json.dumps(row).encode() if suffix == "jsonl" else parquet(row), options
    ).documents
    assert document.license is None
    assert (make_content_filter(options)(document.content, document.named_license).reason == "") is expected


def test_a_list_that_is_not_utf8_is_not_allowed(read: Any) -> None:
    terms = pa.array([[b"MIT\xff"]], pa.list_(pa.binary())).view(pa.list_(pa.string()))
    table = pa.table({"path": ["a.cpp"], "content": ["int a;"], "terms": terms})
    options = IngestOptions(license_column="terms", allowed_licenses=("MIT",), unlicensed="keep")
    (document,) = read("a.parquet", write(table), options).documents
    assert make_content_filter(options)(document.content, document.named_license).reason == Filtered.LICENSE


def test_an_ingest_drops_what_is_not_allowed(tmp_path: Path, out: Any, run_ingest: Any) -> None:
    rows = [
        {"content": "// SPDX-License-Identifier: GPL-3.0-only\nint a;", "terms": "NOASSERTION"},
        {"content": "int b;", "terms": ["GPL-3.0-only"]},
        {"content": "// SPDX-License-Identifier: MIT, GPL-3.0-only\nint c;"},
        {"content": "int d;", "terms": ["MIT"]},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = IngestOptions(license_column="terms", allowed_licenses=("MIT",), unlicensed="keep")
    result = run_ingest([tmp_path / "a.jsonl"], out, options)
    assert result.table().select(["content", "license"]).to_pylist() == [{"content": b"int d;", "license": None}]


def parquet(row: dict[str, Any]) -> bytes:
    return write(pa.Table.from_pylist([row]))


def write(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def test_the_tags_of_real_headers_are_read() -> None:
    headers = sorted(Path(pa.get_include()).rglob("*.h*"))
    content_filter = make_content_filter(IngestOptions(allowed_licenses=("Apache-2.0",)))
    details = {content_filter(path.read_bytes(), None).detail for path in headers}
    assert "tagged 0BSD" in details
    assert "tells no licence" in details
    assert not [detail for detail in details if "Apache-2.0" in detail]
