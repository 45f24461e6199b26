"""The documents of an input unit, in order, for any kind of input; both passes of ingest read this way."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext
from typing import Any, BinaryIO

from schemas.options import IngestOptions
from schemas.places import is_remote
from schemas.reasons import Column, Filtered
from schemas.units import Unit
from transforms.sources.document import Archive, DamageError, Document, column_of, display_path
from transforms.sources.files import open_descriptor, open_input, os_error_reason
from transforms.sources.jsonl import iter_jsonl
from transforms.sources.listing import Kind, codec_of
from transforms.sources.parquet import iter_parquet
from transforms.sources.streams import MemberStream
from transforms.sources.tar import iter_tar
from transforms.sources.zip import iter_zip
from transforms.storage.urls import input_errors, open_url

_STREAM_READERS: dict[Kind, Callable[[Archive, MemberStream], Iterator[Document]]] = {
    Kind.TAR: iter_tar,
    Kind.JSONL: iter_jsonl,
}
_FILE_READERS: dict[Kind, Callable[[Archive, BinaryIO], Iterator[Document]]] = {
    Kind.ZIP: iter_zip,
    Kind.PARQUET: iter_parquet,
}


def read_documents(
    unit: Unit, options: IngestOptions, wanted: Callable[[int], bool] | None = None
) -> Iterator[Document]:
    """Yield every document of an input unit in order, and a ledger entry for all that could not be read.

    Args:
        unit: An input unit as `plan_inputs` makes them.
        options: The options of ingest.
        wanted: Returns whether the loose file with an index is read; the others are yielded without content, as
            `kept`. All are read by default; the members of archives are always read.

    Raises:
        StoreError: If a store fails beyond all retries, or refuses the credentials.
    """
    root = unit.payload["root"]
    with input_errors(root) if is_remote(root) else nullcontext():
        yield from _documents(unit, options, wanted)


def _documents(unit: Unit, options: IngestOptions, wanted: Callable[[int], bool] | None) -> Iterator[Document]:
    if unit.payload["kind"] == Kind.FILE:
        yield from _loose_files(unit.payload, options, wanted)
    else:
        path, num_bytes, _, reason = unit.payload["inputs"][0]
        archive = Archive(path, num_bytes, unit.payload["project"], options)
        if reason:
            yield archive.entry(reason, "", num_bytes=num_bytes)
        else:
            yield from _archive_documents(unit.payload, archive)


def _loose_files(
    payload: dict[str, Any], options: IngestOptions, wanted: Callable[[int], bool] | None
) -> Iterator[Document]:
    """Yield loose files, each opened once."""
    root, name = payload["root"], payload["project"]
    for index, (path, num_bytes, _, reason) in enumerate(payload["inputs"]):
        folder, slash, _ = path.partition("/")
        shown = Document(display_path(folder) if slash else name, display_path(path), num_bytes, None)
        if reason:
            yield shown._replace(column=column_of(reason), reason=reason)
        elif wanted and not wanted(index):
            yield shown
        else:
            yield _read_file(root, path, shown, options.max_document_bytes)


def _read_file(root: str, path: str, shown: Document, max_bytes: int) -> Document:
    """Read a loose file; no more of it than the largest document."""
    try:
        content, num_bytes = (
            _read_remote(root, path, shown.num_bytes, max_bytes)
            if is_remote(root)
            else _read_local(root, path, max_bytes)
        )
    except OSError as error:
        reason, detail = os_error_reason(error)
        return shown._replace(column=Column.DEAD, reason=reason, detail=detail)
    if content is None:
        return shown._replace(num_bytes=num_bytes, column=Column.FILTERED, reason=Filtered.SIZE)
    return shown._replace(num_bytes=num_bytes, content=content)


def _read_local(root: str, path: str, max_bytes: int) -> tuple[bytes | None, int]:
    """Return a file's bytes and their number; None if there are more than `max_bytes`."""
    descriptor = open_descriptor(root, path)
    try:
        size = os.fstat(descriptor).st_size
        if size > max_bytes:
            return None, size
        content = os.read(descriptor, size + 1)
        while len(content) != size:  # it grows or shrinks, or its size is not known
            size = len(content)
            content += os.read(descriptor, max_bytes + 1 - size)
    finally:
        os.close(descriptor)
    return (content if len(content) <= max_bytes else None), len(content)


def _read_remote(root: str, path: str, num_bytes: int, max_bytes: int) -> tuple[bytes | None, int]:
    if num_bytes <= max_bytes:  # one request; opening a file takes two or three
        system, base = open_url(root)
        content = bytes(system.cat_file(f"{base}/{path}"))
        return (content if len(content) <= max_bytes else None), len(content)
    with open_input(root, path) as file:
        content = file.read(max_bytes + 1)
        if len(content) <= max_bytes:
            return content, len(content)
        return None, file.seek(0, os.SEEK_END)


def _archive_documents(payload: dict[str, Any], archive: Archive) -> Iterator[Document]:
    """Yield the members of an archive up to the limit, then an entry for damage that cut none."""
    taken = rows = 0
    limit = archive.options.limit
    with closing(_members(payload, archive)) as members:
        try:
            for document in members:
                if limit is not None and taken >= limit:
                    yield archive.entry(Filtered.LIMIT, f"read no further than {limit} documents")
                    break
                rows += 1
                taken += document.reason not in (Filtered.EXTENSION, Filtered.SAMPLE)
                yield document
        except DamageError as damage:
            yield archive.entry(damage.reason, damage.detail, num_bytes=0 if rows else archive.num_bytes)
        except OSError as error:
            yield archive.entry(*os_error_reason(error), num_bytes=0 if rows else archive.num_bytes)
    archive.log()


def _members(payload: dict[str, Any], archive: Archive) -> Generator[Document]:
    """Open an archive and yield what its format's reader does."""
    root, path, kind = payload["root"], archive.path, Kind(payload["kind"])
    if kind in _STREAM_READERS:
        with closing(MemberStream(archive, lambda: open_input(root, path), codec_of(path))) as stream:
            yield from _STREAM_READERS[kind](archive, stream)
    else:
        with open_input(root, path) as file:
            yield from _FILE_READERS[kind](archive, file)
