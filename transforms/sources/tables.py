"""Documents in tables that another program has read, as the columns that the stages of cppmill take.

Only the column `content` must be there. What else a stage needs is filled in: it has a value that says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cppmill_core
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import BadInputError
from schemas.tables import DOCUMENTS, NO_EVIDENCE

CONTENT = "content"

COMPLETE = DOCUMENTS.remove(DOCUMENTS.get_field_index("license"))
"""What every stage behind the reading of documents takes."""

_FILLING: dict[str, Any] = {"project": "", "path": "", "platform_ids": [], "platform_info": NO_EVIDENCE}


def batch_rows(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Return rows as a batch; what a row does not have is null.

    Raises:
        BadInputError: If they have no column, one's name is no text, or Arrow cannot hold its values.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise BadInputError(f"column {wrong[0]!r} of the rows: its name is no text")
    if rows and not names:
        raise BadInputError("rows without any column; leave them out")
    return pa.RecordBatch.from_pydict({name: _to_array(name, [row.get(name) for row in rows]) for name in names})


def _to_array(name: str, values: list[Any]) -> pa.Array[Any]:
    try:
        return pa.array(values)  # type: ignore[no-any-return]
    except (pa.ArrowException, OverflowError) as error:
        raise BadInputError(
            f"column {name!r} of the rows: Arrow cannot hold its values ({error}); leave it out"
        ) from error


def read_content(table: pa.RecordBatch) -> pa.BinaryArray:
    """Return the column `content` as binary.

    Raises:
        BadInputError: If there is none, it has a null, or it is neither text nor bytes.
    """
    if CONTENT not in table.schema.names:
        raise BadInputError(
            f"the documents have no column {CONTENT!r}, only {', '.join(table.schema.names)}; rename the text's column"
        )
    column = _cast(table, CONTENT, pa.binary())
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise BadInputError(f"column {CONTENT!r} is null in row {row} of a batch; leave out documents without text")
    return column  # type: ignore[no-any-return]


def read_column(table: pa.RecordBatch, name: str) -> pa.Array[Any]:
    """Return a column of COMPLETE other than those made from `content`, filled where it is missing or null.

    Raises:
        BadInputError: If it is of a type that cannot be read as the column's.
    """
    kind = COMPLETE.field(name).type
    column: Any = pa.repeat(pa.scalar(_FILLING[name], kind), table.num_rows)
    if name in table.schema.names:
        given = _cast(table, name, kind)
        column = pc.if_else(given.is_valid(), given, column) if given.null_count else given
    return column  # type: ignore[no-any-return]


def complete_documents(table: pa.RecordBatch, *, threads: int = 1) -> pa.RecordBatch:
    """Return documents as a batch of COMPLETE; `doc_id` and `num_bytes` are made from `content`, whatever is there.

    Args:
        table: Columns of COMPLETE by their names, of any type that can be read as theirs; others are left out.
        threads: The most threads to digest with.

    Raises:
        BadInputError: If `content` is missing or null, or a column has another type.
    """
    content = read_content(table)
    columns = {name: read_column(table, name) for name in _FILLING}
    columns |= {
        CONTENT: content,
        "doc_id": cppmill_core.digest_contents(content, threads=threads).column("doc_id"),
        "num_bytes": pc.binary_length(content).cast(pa.uint64()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in COMPLETE.names], schema=COMPLETE)


def _cast(table: pa.RecordBatch, name: str, kind: pa.DataType) -> Any:  # noqa: ANN401 - of the kind
    column: Any = table.column(name)
    try:
        if isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        return column.cast(kind)
    except pa.ArrowException as error:
        raise BadInputError(f"column {name!r} is {column.type}, and must be readable as {kind}: {error}") from error
