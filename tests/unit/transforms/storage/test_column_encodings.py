"""What a footer says of columns: what Arrow finds in an honest one; damage raises ValueError alone."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.storage.column_encodings import DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, has_file_before, read_chunks


def parquet(encoding: str) -> bytes:
    table = pa.table({"a": [[1, None], None, []], "b": ["x", "y", None], "c": [True, False, None]})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=2, use_dictionary=False, column_encoding={"b": encoding})
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "number"),
    [("DELTA_BYTE_ARRAY", DELTA_BYTE_ARRAY), ("DELTA_LENGTH_BYTE_ARRAY", DELTA_LENGTH_BYTE_ARRAY), ("PLAIN", 0)],
)
def test_each_row_group_has_the_encodings_that_arrow_wrote(name: str, number: int) -> None:
    data = parquet(name)
    assert name in pq.read_metadata(io.BytesIO(data)).row_group(1).column(1).encodings
    found = read_chunks(io.BytesIO(data), {1})
    assert [number in group[1].encodings for group in found] == [True, True]
    assert read_chunks(io.BytesIO(data), ()) == [{}, {}]


def test_places_and_sizes_are_those_that_arrow_wrote() -> None:
    data = parquet("PLAIN")
    for number, group in enumerate(read_chunks(io.BytesIO(data), {0, 1, 2})):
        for place, chunk in group.items():
            column = pq.read_metadata(io.BytesIO(data)).row_group(number).column(place)
            sizes = (column.data_page_offset, column.total_compressed_size, column.total_uncompressed_size)
            assert chunk[1:4] == sizes


@pytest.mark.parametrize("search_bytes", [1, 13, 1 << 20])
def test_a_file_before_another_is_found_and_the_same_bytes_in_a_value_are_not(
    search_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.storage.column_encodings._SEARCH_BYTES", search_bytes)
    whole, empty = parquet("PLAIN"), io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([], pa.string())}), empty)
    value = io.BytesIO()
    pq.write_table(pa.table({"a": ["if PAR1PAR1"]}), value, use_dictionary=False, compression="none")
    places = range(3)
    indexed = io.BytesIO()
    pq.write_table(pa.table({"a": ["x PAR1\x15 PAR1"]}), indexed, write_page_index=True, compression="none")
    near = [whole + b"\n" + whole, whole[:-4] + whole, whole[:-8] + whole, whole + whole[4:], whole + 4 * b"\0" + whole]
    joined = [
        *near,
        indexed.getvalue() + indexed.getvalue(),
        whole + whole,
        2 * whole + whole,
        whole + empty.getvalue(),
        whole + value.getvalue(),
    ]
    for data, is_joined in [
        (whole, False),
        (empty.getvalue(), False),
        (value.getvalue(), False),
        (indexed.getvalue(), False),
    ] + [(data, True) for data in joined]:
        file = io.BytesIO(data)
        assert has_file_before(file, read_chunks(file, places)) == is_joined


FOOTER = parquet("DELTA_BYTE_ARRAY")


@pytest.mark.fuzz
@given(st.lists(st.tuples(st.integers(1, len(FOOTER) - 9), st.integers(0, 255)), min_size=1, max_size=5))
def test_any_damage_to_a_footer_ends_in_encodings_or_value_error(changes: list[tuple[int, int]]) -> None:
    data = bytearray(FOOTER)
    for place, value in changes:
        data[place] = value
    try:
        found = read_chunks(io.BytesIO(bytes(data)), {0, 1})
    except ValueError:
        return
    assert all(isinstance(number, int) for group in found for chunk in group.values() for number in chunk.encodings)


def test_a_footer_that_is_nested_deeply_is_refused() -> None:
    footer = b"\x1c" * 100_000
    with pytest.raises(ValueError, match="nested too deeply"):
        read_chunks(io.BytesIO(footer + len(footer).to_bytes(4, "little") + b"PAR1"), {0})
