"""Partial counts merge to the same totals however the documents were cut into shards."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables import MORPHEMES, NAMESPACES, TERMS, WORDS
from transforms.scan import (
    count_kinds,
    empty_counts,
    merge_counts,
    merged_path,
    nest_statistics,
)

COUNTS = st.dictionaries(st.binary(max_size=4), st.integers(1, 2**40), max_size=8)


def words(counts):
    return pa.record_batch(
        {"word": pa.array(list(counts), pa.binary()), "count": pa.array(list(counts.values()), pa.uint64())}
    )


@given(st.lists(COUNTS, min_size=1, max_size=4))
def test_word_counts_add_and_come_out_sorted(parts):
    merged = merge_counts("words-000", map(words, parts))
    total = sum((Counter(part) for part in parts), Counter())
    assert merged.schema == WORDS
    assert list(zip(*merged.to_pydict().values(), strict=True)) == sorted(total.items())


def test_counts_beyond_32_bits_do_not_overflow():
    merged = merge_counts("words-000", [words({b"x": 2**63}), words({b"x": 2**62})])
    assert merged.to_pydict()["count"] == [2**63 + 2**62]


def test_projects_are_counted_once_however_many_shards_they_span():
    schema = empty_counts("terms").schema
    rows = [("dim3", "cuda", "a", 3, 2), ("dim3", "cuda", "b", 1, 1), ("SELECT", "sql", "a", 1, 1)]
    parts = [
        pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in part], schema=schema)
        for part in (rows, rows[:1], [])
    ]
    merged = merge_counts("terms", parts)
    assert merged.schema == TERMS
    assert [tuple(row.values()) for row in merged.to_pylist()] == [
        ("SELECT", "sql", 1, 1, 1),
        ("dim3", "cuda", 7, 5, 2),
    ]


@pytest.mark.parametrize(
    ("kind", "schema"), [("terms", TERMS), ("morphemes", MORPHEMES), ("namespaces", NAMESPACES), ("words-003", WORDS)]
)
def test_nothing_counted_still_gives_a_table(kind, schema):
    merged = merge_counts(kind, [empty_counts(kind)])
    assert merged.schema == schema
    assert merged.num_rows == 0


def test_every_kind_has_a_file_of_its_own():
    kinds = count_kinds(16)
    assert len({merged_path(kind) for kind in kinds}) == len(kinds) == 20


def test_statistics_nest_by_their_dots():
    table = pa.table({"name": ["bytes.code", "bytes.comment", "documents"], "value": [1, 2, 3]})
    assert nest_statistics(table) == {"bytes": {"code": 1, "comment": 2}, "documents": 3}
