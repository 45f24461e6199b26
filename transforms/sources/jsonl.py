"""Documents in JSONL files: one JSON object per line, with the text under a key that the options name.

Blank lines are skipped. A line that is not an object, or whose text is missing or not Unicode, is counted as dead.

The native core reads lines in batches. It leaves those alone of which it is not sure to say what the parser of the
standard library says, broken ones among them; they are read here, one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.options import DEFAULT_CONTENT_COLUMN
from schemas.reasons import Column, Dead, Filtered
from schemas.tables import UNDIGESTED
from transforms.sources.batches import BATCH_ROWS, gather
from transforms.sources.document import TEXT, Archive, Document, label, missing_column
from transforms.sources.license_terms import read_terms
from transforms.sources.streams import MemberStream

_DECODER = json.JSONDecoder()
_BYTES_PER_CHARACTER = 6
_SLACK_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
_KEYS = {name: re.compile(rb'"%s"[ \t]*:' % name.encode()) for name in (DEFAULT_CONTENT_COLUMN, TEXT)}
"""How the keys that usually have the text are written."""


def iter_jsonl(archive: Archive, stream: MemberStream) -> Iterator[Document | pa.RecordBatch]:
    """Yield the documents of a JSONL file in order, one by one or in batches of UNDIGESTED.

    A line is held up to the longest form in which JSON can write the largest document; a longer one is
    `filtered[size]`.

    Raises:
        DamageError: At its end, for damage that cut no line.
    """
    lines = _Lines(archive)
    for data, num_bytes in stream.line_blocks(_BYTES_PER_CHARACTER * archive.options.max_document_bytes + _SLACK_BYTES):
        if stream.damage and not data.endswith(b"\n"):
            yield lines.archive.dead(lines.next_name(), stream.damage.reason, stream.damage.detail, num_bytes=num_bytes)
            return
        if data:
            yield from lines.read(data)
        else:
            detail = "a longer line than any document allows"
            yield lines.archive.filtered(lines.next_name(), Filtered.SIZE, num_bytes, detail=detail)
    lines.next_name()
    if lines.is_settled:
        archive.warn_of_missing(lines.seen)
    if stream.damage:
        raise stream.damage


@dataclass
class _Lines:
    """The lines of a file.

    Attributes:
        archive: The file; from the first object on it says where the text is.
        number: How many lines have come.
        is_settled: Whether there was an object.
        seen: Keys of path, project and licence that some line had.
        rivals: Keys that should have had the text, if the first object has others alone.
    """

    archive: Archive
    number: int = 0
    is_settled: bool = False
    rivals: tuple[str, ...] = ()
    seen: set[str] = field(default_factory=set)

    def next_name(self) -> str:
        """Count a line, and return its name."""
        self.number += 1
        self.archive.count_row()
        return f"line-{self.number}"

    def read(self, data: bytes) -> Iterator[Document | pa.RecordBatch]:
        """Yield the documents of whole lines, the last of which needs no line feed."""
        place, has_rivals = 0, None
        while place < len(data):
            if self.is_settled and has_rivals is None:
                has_rivals = any(_KEYS[name].search(data, place) for name in self.rivals)
            if has_rivals is False:
                rows, place = self._read_batch(data, place)
                if rows.num_rows:
                    yield rows
            else:
                end = data.find(b"\n", place) + 1 or len(data)
                line, place, name = data[place:end], end, self.next_name()
                if line.strip():
                    yield self._read_line(name, line)

    def _read_line(self, name: str, line: bytes) -> Document:
        """Return the document of one line."""
        record = _record(line.removeprefix(_BOM) if self.number == 1 else line)
        if isinstance(record, dict):
            if not self.is_settled:
                self._settle(record)
            self.seen.update(key for key in self._keys.values() if isinstance(record.get(key), str | list))
            if not record.keys().isdisjoint(self.rivals):
                found = self.archive.options.content_column
                record = f"the first object has text in {found!r} alone; name the text's with --content-column"
        return _document(self.archive, name, record, len(line))

    @cached_property
    def _keys(self) -> dict[str, str]:
        """The keys of what describes a document."""
        options = self.archive.options
        keys = {"path": options.path_column, "project": options.project_column, "license": options.license_column}
        return {name: key for name, key in keys.items() if key}

    def _settle(self, first: dict[str, Any]) -> None:
        """Decide by the first object where the text is."""
        given = self.archive.options.content_column
        self.archive, self.is_settled = self.archive.with_text_column(_columns(first)), True
        found = self.archive.options.content_column
        self.rivals = tuple(name for name in _KEYS if name != found) if found != given else ()

    def _read_batch(self, data: bytes, place: int) -> tuple[pa.RecordBatch, int]:
        """Return the documents of the next lines from a place on, and the place behind them."""
        archive, options, first = self.archive, self.archive.options, self.number + 1
        found, lines, end = cppmill_core.read_json_lines(
            data,
            place,
            content=_utf8(options.content_column),
            path=_utf8(options.path_column),
            project=_utf8(options.project_column) if options.project_column else None,
            license=_utf8(options.license_column) if options.license_column else None,
            max_lines=min(BATCH_ROWS, max(1, archive.rows_left)),
        )
        archive.count_row(lines)
        self.number += lines
        is_read = found.column("is_read").to_numpy(zero_copy_only=False)
        if is_read.all():
            return self._columns(found, first), end
        left = found.take(np.flatnonzero(~is_read))
        places = zip(*(left.column(name).to_pylist() for name in ("line", "start", "end")), strict=True)
        others = [self._read_line(f"line-{first + line}", data[start:stop]) for line, start, stop in places]
        batches = [self._columns(found.take(np.flatnonzero(is_read)), first), gather(others)]
        order = np.argsort(np.argsort(~is_read, kind="stable"), kind="stable")
        return pa.Table.from_batches(batches).combine_chunks().take(order).to_batches()[0], end

    def _columns(self, found: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return what the native core read as a batch of UNDIGESTED; the first of its lines has the number `first`."""
        archive, rows = self.archive, found.num_rows
        self.seen.update(key for name, key in self._keys.items() if found.column(name).null_count < rows)
        names, drops = self._names(found, first)
        kept = pa.array(drops, pa.string()).is_null() if any(drops) else pa.repeat(True, rows)
        content: Any = found.column("content")
        reasons = [str(drop or "") for drop in drops]
        projects = _labels(found.column("project"))
        is_named = pc.and_(kept, pc.not_equal(projects, pa.scalar("")))
        columns: dict[str, Any] = {
            "project": pc.coalesce(pc.if_else(is_named, projects, None), archive.project),
            "path": names,
            "num_bytes": pc.binary_length(content).cast(pa.uint64()),
            "column": pc.if_else(kept, str(Column.KEPT), str(Column.FILTERED)),
            "reason": pa.array(reasons, pa.string()) if drops else pa.repeat("", rows),
            "detail": pa.repeat("", rows),
            "license": pc.if_else(kept, _labels(found.column("license")), None),
            "terms": pa.nulls(rows, pa.string()),
            "content": pc.if_else(kept, content, None) if any(drops) else content,
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in UNDIGESTED.names], schema=UNDIGESTED)

    def _names(self, found: pa.RecordBatch, first: int) -> tuple[pa.Array[Any], list[Filtered | None]]:
        """Return the paths of documents, and the filter that drops each by its name; an empty list drops none."""
        archive, line = self.archive, found.column("line")
        numbers: Any = pc.add(line, first)
        if found.num_rows and archive.options.sample >= 1.0 and found.column("path").null_count == found.num_rows:
            ends = [f"line-{numbers[place]}" for place in (0, -1)]
            if all(archive.name(name) == f"{archive.path}/{name}" for name in ends):
                texts: Any = pc.binary_join_element_wise(f"{archive.path}/line-", numbers.cast(pa.string()), "")
                return texts, []
        paths: list[Any] = found.column("path").to_pylist()
        members = [path or f"line-{number}" for path, number in zip(paths, numbers.to_pylist(), strict=True)]
        drops = [archive.drops(name, has_extension=name is path) for name, path in zip(members, paths, strict=True)]
        return pa.array([archive.name(name) for name in members], pa.string()), drops


def _labels(texts: pa.Array[Any]) -> pa.Array[Any]:
    """Return texts of projects or licences as `label` does; few differ."""
    found = texts.dictionary_encode()
    names: list[Any] = found.dictionary.to_pylist()
    return pa.array([label(name) for name in names], pa.string()).take(found.indices)


def _utf8(key: str) -> bytes:
    """Return a key as bytes; one that is no Unicode is in no line that the native core reads."""
    return key.encode("utf-8", "surrogatepass")


def _record(line: bytes) -> dict[str, Any] | str:
    """Return the object of a line, or what is wrong with it."""
    try:
        record = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return f"not JSON ({type(error).__name__})"
    return record if isinstance(record, dict) else "not a JSON object"


def _columns(record: dict[str, Any]) -> dict[str, bool]:
    """Return whether each key of an object has text."""
    return {key: isinstance(value, str) for key, value in record.items()}


def _document(archive: Archive, member: str, record: dict[str, Any] | str, num_bytes: int) -> Document:
    """Return the document of a line of so many bytes; `member` names it if nothing in the line does."""
    options = archive.options
    if isinstance(record, str):
        return archive.dead(member, Dead.BAD_RECORD, record, num_bytes=num_bytes)
    path = record.get(options.path_column)
    name = path if isinstance(path, str) and path else member
    content = _content(record, options.content_column)
    drop = archive.drops(name, has_extension=name is path)
    if drop:
        return archive.filtered(name, drop, len(content) if isinstance(content, bytes) else num_bytes)
    if not isinstance(content, bytes):
        return archive.dead(name, *content, num_bytes=num_bytes)
    return archive.document(
        name,
        content,
        project=label(record.get(options.project_column)) if options.project_column else None,
        license_name=label(record.get(options.license_column)) if options.license_column else None,
        terms=read_terms(record.get(options.license_column)) if options.license_column else None,
    )


def _content(record: dict[str, Any], key: str) -> bytes | tuple[Dead, str]:
    """Return the text of a record as UTF-8, or why there is none."""
    if key not in record:
        return Dead.MISSING_COLUMN, missing_column(key, record)
    text = record[key]
    if not isinstance(text, str):
        return Dead.BAD_CONTENT, f"{key!r} is no text"
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return Dead.BAD_CONTENT, f"{key!r} has a lone surrogate"
