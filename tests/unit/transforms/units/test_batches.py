from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transforms.units.batches import MAX_ELEMENT_BYTES, bounded_batches, read_columns, read_row_groups, split_lists


@pytest.mark.parametrize(
    "lengths",
    [[], [0], [1000] * 40_000, [10] * 100_000 + [1 << 20] * 40],
    ids=["no rows", "one row", "even rows", "large rows at the end"],
)
def test_no_batch_that_is_shuffled_is_larger_than_the_bound(lengths):
    table = pa.table({"word": pa.array([b"x" * length for length in lengths], pa.binary()), "row": range(len(lengths))})
    batches = list(bounded_batches(table))
    assert all(0 < batch.nbytes <= MAX_ELEMENT_BYTES for batch in batches)
    assert pa.Table.from_batches(batches, table.schema).equals(table)


def test_a_row_above_the_bound_stays_whole():
    table = pa.table({"content": pa.array([b"a", b"x" * (MAX_ELEMENT_BYTES + 1), b"b"], pa.large_binary())})
    assert pa.Table.from_batches(bounded_batches(table), table.schema).equals(table)


def test_rows_of_several_chunks_become_one_batch():
    table = pa.concat_tables([pa.table({"row": [1, 2]}), pa.table({"row": [3]})])
    assert [batch.to_pydict() for batch in bounded_batches(table)] == [{"row": [1, 2, 3]}]


def test_row_groups_are_read_in_order_with_the_columns_that_are_named(tmp_path):
    pq.write_table(pa.table({"row": range(5), "other": range(5)}), tmp_path / "file", row_group_size=2)
    with pq.ParquetFile(tmp_path / "file") as file:
        assert [batch.to_pydict() for batch in read_row_groups(file, ["row"])] == [
            {"row": [0, 1]},
            {"row": [2, 3]},
            {"row": [4]},
        ]
        assert next(read_row_groups(file)).schema.names == ["row", "other"]


SCHEMA = pa.schema([pa.field("path", pa.string(), nullable=False), pa.field("note", pa.string())])
ROWS = pa.table({"other": [1, 2], "note": ["n", None], "path": ["a", "b"]})


def read(rows, tmp_path):
    pq.write_table(rows, tmp_path / "file")
    with pq.ParquetFile(tmp_path / "file") as file:
        return pa.Table.from_batches(read_columns(file, SCHEMA))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_columns_are_read_with_the_types_of_their_schema(kind, tmp_path):
    found = read(ROWS.set_column(2, "path", ROWS["path"].cast(kind)), tmp_path)
    assert found.schema == SCHEMA
    assert found.to_pydict() == {"path": ["a", "b"], "note": ["n", None]}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS.drop_columns(["path"]), "0 columns path"),
        (ROWS.append_column("note", ROWS["note"]), "2 columns note"),
        (ROWS.set_column(2, "path", ROWS["note"]), "path has nulls"),
        (ROWS.set_column(2, "path", pa.array([b"\xff", b""])), "(?i)utf8"),
        (ROWS.set_column(2, "path", pa.array([["a"], []])), "cast"),
    ],
)
def test_columns_of_another_form_are_damage(rows, said, tmp_path):
    with pytest.raises(pa.ArrowException, match=said):
        read(rows, tmp_path)


@pytest.mark.parametrize("start", range(4))
def test_lists_are_split_on_slices_too(start):
    lists = [[1, 2], [], [3]]
    column = pa.array(lists, pa.list_(pa.uint16())).slice(start)
    assert [values.tolist() for values in split_lists(column)] == lists[start:]
