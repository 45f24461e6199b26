"""The columns of a decoded row group, and its rows as dicts of numpy arrays.

A list column is one flat array with offsets, and a row is a slice of it. Only strings are converted one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as types

__all__ = ["Row", "Rows", "is_number", "numbers", "offsets"]

Row = dict[str, Any]
"""A row by column."""


@dataclass(frozen=True)
class Rows:
    """The rows of a row group.

    Attributes:
        length: The number of rows.
        readers: For each column, a function from a row to its value: a numpy number, a str, or an array of these.
    """

    length: int
    readers: dict[str, Callable[[int], Any]]

    @classmethod
    def of(cls, table: pa.Table) -> Rows:
        """Make rows from the columns of a table, which stay in memory as long as the rows do."""
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        return cls(table.num_rows, {name: _reader(column) for name, column in columns.items()})

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.length

    def __getitem__(self, row: int) -> Row:
        """Return a row; its arrays are copies, so keeping a row does not keep its row group in memory."""
        return {name: read(row) for name, read in self.readers.items()}


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of a type are numbers or booleans."""
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def numbers(column: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - an array of any type
    """Return an array of numbers or booleans, without nulls, as a numpy array.

    It shares the memory of numbers. `to_numpy` would import pandas, which takes a second in each worker.
    """
    if types.is_boolean(column.type):
        return numbers(column.cast(pa.uint8())).view(np.bool_)
    kind = column.type
    letter = "f" if types.is_floating(kind) else "u" if types.is_unsigned_integer(kind) else "i"
    return _view(column.buffers()[1], f"{letter}{kind.bit_width // 8}", column.offset, len(column))


def offsets(column: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - an array of lists, text or bytes
    """Return where the rows of an array begin and end in its values."""
    kind = column.type
    large = types.is_large_list(kind) or types.is_large_string(kind) or types.is_large_binary(kind)
    return _view(column.buffers()[1], "i8" if large else "i4", column.offset, len(column) + 1)


def _view(buffer: pa.Buffer | None, kind: str, start: int, count: int) -> npt.NDArray[Any]:
    dtype = np.dtype(kind)
    if buffer is None or not buffer.size:
        return np.zeros(count, dtype)
    return np.frombuffer(memoryview(buffer), dtype, count, start * dtype.itemsize)


def _reader(column: Any) -> Callable[[int], Any]:  # noqa: ANN401 - an array of any type
    if column.null_count:
        return lambda row: column[row].as_py()
    if types.is_fixed_size_list(column.type):
        table = _as_numpy(column.flatten()).reshape(len(column), column.type.list_size)
        return lambda row: table[row].copy()
    if types.is_list(column.type) or types.is_large_list(column.type):
        return _list_reader(_as_numpy(column.values), column.offsets.to_pylist())
    if is_number(column.type):
        return _as_numpy(column).__getitem__
    return lambda row: column[row].as_py()


def _list_reader(values: npt.NDArray[Any], offsets: list[int]) -> Callable[[int], Any]:
    return lambda row: values[offsets[row] : offsets[row + 1]].copy()


def _as_numpy(array: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - an array of any type
    if is_number(array.type) and not array.null_count:
        return numbers(array)
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values
