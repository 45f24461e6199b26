from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cppmill_core import CorruptDataError, InvalidInputError
from cppmill_core.batches import Ragged, decode_columns, digest_columns, gather_rows, texts
from hypothesis import given
from hypothesis import strategies as st

COLUMNS = [
    pa.list_(pa.uint16()),
    pa.large_list(pa.int64()),
    pa.list_(pa.list_(pa.uint8())),
    pa.list_(pa.list_(pa.bool_(), 2)),
    pa.list_(pa.uint8(), 3),
    pa.float32(),
]
ITEMS = {pa.bool_(): st.booleans(), pa.float32(): st.floats(0, 1, width=32)}


def rows_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if isinstance(kind, pa.FixedSizeListType):
        return st.lists(rows_of(kind.value_type), min_size=kind.list_size, max_size=kind.list_size)
    if isinstance(kind, pa.ListType | pa.LargeListType):
        return st.lists(rows_of(kind.value_type), max_size=4)
    return ITEMS.get(kind, st.integers(0, 255))


def as_list(value: Any) -> Any:
    return [as_list(row) for row in value.rows()] if isinstance(value, Ragged) else value.tolist()


def decode(table: pa.Table) -> Any:
    return decode_columns(table, digest_columns(table.schema))


def gather(column: pa.Array, rows: list[int], name: str = "column") -> Any:
    columns = decode(pa.table({name: column}))
    return gather_rows([(columns, row) for row in rows])[name]


@pytest.mark.parametrize("kind", COLUMNS, ids=str)
@given(st.data())
def test_a_batch_holds_rows_of_any_row_groups_in_the_order_given(kind: pa.DataType, data: st.DataObject) -> None:
    groups = [data.draw(st.lists(rows_of(kind), min_size=1, max_size=5)) for _ in range(2)]
    places = [(group, row) for group, rows in enumerate(groups) for row in range(len(rows))]
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1))
    decoded = [decode(pa.table({"column": pa.array(rows, kind)})) for rows in groups]
    found = gather_rows([(decoded[group], row) for group, row in chosen])["column"]
    assert as_list(found) == [groups[group][row] for group, row in chosen]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_text_is_its_bytes_and_null_is_empty(kind: pa.DataType) -> None:
    found = gather(pa.array(["ä", None, "", "bc"], kind), [3, 0, 1, 2])
    assert (found.values.dtype, found.values.tobytes()) == (np.uint8, "bcä".encode())
    assert found.offsets.tolist() == [0, 2, 4, 4, 4]
    assert texts(found) == ["bc", "ä", "", ""]


def test_a_slice_of_a_column_is_that_slice() -> None:
    column = pa.array([["a", "bc"], [], ["d"]]).slice(1)
    assert texts(gather(column, [1, 0])) == [["d"], []]
    assert gather(pa.array([["a"], []]).slice(1), [0]).values.values.size == 0


def test_ids_of_documents_are_the_bytes_of_their_digests() -> None:
    ids = ["00" * 31 + "ff", "ab" * 32]
    assert gather(pa.array(ids), [1, 0], "doc_id").tobytes().hex() == ids[1] + ids[0]
    found = gather(pa.array([ids, [], ids[:1]]), [2, 1, 0], "doc_ids")
    assert (found.values.shape, found.offsets.tolist()) == ((3, 32), [0, 1, 1, 3])


def test_the_projects_of_repositories_are_text() -> None:
    columns = decode(pa.table({"doc_ids": [["numpy"]], "file_doc_ids": [["ab" * 32]]}))
    batch = gather_rows([(columns, 0)])
    assert texts(batch["doc_ids"]) == [["numpy"]]
    assert batch["file_doc_ids"].values.shape == (1, 32)


@pytest.mark.parametrize("ids", [["ab"], ["x" * 64], ["ab" * 31, "ab" * 33]], ids=["short", "letters", "unequal"])
def test_ids_that_are_no_digests_are_refused(ids: list[str]) -> None:
    with pytest.raises(CorruptDataError, match="column doc_id: an id is not a SHA-256 in hex"):
        gather(pa.array(ids), [0], "doc_id")


@pytest.mark.parametrize("column", [pa.array([1, None]), pa.array([0], pa.date32()), pa.array([{"a": 1}])], ids=str)
def test_columns_without_a_form_in_a_batch_are_refused(column: pa.Array) -> None:
    with pytest.raises(InvalidInputError, match=r"column when: .*; name other columns"):
        gather(column, [0], "when")


def test_keeping_a_batch_keeps_no_row_group() -> None:
    columns = decode(pa.table({"ids": [[1, 2], [3]], "number": [1, 2]}))
    batch = gather_rows([(columns, 0)])
    assert all(array.base is None for array in (batch["number"], *batch["ids"]))
