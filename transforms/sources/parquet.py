"""Documents in Parquet files: one row each, the bytes in a text or binary column that the options name.

Row groups are read one by one in small batches, and values as dictionaries, so one long value that a million rows share
is held once. Arrow cannot do that with delta encodings: where values share prefixes, batches are of few rows instead.
If a row group cannot be read, only its own rows are lost. Arrow decompresses a page as a whole, so the sizes of pages
are looked at first.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.reasons import Dead
from transforms.sources.document import Archive, DamageError, Document, label, missing_column
from transforms.sources.license_terms import read_terms
from transforms.storage.column_encodings import (
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    Chunk,
    has_file_before,
    read_chunks,
    without_arrow_types,
)
from transforms.storage.page_sizes import read_pages

_BATCH_BYTES = 4 << 20
_MAX_BATCH_ROWS = 1024
_BUFFER_BYTES = 1 << 20
_MAX_LOST_ROWS = 1_000_000
_TEXT_TYPES = (
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
)
_DELTA = {DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY}
"""Encodings of text that Arrow does not read as dictionaries; in the first, values leave out what they share."""

_READ_ERRORS = (pa.ArrowException, OSError, ValueError, MemoryError, IndexError, EOFError)


def iter_parquet(archive: Archive, file: BinaryIO) -> Iterator[Document]:
    """Yield the rows of a Parquet file in order.

    Raises:
        DamageError: If it is not Parquet file, or expands beyond measure.
    """
    try:
        metadata = pq.read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
        archive = archive.with_text_column({field.name: _is_text(field.type) for field in schema})
        column = archive.options.content_column
        paths = [metadata.schema.column(place).path for place in range(len(metadata.schema))]
        names = _names(archive)
        named = {place for place, path in enumerate(paths) if path in names or path.partition(".")[0] in names}
        chunks = read_chunks(file, range(len(paths)))
        is_joined = has_file_before(file, chunks)
        used = frozenset[int]().union(*(group[place].encodings for group in chunks for place in named & group.keys()))
        if not _DELTA.isdisjoint(used):
            metadata = pq.read_metadata(pa.BufferReader(without_arrow_types(file)))
            schema = metadata.schema.to_arrow_schema()
    except _READ_ERRORS as error:
        reason = Dead.CORRUPT if _has_magic(file) else Dead.NOT_AN_ARCHIVE
        raise DamageError(reason, f"no readable Parquet footer ({type(error).__name__})") from error
    if is_joined:
        raise DamageError(Dead.CORRUPT, "several Parquet files joined into one, whose rows have the wrong places")
    unusable = _problem(schema, column)
    if unusable:
        yield archive.entry(*unusable, num_bytes=archive.num_bytes)
        return
    lists = {name for name in schema.names if name == archive.options.license_column}
    archive.warn_of_missing(lists | {field.name for field in schema if _is_text(field.type)})
    encodings = [
        frozenset().union(*(chunk.encodings for place, chunk in group.items() if paths[place] == column))
        for group in chunks
    ]
    table = pq.ParquetFile(
        file,
        metadata=metadata,
        pre_buffer=False,
        buffer_size=_BUFFER_BYTES,
        page_checksum_verification=True,
        read_dictionary=[column] if all(map(_DELTA.isdisjoint, encodings)) else [],
    )
    first = 0
    for group in range(metadata.num_row_groups):
        is_known = group < len(chunks)
        is_prefixed = is_known and DELTA_BYTE_ARRAY in encodings[group]
        columns = {place: chunk for place, chunk in chunks[group].items() if place in named} if is_known else {}
        problem, rows = _check_pages(archive, file, metadata, group, columns)
        read = _RowGroup(archive, table, group, first, is_prefixed=is_prefixed)
        yield from read.lost(problem, range(max(rows, 1))) if problem else read.documents(rows)
        first += rows


def _names(archive: Archive) -> tuple[str | None, ...]:
    """Return the names of the columns that are read, if they are there."""
    options = archive.options
    return options.content_column, options.path_column, options.project_column, options.license_column


def _check_pages(
    archive: Archive, file: BinaryIO, metadata: pq.FileMetaData, group: int, chunks: Mapping[int, Chunk]
) -> tuple[str, int]:
    """Return what is wrong with the pages of a row group, nothing if they have all its rows, and how many rows it has.

    Arrow passes over pages that it does not know, and then gives each row values of others. The headers of pages in a
    store would be requested one by one, so there the footer is believed first.

    Args:
        archive: The file.
        file: Its bytes.
        metadata: Its footer.
        group: The number of the row group.
        chunks: The columns that are read, by their place.

    Raises:
        DamageError: If a page alone is more than the file may expand to.
    """
    most, rows = archive.max_grown_bytes, metadata.row_group(group).num_rows
    for place, chunk in chunks.items():
        if isinstance(file, io.BufferedReader) or chunk.uncompressed_bytes > most:
            pages, column = read_pages(file, chunk.place, chunk.num_bytes), metadata.schema.column(place)
            if pages.largest > most:
                raise DamageError(Dead.EXPANSION, f"has a page of {pages.largest} bytes, and may expand to {most}")
            if not column.max_repetition_level and pages.num_values not in (None, rows):
                found = int(pages.num_values or 0)
                return f"its pages of {column.name!r} have {found} rows and not {rows}", max(found, rows)
    return "", rows


def _problem(schema: pa.Schema, column: str) -> tuple[Dead, str] | None:
    """Return why no row of a file can be used, if so."""
    if schema.get_field_index(column) < 0:
        return Dead.MISSING_COLUMN, missing_column(column, schema.names)
    kind = schema.field(column).type
    return None if _is_text(kind) else (Dead.BAD_CONTENT, f"column {column!r} is {kind}: neither text nor binary")


def _is_text(kind: pa.DataType) -> bool:
    """Return whether a type holds text or bytes."""
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return (kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind) in _TEXT_TYPES


def _has_magic(file: BinaryIO) -> bool:
    try:
        file.seek(0)
        return file.read(4) == b"PAR1"
    except (OSError, ValueError):
        return False


class _RowGroup:
    """The rows of one row group."""

    def __init__(self, archive: Archive, table: pq.ParquetFile, group: int, first: int, *, is_prefixed: bool) -> None:
        self._archive, self._table, self._group, self._first = archive, table, group, first
        self._is_prefixed = is_prefixed
        self._metadata = table.metadata.row_group(group)
        schema, options = table.schema_arrow, archive.options
        wanted = _names(archive)
        found = [
            name for name in wanted if name and schema.get_field_index(name) >= 0 and _is_text(schema.field(name).type)
        ]
        self._columns = list(dict.fromkeys(found))
        terms = options.license_column if options.allowed_licenses or options.find_licenses else None
        is_there = terms and terms not in found and schema.get_field_index(terms) >= 0
        self._terms = [terms] if terms and is_there else []

    def documents(self, rows: int) -> Iterator[Document]:
        """Yield the rows, then an entry for each of so many that could not be read."""
        done = 0
        try:
            for batch in self._table.iter_batches(
                batch_size=self._batch_rows(),
                row_groups=[self._group],
                columns=self._columns + self._terms,
                use_threads=False,
            ):
                for document in self._batch(batch, self._first + done):
                    yield document
                    done += 1
            if done < rows:
                raise EOFError
        except _READ_ERRORS as error:
            yield from self.lost(type(error).__name__, range(done, max(rows, done + 1)))

    def lost(self, problem: str, rows: range) -> Iterator[Document]:
        """Yield an entry for each of some rows that cannot be read, up to a limit."""
        for row in rows[:_MAX_LOST_ROWS]:
            self._archive.count_row()
            detail = f"row group {self._group} is damaged ({problem})"
            yield self._archive.dead(f"row-{self._first + row + 1}", Dead.CORRUPT, detail, num_bytes=0)

    def _batch_rows(self) -> int:
        """Return how many rows are held at once; a value that shares its prefix is at most as long as all bytes."""
        rows = 1 if self._is_prefixed else max(1, self._metadata.num_rows)
        return max(1, min(_MAX_BATCH_ROWS, _BATCH_BYTES * rows // max(1, self._metadata.total_byte_size)))

    def _batch(self, batch: pa.RecordBatch, first: int) -> Iterator[Document]:
        columns = {name: _Values(batch.column(batch.schema.get_field_index(name))) for name in self._columns}
        for row in range(batch.num_rows):
            values = {name: column.value(row) for name, column in columns.items()}
            terms = [_terms(batch.column(batch.schema.get_field_index(name)), row) for name in self._terms]
            yield self._document(values, f"row-{first + row + 1}", terms[0] if terms else None)

    def _document(self, values: dict[str, bytes | None], member: str, terms: str | None) -> Document:
        archive, options = self._archive, self._archive.options
        path, content = _text(values.get(options.path_column)), values[options.content_column]
        archive.count_row()
        archive.grow_row(len(content or b""))
        name = path or member
        drop = archive.drops(name, has_extension=name is path)
        if drop:
            return archive.filtered(name, drop, len(content or b""))
        if content is None:
            return archive.dead(name, Dead.BAD_CONTENT, f"{options.content_column!r} is null", num_bytes=0)
        return archive.document(
            name,
            content,
            project=label(_text(values.get(options.project_column or ""))),
            license_name=label(_text(values.get(options.license_column or ""))),
            terms=terms,
        )


class _Values:
    """The values of a text or binary column as bytes, one at a time."""

    def __init__(self, column: pa.Array[Any]) -> None:
        self._indices = column.indices if isinstance(column, pa.DictionaryArray) else None
        values: Any = column.dictionary if isinstance(column, pa.DictionaryArray) else column
        values = values.storage if isinstance(values, pa.ExtensionArray) else values
        large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
        self._values = values.cast(pa.large_binary() if large else pa.binary())

    def value(self, row: int) -> bytes | None:
        """Return the bytes of a row, None for null."""
        if self._indices is None:
            value = self._values[row].as_py()
        else:
            index = self._indices[row].as_py()
            value = None if index is None else self._values[index].as_py()
        return value  # type: ignore[no-any-return]


def _terms(column: pa.Array[Any], row: int) -> str | None:
    """Return a row's licence from a column that is not text; a value that Python cannot hold is not text either."""
    try:
        value = column[row].as_py()
    except (pa.ArrowException, ValueError, OverflowError):
        value = ()
    return read_terms([value] if isinstance(value, str) else value)


def _text(value: bytes | None) -> str | None:
    """Return text with surrogate escapes; None for null and for nothing."""
    return value.decode("utf-8", "surrogateescape") if value else None
