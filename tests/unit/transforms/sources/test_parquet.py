"""Parquet: rows come out byte for byte from any text or binary column; damage costs its own row group."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.options import IngestOptions
from schemas.reasons import REASONS, Column
from tests.fuzzing import examples
from transforms.sources.document import Archive
from transforms.sources.parquet import iter_parquet
from transforms.storage.column_encodings import read_chunks

CONTENTS = [b"int a_%d;\n" % index * 30 for index in range(2_500)]
PATHS = [f"d/{index}.cpp" for index in range(2_500)]


def parquet(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


KINDS = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dictionary", [False, True])
def test_rows_come_out_byte_for_byte(kind: pa.DataType, dictionary: bool, read: Any) -> None:
    column = pa.array(CONTENTS, pa.binary()).cast(kind)
    data = parquet(pa.table({"path": PATHS, "content": column}), row_group_size=1_000, use_dictionary=dictionary)
    found = read("a.parquet", data)
    assert list(found.whole.values()) == CONTENTS
    assert list(found.whole) == PATHS
    assert not found.rest


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_every_encoding_of_text_is_read(encoding: str, read: Any) -> None:
    table = pa.table({"path": PATHS, "content": pa.array(CONTENTS, pa.binary())})
    found = read("a.parquet", parquet(table, use_dictionary=False, column_encoding=encoding))
    assert dict(zip(PATHS, CONTENTS, strict=True)) == found.whole
    assert not found.rest


def test_a_dictionary_column_is_text_too(read: Any) -> None:
    column = pa.array(["int a;", "int b;", "int a;"]).dictionary_encode()
    assert list(read("a.parquet", parquet(pa.table({"content": column}))).whole.values()) == [
        b"int a;",
        b"int b;",
        b"int a;",
    ]


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("name", ["path", "content", "project", "license", "licenses"])
def test_a_dictionary_column_is_read_in_encodings_in_which_arrow_reads_none(
    encoding: str, name: str, read: Any
) -> None:
    names = pa.array(["MIT"] * len(PATHS))
    table = pa.table({"path": PATHS, "content": CONTENTS, "project": names, "license": names})
    encoded = table.column(name.rstrip("s")).cast(pa.binary() if name == "content" else pa.string())
    column = encoded.combine_chunks().dictionary_encode()
    options: dict[str, Any] = {"project_column": "project", "license_column": name.replace("content", "license")}
    if name == "licenses":
        column = pa.ListArray.from_arrays(list(range(len(PATHS) + 1)), column)
        options["allowed_licenses"] = ("MIT",)
    table = table.drop_columns(name if name in table.column_names else []).append_column(name, column)
    leaf = f"{name}.list.element" if name == "licenses" else name
    data = parquet(table, use_dictionary=False, column_encoding={leaf: encoding})
    assert dict(zip(PATHS, CONTENTS, strict=True)) == read("a.parquet", data, IngestOptions(**options)).whole


def test_bytes_that_are_not_utf8_come_back_even_from_a_text_column(read: Any) -> None:
    raw = pa.array([b"int \xff;"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    assert list(read("a.parquet", parquet(pa.table({"content": text}))).whole.values()) == [b"int \xff;"]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pa.table({"body": ["int a;"], "title": ["a"]}), "missing_column"),
        (pa.table({"content": [1, 2]}), "bad_content"),
        (pa.table({"content": [["a"], ["b"]]}), "bad_content"),
    ],
)
def test_a_file_without_usable_text_is_one_dead_document_of_its_size(table: pa.Table, reason: str, read: Any) -> None:
    data = parquet(table)
    assert read("a.parquet", data).rest == [("a.parquet", reason, len(data))]


def test_a_text_that_is_null_throughout_is_still_the_text(read: Any) -> None:
    table = pa.table({"id": ["a"], "text": pa.nulls(1)})
    assert [reason for _, reason, _ in read("a.parquet", parquet(table)).rest] == ["bad_content"]


@pytest.mark.parametrize("name", ["text", "body"])
def test_the_only_column_that_can_be_the_text_is_taken(name: str, read: Any) -> None:
    table = pa.table({"id": [1], name: ["int a;"], **({"title": ["a"]} if name == "text" else {})})
    assert read("a.parquet", parquet(table)).whole == {"row-1": b"int a;"}


def test_null_text_is_bad_content_and_costs_no_other_row(read: Any) -> None:
    found = read("a.parquet", parquet(pa.table({"content": ["a", None, "b"], "path": ["1.h", "2.h", None]})))
    assert found.whole == {"1.h": b"a", "row-3": b"b"}
    assert found.rest == [("a.parquet/2.h", "bad_content", 0)]


def test_a_column_may_have_a_dot_in_its_name(read: Any) -> None:
    column = pa.array(["int a;", "int b;"]).dictionary_encode()
    data = parquet(pa.table({"my.text": column}), use_dictionary=False, column_encoding={"my.text": "DELTA_BYTE_ARRAY"})
    found = read("a.parquet", data, IngestOptions(content_column="my.text"))
    assert list(found.whole.values()) == [b"int a;", b"int b;"]


def test_text_of_a_type_that_extends_text_is_text(read: Any) -> None:
    table = pa.table({"content": pa.array(['{"a": 1}'], pa.json_()), "path": ["a.cpp"]})
    assert read("a.parquet", parquet(table)).whole == {"a.cpp": b'{"a": 1}'}


@pytest.mark.parametrize("options", [{}, {"write_page_checksum": True}, {"row_group_size": 10}])
def test_every_row_has_its_own_text_or_is_dead_whatever_bit_of_a_page_is_flipped(
    options: dict[str, Any], read: Any
) -> None:
    rows = {f"{number}.cpp": b"int v%d;\n" % number for number in range(20)}
    data = parquet(pa.table({"content": list(rows.values()), "path": list(rows)}), compression="none", **options)
    chunks = read_chunks(io.BytesIO(data), range(2))
    for place in sorted({chunk.place + at for group in chunks for chunk in group.values() for at in range(24)}):
        for bit in (1, 2, 4, 8):
            found = read("a.parquet", data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
            assert len(found.documents) >= len(rows) or found.rest == [("a.parquet", "corrupt", len(data))], (
                place,
                bit,
            )
            assert "write_page_checksum" not in options or found.whole.items() <= rows.items()


def test_rows_that_the_footer_does_not_count_are_dead() -> None:
    data = parquet(pa.table({"content": ["int a;"] * 50}), use_dictionary=False, compression="none")
    place = data.rfind(b"\x16\x64")  # the last 50 of the footer is the rows of its row group
    data = data[:place] + b"\x16\x24" + data[place + 2 :]
    archive = Archive("a.parquet", len(data), "a", IngestOptions())
    found = list(iter_parquet(archive, io.BufferedReader(io.BytesIO(data))))  # as a file of this machine
    assert [document.reason for document in found] == ["corrupt"] * 50
    assert "its pages of 'content' have 50 rows and not 18" in found[0].detail


def test_a_damaged_row_group_costs_its_rows_and_no_others(read: Any) -> None:
    table = pa.table({"content": CONTENTS})
    data = bytearray(parquet(table, row_group_size=500, use_dictionary=False, compression="zstd"))
    place = pq.read_metadata(io.BytesIO(bytes(data))).row_group(2).column(0).data_page_offset
    data[place + 20 : place + 400] = b"\xa5" * 380
    found = read("a.parquet", bytes(data))
    assert list(found.whole.values()) == CONTENTS[:1_000] + CONTENTS[1_500:]
    assert [(reason, size) for _, reason, size in found.rest] == [("corrupt", 0)] * 500


def test_a_flipped_byte_that_a_page_checksum_sees_is_damage(read: Any) -> None:
    data = bytearray(
        parquet(pa.table({"content": CONTENTS}), use_dictionary=False, compression="none", write_page_checksum=True)
    )
    data[data.find(b"int a_77;")] ^= 1
    assert {reason for _, reason, _ in read("a.parquet", bytes(data)).rest} == {"corrupt"}


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_cut_file_is_one_dead_document_of_its_size(share: float, read: Any) -> None:
    data = parquet(pa.table({"content": CONTENTS}))
    data = data[: int(len(data) * share)]
    reason = "corrupt" if data else "not_an_archive"
    assert read("a.parquet", data).rest == [("a.parquet", reason, len(data))]


@pytest.mark.parametrize("last_rows", [0, 3, 300])
def test_files_joined_into_one_are_one_dead_document_of_their_size(last_rows: int, read: Any) -> None:
    tables = [pa.table({"path": PATHS[:rows], "content": CONTENTS[:rows], "n": range(rows)}) for rows in (3, last_rows)]
    data = b"".join(map(parquet, tables))
    found = read("a.parquet", data)
    assert not found.whole
    assert found.rest == [("a.parquet", "corrupt", len(data))]


def test_what_is_not_parquet_is_not_an_archive(read: Any) -> None:
    assert read("a.parquet", b"x" * 100).rest == [("a.parquet", "not_an_archive", 100)]


def test_columns_are_named_by_the_options(read: Any) -> None:
    options = IngestOptions(content_column="text", path_column="file", project_column="repo", license_column="terms")
    table = pa.table(
        {"file": ["x.cpp", "y.txt"], "text": ["1", "2"], "repo": ["boost", "boost"], "terms": ["BSL-1.0", None]}
    )
    first, second = read("a.parquet", parquet(table), options).documents
    assert (first.project, first.path, first.license) == ("boost", "a.parquet/x.cpp", "BSL-1.0")
    assert (second.path, second.reason, second.num_bytes) == ("a.parquet/y.txt", "extension", 1)


@pytest.mark.parametrize("encoding", [None, "DELTA_BYTE_ARRAY"])
def test_one_long_value_of_many_rows_is_held_once(
    encoding: str | None, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.sources.document._ARCHIVE_FLOOR_BYTES", 200 << 20)
    value, rows = b"x" * (4 << 20), 100_000 if encoding is None else 64
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([value], pa.binary()))
    options: dict[str, Any] = {}
    if encoding is not None:  # with it, a value that begins as the one before takes no more bytes
        column = column.cast(pa.large_binary())
        options = {"use_dictionary": False, "column_encoding": encoding, "compression": "zstd"}
    data = parquet(pa.table({"content": column}), **options)
    pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        found = read("a.parquet", data, IngestOptions(max_expansion=2))
    finally:
        pa.set_memory_pool(usual)
    assert 4 << 20 < (pool.max_memory() or 0) < 64 << 20
    assert found.rest == [("a.parquet", "expansion", 0)]
    assert len(found.whole) == 49


@pytest.mark.parametrize("column", ["content", "path"])
def test_a_page_that_expands_beyond_measure_is_not_held(
    column: str, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.sources.document._ARCHIVE_FLOOR_BYTES", 1 << 20)
    small = pa.table({"path": ["a.cpp"], "content": [b"int a;"]})
    place = small.schema.names.index(column)
    large = pa.array(["x" * (64 << 20)]).cast(small.schema.field(column).type)
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, small.schema, compression="zstd", use_dictionary=False) as writer:
        writer.write_table(small)
        writer.write_table(small.set_column(place, small.schema.field(column), large))
    pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        found = read("a.parquet", buffer.getvalue(), IngestOptions(max_expansion=2))
    finally:
        pa.set_memory_pool(usual)
    assert (pool.max_memory() or 0) < 32 << 20
    assert found.whole == {"a.cpp": b"int a;"}
    assert found.rest == [("a.parquet", "expansion", 0)]


def test_rows_of_nothing_end_too(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transforms.sources.document._ARCHIVE_FLOOR_BYTES", 1 << 20)
    data = parquet(pa.table({"content": pa.nulls(100_000, pa.binary())}))
    found = read("a.parquet", data, IngestOptions(max_expansion=2))
    assert found.rest[-1] == ("a.parquet", "expansion", 0)
    assert len(found.rest) < 20_000


def test_more_rows_than_bytes_are_no_honest_table(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transforms.sources.document._ROWS_FLOOR", 1_000)
    data = parquet(pa.table({"content": pa.nulls(100_000, pa.binary())}))
    rows = max(len(data), 1_000)
    found = read("a.parquet", data)
    assert found.rest[-1] == ("a.parquet", "expansion", 0)
    assert len(found.rest) == rows + 1


@pytest.mark.parametrize("place", ["schema", "row group"])
def test_a_column_name_that_is_not_text_is_damage_only_where_it_is_needed(place: str, read: Any) -> None:
    data = bytearray(parquet(pa.table({"content": CONTENTS}), store_schema=False))
    schema, row_group = data.find(b"content"), data.rfind(b"content")
    assert 0 < schema < row_group
    data[schema if place == "schema" else row_group] = 0x80
    found = read("a.parquet", bytes(data))
    assert [reason for _, reason, _ in found.rest] == (["corrupt"] if place == "schema" else [])
    assert len(found.whole) == (0 if place == "schema" else len(CONTENTS))


def test_a_footer_that_contradicts_itself_about_a_column_is_damage(read: Any) -> None:
    data = bytearray(parquet(pa.table({"content": CONTENTS[:50]}), row_group_size=20))
    place = data.find(b"\x25\x02\x18\x07content") + 1  # the column is optional
    assert place > 0
    data[place] = 0  # it is required, but there are counts of nulls
    assert [reason for _, reason, _ in read("a.parquet", bytes(data)).rest] == ["corrupt"] * 50


WHOLE = parquet(pa.table({"path": PATHS[:50], "content": pa.array(CONTENTS[:50], pa.binary())}), row_group_size=20)
CHANGES = st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=5)


@pytest.mark.fuzz
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES)
def test_any_damage_ends_in_documents_and_reasons(read: Any, changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for place, value in changes:
        data[place] = value
    found = read("a.parquet", bytes(data))
    assert {reason for _, reason, _ in found.rest} <= set(REASONS[Column.DEAD]) | set(REASONS[Column.FILTERED])


def test_a_column_that_an_option_names_and_that_is_not_there_is_named(
    read: Any, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    monkeypatch.setattr("transforms.sources.document._warned", set())
    options = IngestOptions(path_column="file", project_column="repo", license_column="terms")
    table = pa.table({"content": ["a"], "repo": [7], "terms": [["MIT"]]})
    read("a.parquet", parquet(table), options)
    assert [message.split("'")[1] for message in caplog.messages] == ["file", "repo"]
    read("b.parquet", parquet(pa.table({"content": ["a"], "path": ["a.cpp"]})))
    assert len(caplog.messages) == 2
