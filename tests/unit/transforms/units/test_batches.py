from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transforms.units.batches import MAX_ELEMENT_BYTES, bounded_batches, read_row_groups, split_lists


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


@pytest.mark.parametrize("start", range(4))
def test_lists_are_split_on_slices_too(start):
    lists = [[1, 2], [], [3]]
    column = pa.array(lists, pa.list_(pa.uint16())).slice(start)
    assert [values.tolist() for values in split_lists(column)] == lists[start:]
