"""Tables of counts add up: by key, with distinct projects."""

import pyarrow as pa
import pytest

from schemas.tables import MORPHEMES, NAMESPACES, TERMS
from transforms.scan.kinds import Family
from transforms.scan.tables import merge_counts, nest_statistics, partial_schema


@pytest.mark.parametrize("batch_rows", [1, 10])
def test_projects_are_counted_once_however_many_shards_they_span(tmp_path, batch_rows):
    schema = partial_schema(Family.TERMS)
    rows = [("SELECT", "sql", "a", 1, 1), ("dim3", "cuda", "a", 3, 2), ("dim3", "cuda", "b", 1, 1)]
    parts = [
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in part], schema=schema)
        for part in (rows, rows[1:2], [])
    ]
    merged = merge_counts(Family.TERMS, [iter(part.to_batches(batch_rows)) for part in parts], tmp_path)
    assert merged.schema == TERMS
    assert [tuple(row.values()) for row in merged.to_pylist()] == [
        ("SELECT", "sql", 1, 1, 1),
        ("dim3", "cuda", 7, 5, 2),
    ]


@pytest.mark.parametrize(
    ("family", "schema"), [(Family.TERMS, TERMS), (Family.MORPHEMES, MORPHEMES), (Family.NAMESPACES, NAMESPACES)]
)
@pytest.mark.parametrize("shards", [0, 1])
def test_nothing_counted_still_gives_a_table(tmp_path, family, schema, shards):
    merged = merge_counts(family, [iter([]) for _ in range(shards)], tmp_path)
    assert merged.schema == schema
    assert merged.num_rows == 0


def test_statistics_nest_by_their_dots():
    table = pa.table({"name": ["bytes.code", "bytes.comment", "documents"], "value": [1, 2, 3]})
    assert nest_statistics(table) == {"bytes": {"code": 1, "comment": 2}, "documents": 3}
