"""Loose files: read in batches by the native core where they are local, one by one where they are not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.options import IngestOptions
from schemas.places import is_remote
from schemas.reasons import Column, Dead, Filtered
from schemas.tables import READ, READ_DIGESTS
from transforms.sources.batches import BATCH_BYTES, BATCH_ROWS, Flags, is_equal, to_batch
from transforms.sources.document import DamageError, Document, column_of, display_path
from transforms.sources.files import naming_input, open_input, os_error_reason
from transforms.storage.urls import is_web, open_file

_AHEAD = 8
"""Files under way for each thread: a disk, and more so a network, answers many requests at the same time."""

_MAX_AHEAD = 64

Inputs = Sequence[tuple[str, int, str, str]]
"""Path, listed bytes, version and reason of each file."""


def read_loose(
    payload: dict[str, Any], options: IngestOptions, wanted: Flags | None = None, *, keep: bool, threads: int = 1
) -> Iterator[pa.RecordBatch]:
    """Yield loose files in batches, in order, each file opened once.

    Args:
        payload: Of an input unit of loose files.
        options: The options of ingest.
        wanted: For each file, whether it is read; the others are yielded as `kept`, without digest. All by default.
        keep: Whether the bytes stay in the batches: READ, else READ_DIGESTS.
        threads: The most threads to digest files with.
    """
    root, project, inputs = payload["root"], payload["project"], payload["inputs"]
    taken = np.array([not reason for *_, reason in inputs], dtype=bool)
    if wanted is not None:
        taken &= wanted
    sizes = np.array([num_bytes for _, num_bytes, *_ in inputs], dtype=np.int64)
    for first, last in _ranges(sizes * taken if keep else np.zeros_like(sizes)):
        part, read = inputs[first:last], taken[first:last]
        if is_remote(root):
            documents = _read_remote(root, project, part, read, options.max_document_bytes)
            yield to_batch(list(documents), keep=keep, threads=threads)
        else:
            found = _read_local(root, part, read, options.max_document_bytes, keep=keep, threads=threads)
            yield _to_batch(project, part, read, found, keep=keep)


def _ranges(sizes: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield where batches begin and end."""
    ends, first = np.cumsum(sizes), 0
    while first < len(sizes):
        full = int(ends[first] - sizes[first]) + BATCH_BYTES
        last = min(int(np.searchsorted(ends, full)) + 1, first + BATCH_ROWS, len(sizes))
        yield first, last
        first = last


def _read_local(root: str, inputs: Inputs, taken: Flags, max_bytes: int, *, keep: bool, threads: int) -> pa.RecordBatch:
    """Return what the native core finds in those files that are taken."""
    read = [inputs[place] for place in np.flatnonzero(taken).tolist()]
    return cppmill_core.read_files(
        os.fsencode(root),
        pa.array([os.fsencode(path) for path, *_ in read], pa.binary()),
        pa.array([num_bytes for _, num_bytes, *_ in read], pa.uint64()),
        max_bytes=max_bytes,
        keep=keep,
        threads=max(threads, min(_AHEAD * threads, _MAX_AHEAD)),
    )


def _to_batch(project: str, inputs: Inputs, taken: Flags, found: pa.RecordBatch, *, keep: bool) -> pa.RecordBatch:
    """Return files as a batch, with what was found in those that were taken."""
    places = np.flatnonzero(taken)
    failed = np.flatnonzero(is_equal(found.column("doc_id"), "")).tolist()
    verdicts = {int(places[row]): _verdict(found.column("error")[row].as_py()) for row in failed}
    verdicts |= {place: (column_of(item[3]), item[3], "") for place, item in enumerate(inputs) if item[3]}
    num_bytes = np.array([item[1] for item in inputs], dtype=np.uint64)
    known = found.column("error").to_numpy() == 0
    num_bytes[places[known]] = found.column("num_bytes").to_numpy()[known]
    columns: dict[str, Any] = {
        "project": pa.array(projects_of(project, inputs), pa.string()),
        "path": pa.array([display_path(path) for path, *_ in inputs], pa.string()),
        "num_bytes": pa.array(num_bytes),
        **_verdict_columns(len(inputs), verdicts),
        **{name: pa.nulls(len(inputs), pa.string()) for name in ("license", "terms")},
        **_spread(found, taken),
    }
    schema = READ if keep else READ_DIGESTS
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _verdict(error: int) -> tuple[Column, str, str]:
    """Return what the ledger says of a file that was not read: for an error of the operating system, or its size."""
    if not error:
        return Column.FILTERED, Filtered.SIZE, ""
    reason, detail = os_error_reason(OSError(error, os.strerror(error)))
    return Column.DEAD, reason, detail


def _verdict_columns(rows: int, verdicts: dict[int, tuple[Column, str, str]]) -> dict[str, pa.Array[Any]]:
    columns = [str(Column.KEPT)] * rows, [""] * rows, [""] * rows
    for place, verdict in verdicts.items():
        for column, value in zip(columns, verdict, strict=True):
            column[place] = str(value)
    return {
        name: pa.array(values, pa.string())
        for name, values in zip(("column", "reason", "detail"), columns, strict=True)
    }


def projects_of(project: str, inputs: Inputs) -> Iterator[str]:
    """Yield the project of each file: the first folder, or the source's name."""
    shown: dict[str, str] = {}
    for path, *_ in inputs:
        folder = path.partition("/")[0]
        if folder in ("", path):
            yield project
        else:
            if folder not in shown:
                shown[folder] = display_path(folder)
            yield shown[folder]


def _spread(found: pa.RecordBatch, taken: Flags) -> dict[str, Any]:
    """Return what was found in some files as columns of all; that of the others is empty."""
    columns: dict[str, Any] = {name: found.column(name) for name in found.schema.names if name in READ.names}
    del columns["num_bytes"]
    if taken.all():
        return columns
    places = pa.array(np.cumsum(taken) - 1, mask=~taken)
    spread: dict[str, Any] = {
        "doc_id": pc.fill_null(columns["doc_id"].take(places), ""),
        **{name: pc.fill_null(columns[name].take(places), False) for name in ("has_nul", "is_wide")},
    }
    if "content" in columns:
        # Bytes stay where they are; only offsets are added.
        _, offsets, data = columns["content"].buffers()
        ends = np.concatenate(([0], np.cumsum(taken)))
        spread_offsets = np.frombuffer(offsets, dtype=np.int64, count=len(found) + 1)[ends]
        spread["content"] = pa.Array.from_buffers(
            pa.large_binary(), len(taken), [None, pa.py_buffer(spread_offsets.tobytes()), data]
        )
    return spread


def _read_remote(root: str, project: str, inputs: Inputs, taken: Flags, max_bytes: int) -> Iterator[Document]:
    """Yield files of a store, no more of each than the largest document."""
    projects = projects_of(project, inputs)
    for (path, listed, _, reason), is_taken, name in zip(inputs, taken, projects, strict=True):
        shown = Document(name, display_path(path), listed, None)
        if reason:
            yield shown._replace(column=column_of(reason), reason=reason)
        elif not is_taken:
            yield shown
        else:
            yield _read_object(root, path, shown, max_bytes)


def _read_object(root: str, path: str, shown: Document, max_bytes: int) -> Document:
    try:
        with naming_input(root, path):
            content, num_bytes = _fetch(root, path, shown.num_bytes, max_bytes)
    except OSError as error:
        reason, detail = os_error_reason(error)
        return shown._replace(column=Column.DEAD, reason=reason, detail=detail)
    except DamageError as damage:
        return shown._replace(column=Column.DEAD, reason=damage.reason, detail=damage.detail)
    if content is None:
        return shown._replace(num_bytes=num_bytes, column=Column.FILTERED, reason=Filtered.SIZE)
    return shown._replace(num_bytes=num_bytes, content=content)


def _fetch(root: str, path: str, num_bytes: int, max_bytes: int) -> tuple[bytes | None, int]:
    """Return an object's bytes and their number; None if there are more than `max_bytes`."""
    if num_bytes <= max_bytes:  # one request; opening a file takes two or three
        system, full_path = open_file(root, path)
        content = _fetch_from_web(system, full_path, num_bytes) if is_web(root) else bytes(system.cat_file(full_path))
        return (content if len(content) <= max_bytes else None), len(content)
    with open_input(root, path) as file:
        content = file.read(max_bytes + 1)
        if len(content) <= max_bytes:
            return content, len(content)
        return None, file.seek(0, os.SEEK_END)


def _fetch_from_web(system: Any, path: str, num_bytes: int) -> bytes:  # noqa: ANN401 - fsspec has no annotations
    """Return a file of a web server, which has as many bytes as the server says.

    Raises:
        DamageError: If the server sends fewer.
    """
    from transforms.storage.web import fetch  # it loads aiohttp, which takes a while

    content = fetch(system, path)
    if len(content) < num_bytes and len(content) != system.info(path)["size"]:  # else it has become shorter
        raise DamageError(Dead.TRUNCATED, f"the server sent {len(content):,} of {num_bytes:,} bytes")
    return content
