"""JSONL: bad lines are counted and passed over, good ones come out byte for byte."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from schemas.options import IngestOptions
from transforms.sources.batches import to_documents
from transforms.sources.document import Archive, Document
from transforms.sources.jsonl import _Lines, iter_jsonl
from transforms.sources.streams import MemberStream


def lines(*records: object) -> bytes:
    return "\n".join(item if isinstance(item, str) else json.dumps(item) for item in records).encode()


GOOD = [{"path": f"d/{index}.cpp", "content": f"int a_{index}; // \u540d\n"} for index in range(50)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz", "a.jsonl.zst"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_records_come_out_byte_for_byte(name: str, end: str, read: Any) -> None:
    data = lines(*GOOD) + end.encode()
    data = gzip.compress(data) if name.endswith("gz") else data
    data = zstandard.ZstdCompressor().compress(data) if name.endswith("zst") else data
    found = read(name, data)
    assert found.whole == {record["path"]: record["content"].encode() for record in GOOD}
    assert not found.rest


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "bad_record"),
        ("[]", "bad_record"),
        ("7", "bad_record"),
        ("[" * 100_000, "bad_record"),
        ('{"path": "a.cpp"}', "missing_column"),
        ('{"path": "a.cpp", "content": 7}', "bad_content"),
        ('{"path": "a.cpp", "content": null}', "bad_content"),
        ('{"path": "a.cpp", "content": "\\ud800"}', "bad_content"),
        ('{"\\ud800": 1}', "missing_column"),
        ('{"path": "a.txt", "content": "x"}', "extension"),
        ('{"path": "a.txt"}', "extension"),
        ('{"n": ' + "9" * 5_000 + "}", "bad_record"),
    ],
)
def test_a_line_without_a_document_has_a_reason_and_costs_no_other(line: str, reason: str, read: Any) -> None:
    found = read("a.jsonl", lines(GOOD[0], line, GOOD[1]))
    assert len(found.whole) == 2
    assert [entry[1] for entry in found.rest] == [reason]


def test_blank_lines_are_no_documents(read: Any) -> None:
    assert read("a.jsonl", b"\n \n\t\r\n").documents == []


def test_a_line_that_is_not_utf8_is_a_bad_record(read: Any) -> None:
    assert read("a.jsonl", b'{"content": "\xff"}\n').rest == [("a.jsonl/line-1", "bad_record", 17)]


def test_a_byte_order_mark_is_no_part_of_the_first_record(read: Any) -> None:
    assert len(read("a.jsonl", b"\xef\xbb\xbf" + lines(GOOD[0])).whole) == 1


def test_a_cut_line_is_dead_with_its_bytes(read: Any) -> None:
    data = gzip.compress(lines(*GOOD))
    found = read("a.jsonl.gz", data[:-20])
    assert len(found.whole) < 50
    assert [reason for _, reason, _ in found.rest] == ["truncated"]
    assert found.rest[0][2] > 0


def test_a_line_too_long_for_any_document_is_counted_and_not_held(read: Any) -> None:
    options = IngestOptions(max_document_bytes=100)
    data = lines(
        GOOD[0], {"path": "x.cpp", "content": "y" * 3_000_000}, {"path": "z.cpp", "content": "y" * 101}, GOOD[1]
    )
    assert len(read("a.jsonl", data, options).whole) == 3  # the content filter has the last word on the third
    assert [entry[1:] for entry in read("b.jsonl", data, options).rest] == [("size", len(data.splitlines()[1]) + 1)]


def test_columns_are_named_by_the_options(read: Any) -> None:
    options = IngestOptions(content_column="text", path_column="file", project_column="repo", license_column="terms")
    (document,) = read(
        "a.jsonl", lines({"file": "x.cpp", "text": "1", "repo": "boost", "terms": "BSL-1.0"}), options
    ).documents
    assert (document.project, document.path, document.license) == ("boost", "a.jsonl/x.cpp", "BSL-1.0")


def test_a_record_without_a_path_is_named_by_its_line_and_needs_no_extension(read: Any) -> None:
    (document,) = read("a.jsonl", b"\n" + lines({"content": "1"})).documents
    assert (document.project, document.path, document.content) == ("a", "a.jsonl/line-2", b"1")


@pytest.mark.fuzz
@given(st.binary(max_size=400))
def test_any_bytes_end_in_documents_or_a_reason(data: bytes) -> None:
    assert all(document.content is not None or document.reason for document in read_bytes(data))


@pytest.mark.fuzz
@given(st.lists(st.text(max_size=30), max_size=9), st.booleans())
def test_any_text_comes_back(texts: list[str], ascii_only: bool) -> None:
    data = "\n".join(json.dumps({"content": text}, ensure_ascii=ascii_only) for text in texts).encode("utf-8")
    assert [document.content for document in read_bytes(data)] == [text.encode() for text in texts]


def read_bytes(data: bytes, options: IngestOptions | None = None) -> list[Document]:
    archive = Archive("a.jsonl", len(data), "a", options or IngestOptions())
    rows = iter_jsonl(archive, MemberStream(archive, lambda: io.BytesIO(data), ""))
    return [entry for found in rows for entry in ([found] if isinstance(found, Document) else to_documents(found))]


def one_by_one(data: bytes, options: IngestOptions) -> Iterator[Document]:
    """Yield the documents of a file as the parser of the standard library alone reads them, line by line."""
    lines = _Lines(Archive("a.jsonl", len(data), "a", options))
    for line in io.BytesIO(data):
        name = lines.next_name()
        if line.strip():
            yield lines._read_line(name, line)


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


COLUMNS = ["content", "path", "repo", "license"]
ODD_STRINGS = st.sampled_from(
    [
        r"\ud83d\ude00",
        r"\ud83d",
        r"\udc00\ud83d",
        r"\ud83d\n",
        r"\/\b\f",
        r"\u0000",
        "\\x",
        "\t",
        "\0",
        "\x7f",
        "\u2028",
        "a/../b.cpp",
        "..",
    ]
)
STRINGS = st.one_of(st.text(max_size=6).map(lambda text: json.dumps(text)[1:-1]), st.text(max_size=6), ODD_STRINGS)
KEYS = st.one_of(st.sampled_from(COLUMNS), st.sampled_from(COLUMNS).map(_escaped), STRINGS).map('"{}"'.format)
NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from(["01", "1.", "-", "1e999", "-0", "1E+2", "9" * 639, "9" * 640, "9" * 4301]),
).map(str)
VALUES = st.recursive(
    st.one_of(
        STRINGS.map('"{}"'.format), NUMBERS, st.sampled_from(["null", "true", "fals", "", "[" * 999 + "]" * 999])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda values: f"[{','.join(values)}]"),
        st.tuples(KEYS, inner).map(lambda pair: f"{{{pair[0]}:{pair[1]}}}"),
    ),
    max_leaves=3,
)
SPACE = st.sampled_from(["", "", "", " ", "\t\r", "\x0b", "\ufeff", "\xa0"])
OBJECTS = st.tuples(
    SPACE, st.lists(st.tuples(KEYS, SPACE, VALUES).map("{0[0]}{0[1]}:{0[2]}".format), max_size=4), SPACE
).map(lambda parts: f"{parts[0]}{{{','.join(parts[1])}}}{parts[2]}")
TEXTS = st.one_of(st.text(max_size=9), st.sampled_from(["", "\0", "..", "a/../b.cpp", "b.CPP", "c.txt", "%41.h"]))
GOOD_LINES = st.fixed_dictionaries({"content": TEXTS}, optional=dict.fromkeys(COLUMNS[1:], TEXTS)).map(json.dumps)
HOSTILE = st.one_of(
    st.one_of(GOOD_LINES, OBJECTS, VALUES).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=9),
)


@pytest.mark.fuzz
@given(
    st.lists(HOSTILE, max_size=12),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.fixed_dictionaries(
        {},
        optional={
            "project_column": st.just("repo"),
            "license_column": st.sampled_from(["license", "content"]),
            "path_column": st.just("content"),
            "sample": st.just(0.5),
        },
    ),
)
def test_lines_that_are_read_in_batches_are_those_that_are_read_one_by_one(
    hostile: list[bytes], end: bytes, changes: dict[str, Any]
) -> None:
    data, options = end.join([b'{"content": ""}', *hostile]), IngestOptions(**changes)
    assert read_bytes(data, options) == list(one_by_one(data, options))


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (["id", "text", "source"], "text"),
        (["id", "body"], "body"),
        (["path", "text"], None),
        (["body", "source"], None),
        (["content", "text"], "content"),
    ],
)
def test_the_text_is_found_where_only_one_key_can_be_it(
    keys: list[str], found: str | None, read: Any, caplog: Any
) -> None:
    caplog.set_level("INFO")
    record = {key: 7 if key == "id" else f"a {key}.cpp" for key in keys}
    documents = read("a.jsonl", lines(record))
    if found is None:
        assert [entry[1] for entry in documents.rest] == ["missing_column"]
    else:
        assert list(documents.whole.values()) == [f"a {found}.cpp".encode()]
    assert (f"the text is in '{found}'" in caplog.text) == (found in ("text", "body"))


@pytest.mark.parametrize("more", [[], [{"id": "c"}] * 3_000])
@pytest.mark.parametrize("key", ["content", "text"])
def test_what_the_first_object_has_instead_of_the_text_is_not_taken_for_it(
    key: str, more: list[dict[str, str]], read: Any
) -> None:
    found = read("a.jsonl", lines({"id": "a"}, *more, {"id": "b", key: "int b;"}, {"id": "c"}))
    assert [text for text in found.whole.values() if text not in (b"a", b"c")] == []
    assert [(path, reason) for path, reason, _ in found.rest] == [(f"a.jsonl/line-{len(more) + 2}", "bad_record")]


def test_a_text_that_is_null_at_first_is_still_the_text(read: Any) -> None:
    found = read("a.jsonl", lines({"id": "a", "text": None}, {"id": "b", "text": "int b;"}))
    assert list(found.whole.values()) == [b"int b;"]
    assert [reason for _, reason, _ in found.rest] == ["bad_content"]


def test_another_key_is_no_rival_where_it_is_named_or_within_a_text(read: Any) -> None:
    records = [{"text": "int a;"}, {"text": '{"content": 1}', "more": {"content": 2}}]
    assert list(read("a.jsonl", lines(*records)).whole.values()) == [b"int a;", b'{"content": 1}']
    named = read("a.jsonl", lines({"text": "a"}, {"text": "b", "content": "c"}), IngestOptions(content_column="text"))
    assert list(named.whole.values()) == [b"a", b"b"]


def test_lines_of_nothing_end_as_rows_do(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transforms.sources.document._ROWS_FLOOR", 1_000)
    data = gzip.compress(b"{}\n" * 5_000 + b"\n" * 500_000)
    found = read("a.jsonl.gz", data)
    assert found.rest[-1] == ("a.jsonl.gz", "expansion", 0)
    assert len(found.rest) == max(1_000, len(data)) + 1
    assert len(read("b.jsonl.gz", data, IngestOptions(max_rows_per_byte=1_000)).rest) == 5_000


NAMING = {"path_column": "file", "project_column": "repo", "license_column": "terms"}


@pytest.mark.parametrize(
    ("named", "missing"),
    [
        ({}, ["file", "repo", "terms"]),
        ({"file": None, "repo": 7, "terms": {}}, ["file", "repo", "terms"]),
        ({"file": "a.cpp", "terms": ["MIT"]}, ["repo"]),
        ({"file": "a.cpp", "repo": "boost", "terms": "MIT"}, []),
    ],
)
def test_a_key_that_an_option_names_and_no_line_has_is_named(
    named: dict[str, Any], missing: list[str], read: Any, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    monkeypatch.setattr("transforms.sources.document._warned", set())
    records = [{"content": "a"}] * 3_000
    for _ in range(2):
        read("a.jsonl", lines(*records, {"content": "b", **named}), IngestOptions(**NAMING))
    assert [message.split("'")[1] for message in caplog.messages] == missing
