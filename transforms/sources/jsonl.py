"""Documents in JSONL files: one JSON object per line, with the text under a key that the options name.

Blank lines are skipped. A line that is not an object, or whose text is missing or not Unicode, is counted as dead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from schemas.reasons import Dead, Filtered
from transforms.sources.document import Archive, DamageError, Document, label, missing_column
from transforms.sources.license_terms import read_terms
from transforms.sources.streams import MemberStream

_DECODER = json.JSONDecoder()
_BYTES_PER_CHARACTER = 6
_SLACK_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"


def iter_jsonl(archive: Archive, stream: MemberStream) -> Iterator[Document]:
    """Yield the documents of a JSONL file in order.

    A line is held up to the longest form in which JSON can write the largest document; a longer one is
    `filtered[size]`.

    Raises:
        DamageError: At its end, for damage that cut no line.
    """
    max_bytes = _BYTES_PER_CHARACTER * archive.options.max_document_bytes + _SLACK_BYTES
    number, is_settled = 0, False
    while True:
        line, length, whole = stream.read_line(max_bytes)
        number += 1
        archive.count_row()
        if stream.damage and (not length or not line.endswith(b"\n")):
            yield from _cut_line(archive, number, length, stream.damage)
            return
        if not length:
            return
        member = f"line-{number}"
        if not whole:
            yield archive.filtered(member, Filtered.SIZE, length, detail="a longer line than any document allows")
        elif line.strip():
            record = _record(line.removeprefix(_BOM) if number == 1 else line)
            if isinstance(record, dict) and not is_settled:
                archive, is_settled = archive.with_text_column(_columns(record)), True
            yield _document(archive, member, record, len(line))


def _cut_line(archive: Archive, number: int, length: int, damage: DamageError) -> Iterator[Document]:
    """Yield the entry of a line that damage cut; raise where it cut none."""
    if not length:
        raise damage
    yield archive.dead(f"line-{number}", damage.reason, damage.detail, num_bytes=length)


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
