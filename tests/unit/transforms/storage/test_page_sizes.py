"""The largest page of a column is the one that Arrow wrote, whatever its footer says; damage ends the search."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.storage.column_encodings import read_chunks
from transforms.storage.page_sizes import read_pages

ROWS = [b"%d" % index * 100 for index in range(3_000)]


def written(**options: Any) -> tuple[bytes, int, int]:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"a": ROWS}), buffer, **options)
    (chunk,) = read_chunks(buffer, {0})[0].values()
    return buffer.getvalue(), chunk.place, chunk.num_bytes


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"compression": "zstd"}])
def test_a_page_is_as_large_as_its_values(options: dict[str, Any]) -> None:
    data, place, num_bytes = written(use_dictionary=False, data_page_size=1 << 30, **options)
    size = sum(len(row) + 4 for row in ROWS)
    assert size <= read_pages(io.BytesIO(data), place, num_bytes).largest < size + 100


def test_a_dictionary_is_a_page_and_so_is_each_of_its_indices() -> None:
    data, place, num_bytes = written(dictionary_pagesize_limit=1 << 30, data_page_size=100)
    assert read_pages(io.BytesIO(data), place, num_bytes).largest == sum(len(row) + 4 for row in ROWS)


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"use_dictionary": False}])
def test_the_pages_have_all_values(options: dict[str, Any]) -> None:
    data, place, num_bytes = written(data_page_size=100, write_batch_size=10, **options)
    assert read_pages(io.BytesIO(data), place, num_bytes).num_values == len(ROWS)


def test_a_page_with_the_header_of_another_type_is_damaged() -> None:
    data, place, num_bytes = written()
    assert data[place + 1] == 4  # a dictionary
    changed = data[: place + 1] + b"\6" + data[place + 2 :]
    assert read_pages(io.BytesIO(changed), place, num_bytes).num_values is None


def test_long_statistics_are_read_over() -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"a": [bytes(3_000)]}), buffer, use_dictionary=False)
    (chunk,) = read_chunks(buffer, {0})[0].values()
    assert read_pages(buffer, chunk.place, chunk.num_bytes).largest >= 3_000


DATA, PLACE, NUM_BYTES = written(use_dictionary=False, data_page_size=1_000, write_batch_size=10)


@pytest.mark.fuzz
@given(st.lists(st.tuples(st.integers(0, NUM_BYTES - 1), st.integers(0, 255)), min_size=1, max_size=5))
def test_any_damage_ends_in_a_size(changes: list[tuple[int, int]]) -> None:
    data = bytearray(DATA)
    for place, value in changes:
        data[PLACE + place] = value
    assert 0 <= read_pages(io.BytesIO(bytes(data)), PLACE, NUM_BYTES).largest < 1 << 31
