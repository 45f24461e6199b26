"""Sums of row digests are those of a Python twin written from the format's description."""

import hashlib
import json
import struct
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

Row = tuple[str, str, str, int, list[int], list[int]]

names = st.text(st.characters(codec="utf-8"), max_size=12)
rows = st.lists(
    st.tuples(
        st.binary(max_size=4).map(lambda data: hashlib.sha256(data).hexdigest()),
        names,
        names,
        st.integers(0, 2**64 - 1),
        st.lists(st.integers(0, 65535), max_size=9),
        st.lists(st.integers(0, 65535), max_size=4),
    ),
    max_size=8,
)


def row_digest(doc_id: str, project: str, path: str, *rest: bytes) -> int:
    """Return a row's digest as a number."""
    parts = [bytes.fromhex(doc_id)]
    for name in (project, path):
        parts += [struct.pack("<I", len(name.encode())), name.encode()]
    return int.from_bytes(hashlib.sha256(b"".join([*parts, *rest])).digest(), "big")


def dataset_digest(row: Row) -> int:
    """Return the digest of a row of the dataset as a number."""
    doc_id, project, path, num_bytes, tokens, platforms = row
    head = struct.pack("<QI", num_bytes, len(tokens))
    ids = struct.pack(f"<{len(tokens)}I", *tokens)
    return row_digest(doc_id, project, path, head, ids, struct.pack(f"<I{len(platforms)}H", len(platforms), *platforms))


def as_bytes(total: int) -> bytes:
    """Return a sum of digests as the format has it."""
    return (total % 2**256).to_bytes(32, "big")


def columns(table: list[Row], ids: pa.DataType, strings: pa.DataType, lists: bool = True) -> list["pa.Array[Any]"]:
    """Return the columns of a dataset."""
    list_of = pa.list_ if lists else pa.large_list
    types = [strings, strings, strings, pa.uint64(), list_of(ids), list_of(pa.uint16())]
    return [pa.array([row[index] for row in table], kind) for index, kind in enumerate(types)]


@given(rows)
def test_corpus_sums_are_those_of_the_twin(table: list[Row]) -> None:
    expected = as_bytes(sum(row_digest(*row[:3]) for row in table))
    for strings in (pa.string(), pa.large_string()):
        assert cppmill_core.corpus_digest_sum(*columns(table, pa.uint16(), strings)[:3]) == expected


@given(rows)
def test_dataset_sums_are_those_of_the_twin_whatever_the_type_of_ids(table: list[Row]) -> None:
    expected = as_bytes(sum(map(dataset_digest, table)))
    for ids in (pa.uint16(), pa.uint32()):
        assert cppmill_core.dataset_digest_sum(*columns(table, ids, pa.string())) == expected
    assert cppmill_core.dataset_digest_sum(*columns(table, pa.uint32(), pa.large_string(), lists=False)) == expected


@given(rows, st.data())
def test_sums_of_slices_add_up(table: list[Row], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(table)))
    whole = columns(table, pa.uint16(), pa.string())
    parts = [[column.slice(0, cut) for column in whole], [column.slice(cut) for column in whole]]
    sums = [int.from_bytes(cppmill_core.dataset_digest_sum(*part), "big") for part in parts]
    assert as_bytes(sum(sums)) == cppmill_core.dataset_digest_sum(*whole)


@pytest.mark.parametrize(
    ("column", "wrong", "message"),
    [
        (0, pa.array(["ab"]), "doc_id.*row 0"),
        (0, pa.array(["A" * 64]), "doc_id.*row 0"),
        (1, pa.array([None], pa.string()), "project.*row 0"),
        (2, pa.array(["a", "b"]), "path has 2 rows"),
        (3, pa.array([1], pa.int64()), "num_bytes.*Int64"),
        (4, pa.array([1], pa.uint16()), "token_ids.*list"),
        (4, pa.array([[1, None]], pa.list_(pa.uint16())), "token_ids.*null"),
        (5, pa.array([[70000]], pa.list_(pa.uint32())), "platform_ids.*70000"),
    ],
)
def test_a_wrong_column_is_named(column: int, wrong: "pa.Array[Any]", message: str) -> None:
    arguments = columns([("0" * 64, "p", "q", 1, [1], [2])], pa.uint16(), pa.string())
    arguments[column] = wrong
    with pytest.raises(cppmill_core.InvalidInputError, match=message):
        cppmill_core.dataset_digest_sum(*arguments)


def test_threads_do_not_change_digests() -> None:
    table: list[Row] = [
        (hashlib.sha256(bytes([row])).hexdigest(), "p", str(row), row, list(range(30_000)), [row]) for row in range(60)
    ]
    for ids in (pa.uint16(), pa.uint32()):
        data = columns(table, ids, pa.string())
        assert cppmill_core.dataset_digest_sum(*data, 3) == cppmill_core.dataset_digest_sum(*data)
    assert cppmill_core.corpus_digest_sum(*data[:3], 3) == cppmill_core.corpus_digest_sum(*data[:3])


table_cells = st.lists(st.tuples(st.none() | names, st.integers(0, 2**64 - 1)), max_size=8)


@given(table_cells)
def test_rows_as_json_are_those_of_the_standard_library(table: list[tuple[str | None, int]]) -> None:
    texts, numbers = [text for text, _ in table], [number for _, number in table]
    batch = pa.record_batch({"text": pa.array(texts, pa.string()), "number": pa.array(numbers, pa.uint64())})
    assert cppmill_core.json_rows(batch) == "".join(json.dumps(row) for row in table).encode("ascii")


def test_rows_of_other_types_are_refused_by_name() -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match='column "x" is Int8; give string or uint64'):
        cppmill_core.json_rows(pa.record_batch({"x": pa.array([1], pa.int8())}))
