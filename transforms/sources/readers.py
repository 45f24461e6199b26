"""The documents of an input unit, in order, for any kind of input; both passes of ingest read this way."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterator
from contextlib import closing, nullcontext
from functools import partial
from itertools import repeat
from typing import Any, BinaryIO

import pyarrow as pa

from schemas.logs import module_logger
from schemas.options import IngestOptions
from schemas.places import is_remote
from schemas.plugins.entry_points import describe_reader, describe_text, find_reader, plugin_code
from schemas.reasons import Dead, Filtered
from schemas.units import Unit
from transforms.sources import under_way
from transforms.sources.batches import Flags, batch_documents, to_documents
from transforms.sources.document import Archive, DamageError, Document, bounded, display_path
from transforms.sources.files import naming_input, open_archive, os_error_reason
from transforms.sources.jsonl import iter_jsonl
from transforms.sources.listing import Kind, codec_of, extension_of
from transforms.sources.loose import projects_of, read_loose
from transforms.sources.parquet import iter_parquet
from transforms.sources.streams import MemberStream
from transforms.sources.text import iter_text
from transforms.sources.wide_text import convert_wide_text
from transforms.storage.urls import input_errors

logger = module_logger(__name__)

_MAX_DETAIL_BYTES = 256
_PAIR = 2

_Rows = Document | pa.RecordBatch
"""What readers yield: a document, or several as a batch of UNDIGESTED."""


def _iter_tar(archive: Archive, stream: MemberStream) -> Iterator[Document]:
    # Most sources have no archives, and what reads them loads slowly.
    from transforms.sources.archives.tar import iter_tar

    return iter_tar(archive, stream)


def _iter_zip(archive: Archive, file: BinaryIO) -> Iterator[Document]:
    from transforms.sources.archives.zip import iter_zip

    return iter_zip(archive, file)


_STREAM_READERS: dict[Kind, Callable[[Archive, MemberStream], Iterator[_Rows]]] = {
    Kind.TAR: _iter_tar,
    Kind.JSONL: iter_jsonl,
    Kind.TEXT: iter_text,
}
_BOUNDS = {
    Dead.EXPANSION: "ingest.max_expansion, ingest.max_dense_bytes or ingest.max_rows_per_byte",
    Dead.TIMEOUT: "ingest.max_input_seconds",
}
"""The options that bound what an honest input may expand to, and how long it may take."""


def _iter_other(archive: Archive, file: BinaryIO) -> Iterator[Document]:
    """Yield what the reader of another distribution gives for a file.

    Raises:
        ConfigError: If the reader is not installed here.
        DamageError: If the reader says that the file is damaged, or it gives more than an honest one holds.
        PluginError: If the reader fails.
    """
    reader, members = find_reader(extension_of(archive.path)), None
    while True:
        try:
            with plugin_code(lambda: _describe_reader(archive), known=(StopIteration, OSError, ValueError)):
                members = members or iter(reader.read(file))
                given = next(members)
        except StopIteration:
            return
        except UnicodeError as error:
            raise DamageError(Dead.CORRUPT, type(error).__name__) from error
        except ValueError as error:
            raise DamageError(Dead.CORRUPT, bounded(describe_text(error), _MAX_DETAIL_BYTES)) from error
        with plugin_code(lambda: _describe_reader(archive)):
            name, content = _pair(given)
        size = content.nbytes
        drop = archive.drops(name) or (Filtered.SIZE if size > archive.options.max_document_bytes else None)
        archive.count_row()
        archive.grow_row(size)
        yield archive.filtered(name, drop, size) if drop else archive.document(name, bytes(content))


def _pair(given: object) -> tuple[str, memoryview]:
    """Return the name and the bytes of a document that a reader gave.

    Raises:
        TypeError: If it gave something else, which is no damage of the file.
    """
    if not isinstance(given, tuple | list) or len(given) != _PAIR or not isinstance(given[0], str):
        raise TypeError(f"it gave a {type(given).__name__} that is not a pair of name and bytes")
    return str.__str__(given[0]), memoryview(given[1])


def _describe_reader(archive: Archive) -> str:
    """Return what names the reader of another distribution, and the file."""
    return f"{describe_reader(extension_of(archive.path))}, in {display_path(archive.path)}"


_FILE_READERS: dict[Kind, Callable[[Archive, BinaryIO], Iterator[Document]]] = {
    Kind.ZIP: _iter_zip,
    Kind.PARQUET: iter_parquet,
}


def read_batches(
    unit: Unit,
    options: IngestOptions,
    wanted: Flags | None = None,
    *,
    keep: bool,
    threads: int = 1,
    ends: Container[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield every document of an input unit in order, and a ledger entry for all that could not be read, in batches.

    Args:
        unit: An input unit as `plan_inputs` makes them.
        options: The options of ingest.
        wanted: For each loose file, whether it is read; the others are yielded as `kept`, without digest. All are read
            by default; the members of archives are always read.
        keep: Whether the bytes stay in the batches: READ, else READ_DIGESTS. They must if the options alter content,
            and the batches then have the column `source_doc_id` too.
        threads: The most threads to digest documents with.
        ends: The rows at which an earlier reading ran out of time in an archive or table; this one ends there too,
            however fast it is. None for a first reading.

    Raises:
        StoreError: If a store fails beyond all retries, or refuses the credentials.
    """
    root = unit.payload["root"]
    with input_errors(root) if is_remote(root) else nullcontext():
        if unit.payload["kind"] == Kind.FILE:
            batches = read_loose(unit.payload, options, wanted, keep=keep, threads=threads)
        else:
            batches = batch_documents(_archived(unit, options, ends), keep=keep, threads=threads)
        yield from map(convert_wide_text, batches) if options.convert_wide_text else batches


def read_documents(unit: Unit, options: IngestOptions) -> Iterator[Document]:
    """Yield every document of an input unit in order, one by one; else as `read_batches`."""
    for batch in read_batches(unit, options, keep=True):
        yield from to_documents(batch)


def _archived(unit: Unit, options: IngestOptions, ends: Container[int] | None) -> Iterator[_Rows]:
    payload, row = unit.payload, 0
    project, inputs = payload["project"], payload["inputs"]
    projects = projects_of(project, inputs) if payload["kind"] == Kind.TEXT else repeat(project)
    for (path, num_bytes, _, reason), name in zip(inputs, projects, strict=False):
        archive = Archive(path, num_bytes, name, options, is_timed=ends is None)
        if reason:
            yield archive.entry(reason, "", num_bytes=num_bytes)
            row += 1
            continue
        first = row
        with closing(read_members(unit, archive)) as members:
            for rows in members:
                count = _count(rows)
                end = next((place for place in range(row, row + count) if place in ends), None) if ends else None
                if end is not None:
                    yield from _first(rows, end - row)
                    yield _ended(archive, archive.timeout, end - first)
                    row = end + 1
                    break
                yield rows
                row += count


def read_members(unit: Unit, archive: Archive) -> Generator[_Rows]:
    """Yield the members of an archive of a unit up to the limit, then an entry for damage that cut none."""
    rows, limit = 0, _Limit(archive.options.limit)
    with naming_input(unit.payload["root"], archive.path), closing(_members(unit, archive)) as members:
        try:
            for found in members:
                taken = limit.take(found)
                yield from _first(found, taken)
                rows += taken
                if taken < _count(found):
                    yield archive.entry(Filtered.LIMIT, f"read no further than {archive.options.limit} documents")
                    break
        except DamageError as damage:
            yield _ended(archive, damage, rows)
        except OSError as error:
            yield _ended(archive, DamageError(*os_error_reason(error)), rows)
    archive.log()


class _Limit:
    """How many documents are still taken; those that a name drops count for nothing."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit

    def take(self, rows: _Rows) -> int:
        """Return how many of the next rows are taken, all but the last ones."""
        if self._left is None:
            return _count(rows)
        reasons: list[Any] = [rows.reason] if isinstance(rows, Document) else rows.column("reason").to_pylist()
        for place, reason in enumerate(reasons):
            if self._left <= 0:
                return place
            self._left -= reason not in (Filtered.EXTENSION, Filtered.SAMPLE)
        return len(reasons)


def _count(rows: _Rows) -> int:
    return 1 if isinstance(rows, Document) else rows.num_rows


def _first(rows: _Rows, number: int) -> Iterator[_Rows]:
    """Yield the first ones of some rows, if there are any."""
    if number:
        yield rows if isinstance(rows, Document) else rows.slice(0, number)


def _ended(archive: Archive, damage: DamageError, rows: int) -> Document:
    """Return the entry of an archive of which some rows were read."""
    if archive.is_timed and damage.reason in _BOUNDS:
        logger.warning(
            "%s: %s; the rest of it is %s (%s allows more)",
            *(display_path(archive.path), damage.detail, f"dead[{damage.reason}]", _BOUNDS[damage.reason]),
        )
    return archive.entry(damage.reason, damage.detail, num_bytes=0 if rows else archive.num_bytes)


def _members(unit: Unit, archive: Archive) -> Generator[_Rows]:
    """Open an archive and yield what its format's reader does."""
    root, path, kind = unit.payload["root"], archive.path, Kind(unit.payload["kind"])

    def open_counted(*, is_stream: bool = False) -> BinaryIO:
        return under_way.counted(open_archive(root, path, is_stream=is_stream), unit.key)

    if kind in _STREAM_READERS:
        with closing(MemberStream(archive, partial(open_counted, is_stream=True), codec_of(path))) as stream:
            yield from _STREAM_READERS[kind](archive, stream)
    elif kind is Kind.OTHER:
        with open_archive(root, path, is_stream=False) as file:  # a reader of others may use all that a file has
            yield from _iter_other(archive, file)
    else:
        with open_counted() as file:
            yield from _FILE_READERS[kind](archive, file)
