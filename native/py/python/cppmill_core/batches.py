"""Batches: a fixed number of arrays for each column, whatever the rows hold, cut from decoded row groups.

| column | in a batch of b rows |
|---|---|
| number, boolean | array [b] |
| fixed-size list | array [b, size] |
| `doc_id`, the SHA-256 of the document | uint8 array [b, 32], the digests |
| text, bytes | `Ragged`: uint8 values, UTF-8; a null is empty |
| list | `Ragged` of its items: of lists of text, `values` is `Ragged` itself |

Gathering copies, so keeping a batch does not keep its row groups in memory.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as types

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.columns import is_number, numbers, offsets

__all__ = ["Arrays", "Columns", "Ragged", "decode_columns", "digest_columns", "gather_rows", "texts"]

Arrays = dict[str, Any]
"""A batch by column: arrays and `Ragged`."""

_DIGEST_BYTES = 32


class Ragged(NamedTuple):
    """Rows of different lengths: row i is `values[offsets[i] : offsets[i + 1]]`.

    Attributes:
        values: All rows, one after another: an array or tensor, or `Ragged` for lists of texts.
        offsets: One more than there are rows, int32; the first is 0. Attention kernels call it `cu_seqlens`.
    """

    values: Any
    offsets: Any

    def rows(self) -> list[Any]:
        """Return each row by itself: views of the values, not copies.

        Example:
            >>> [row.tolist() for row in Ragged(np.array([7, 8, 9]), np.array([0, 2, 3])).rows()]
            [[7, 8], [9]]
        """
        return [_cut(self.values, start, stop) for start, stop in pairwise(self.offsets.tolist())]


def texts(column: Ragged) -> list[Any]:
    """Return a column of text as str, and one of lists of text as lists of str.

    Example:
        >>> texts(Ragged(np.frombuffer(b"a.hbc.h", np.uint8), np.array([0, 3, 7])))
        ['a.h', 'bc.h']
    """
    return [texts(row) if isinstance(row, Ragged) else bytes(np.asarray(row)).decode() for row in column.rows()]


@dataclass(frozen=True)
class _Flat:
    """A column whose rows all have one shape: the first dimension counts the rows."""

    values: npt.NDArray[Any]


@dataclass(frozen=True)
class _Lists:
    """A column of lists: row i is items `offsets[i]` to `offsets[i + 1]`."""

    items: _Flat | _Lists
    offsets: npt.NDArray[Any]


_Column = _Flat | _Lists
Columns = dict[str, _Column]
"""The columns of a decoded row group."""


def digest_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the columns that hold ids of documents; in sequences of repositories, `doc_ids` are names of projects."""
    of_repositories = "file_doc_ids" in schema.names
    return frozenset({"doc_id", "file_doc_ids" if of_repositories else "doc_ids"})


def decode_columns(table: pa.Table, digests: frozenset[str]) -> Columns:
    """Return the columns of a row group, to gather rows from.

    Args:
        table: The row group.
        digests: What `digest_columns` says of its file.

    Raises:
        InvalidInputError: If a column has no form in a batch: its type, or a null that is neither a list nor text.
        CorruptDataError: If document ids are not SHA-256 in hex.
    """
    return {name: _decode(table.column(name).combine_chunks(), name, name in digests) for name in table.column_names}


def gather_rows(rows: Sequence[tuple[Columns, int]]) -> Arrays:
    """Return rows of decoded row groups as a batch, in the order given.

    Args:
        rows: For each row, the row group that has it and its number there; at least one.

    Raises:
        InvalidInputError: If a column has 2³¹ values or more.
    """
    return {name: _gather([(columns[name], row, row + 1) for columns, row in rows]) for name in rows[0][0]}


def _gather(pieces: Sequence[tuple[Any, int, int]]) -> Any:  # noqa: ANN401 - an array, or Ragged
    """Concatenate ranges of rows of columns of one kind."""
    if isinstance(pieces[0][0], _Flat):
        return np.concatenate([column.values[start:stop] for column, start, stop in pieces])
    ends = np.concatenate([np.diff(column.offsets[start : stop + 1]) for column, start, stop in pieces]).cumsum()
    if len(ends) and ends[-1] > np.iinfo(np.int32).max:
        raise InvalidInputError(f"a batch with {ends[-1]:,} values in a column, 2³¹ or more: use a lower batch_rows")
    items = [(column.items, column.offsets[start], column.offsets[stop]) for column, start, stop in pieces]
    return Ragged(_gather(items), np.concatenate([[0], ends]).astype(np.int32))


def _decode(column: Any, name: str, digests: bool) -> _Column:  # noqa: ANN401 - an array of any type
    kind = column.type
    if types.is_dictionary(kind):
        return _decode(column.dictionary_decode(), name, digests)
    if types.is_list(kind) or types.is_large_list(kind):
        return _Lists(_decode(column.values, name, digests), offsets(column))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        found = _decode_text(column)
        return _digests(found, name) if digests else found
    if column.null_count:
        raise InvalidInputError(f"column {name}: a null of type {kind} has no place in a batch; name other columns")
    if types.is_fixed_size_list(kind):
        return _decode_fixed(_decode(column.flatten(), name, digests), len(column), kind.list_size)
    if is_number(kind):
        return _Flat(numbers(column))
    raise InvalidInputError(f"column {name}: {kind} has no form in a batch; name other columns")


def _decode_fixed(items: _Column, rows: int, size: int) -> _Column:
    if isinstance(items, _Flat):
        return _Flat(items.values.reshape(rows, size, *items.values.shape[1:]))
    return _Lists(items, np.arange(rows + 1) * size)


def _decode_text(column: Any) -> _Lists:  # noqa: ANN401 - an array of text or bytes
    return _Lists(_Flat(np.frombuffer(column.buffers()[2] or b"", np.uint8)), offsets(column))


def _digests(text: _Lists, name: str) -> _Flat:
    start, stop = int(text.offsets[0]), int(text.offsets[-1])
    try:
        if (np.diff(text.offsets) != 2 * _DIGEST_BYTES).any():
            raise ValueError("not 64 digits")
        content = binascii.unhexlify(text.items.values[start:stop].tobytes())  # type: ignore[union-attr]
    except ValueError as error:
        raise CorruptDataError(f"column {name}: an id is not a SHA-256 in hex: {error}") from error
    return _Flat(np.frombuffer(content, np.uint8).reshape(-1, _DIGEST_BYTES))


def _cut(values: Any, start: int, stop: int) -> Any:  # noqa: ANN401 - an array, or Ragged
    if not isinstance(values, Ragged):
        return values[start:stop]
    offsets = values.offsets[start : stop + 1]
    return Ragged(_cut(values.values, int(offsets[0]), int(offsets[-1])), offsets - offsets[0])
