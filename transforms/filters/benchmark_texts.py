"""The texts of a benchmark: problems and solutions in the files that the user names for decontamination."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import parse_json
from schemas.errors import ConfigError
from schemas.options import DEFAULT_EXTENSIONS, IngestOptions
from transforms.sources.document import Archive, display_path
from transforms.sources.files import open_archive, open_input
from transforms.sources.listing import Input, Kind, codec_of, list_inputs
from transforms.sources.streams import MemberStream
from transforms.sources.wide_text import MARKS

_READ = IngestOptions(extensions=(*DEFAULT_EXTENSIONS, "txt"))
_MAX_LINE_BYTES = 1 << 28
_ENCODED = (".gz", ".xz", ".bz2", ".zst", ".json", ".ipynb")
"""How files end whose text is compressed or has escapes, and which are not read."""


class BenchmarkText(NamedTuple):
    """A text of a benchmark.

    Attributes:
        name: Its file, relative to the place that the user named, with that folder's own name.
        line: Its line in a JSONL file or row in a Parquet file; 0 if the whole file is the text.
        content: The text.
    """

    name: str
    line: int
    content: bytes


def read_texts(place: str) -> Iterator[BenchmarkText]:
    """Yield the texts of a place that the user names, in order.

    C++ and text are read as they are; of JSONL and Parquet every string, of Parquet also what is binary. Of a folder
    other files are left alone.

    Args:
        place: A file, a folder, a glob, or an fsspec URL of these.

    Raises:
        ConfigError: If it does not exist, or something in it is a link, cannot be read, or is no plain text where that
            is asked for.
    """
    try:
        listing = list_inputs([os.path.expanduser(place)], _READ)  # noqa: PTH111 - a URL is not a path
    except ConfigError as error:
        raise ConfigError(f"ingest.decontaminate: {error}") from error
    if listing.links:
        name = display_path(listing.links[0][1])
        raise ConfigError(f"ingest.decontaminate: {place}: {name} is a link, which is not read; copy what it leads to")
    (root,) = listing.roots
    for item in listing.inputs:
        name = display_path(item.path if root.is_file else f"{root.name}/{item.path}")
        if item.reason or item.kind in (Kind.TAR, Kind.ZIP):
            raise ConfigError(f"ingest.decontaminate: {place}: {name}: cannot be read ({item.reason or 'unpack it'})")
        if item.kind == Kind.JSONL:
            yield from _jsonl_texts(root.location, item, name)
        elif item.kind == Kind.PARQUET:
            yield from _parquet_texts(root.location, item, name)
        elif root.is_file or item.path.rpartition(".")[2].lower() in _READ.extensions:
            with open_input(root.location, item.path) as file:
                content = file.read()
            if content.startswith(MARKS) or (root.is_file and (b"\0" in content or name.lower().endswith(_ENCODED))):
                raise ConfigError(f"ingest.decontaminate: {place}: {name}: no plain text; unpack or convert it")
            yield BenchmarkText(name, 0, content)


def _jsonl_texts(root: str, item: Input, name: str) -> Iterator[BenchmarkText]:
    """Yield every string of every line.

    Raises:
        ConfigError: For a line that is not JSON.
    """
    archive = Archive(item.path, item.num_bytes, name, _READ)
    stream = MemberStream(archive, lambda: open_input(root, item.path), codec_of(item.path))
    number = 0
    try:
        while (line := stream.read_line(_MAX_LINE_BYTES)[0]) or stream.damage:
            number += 1
            if stream.damage:
                raise ConfigError(f"ingest.decontaminate: {name}:{number}: {stream.damage}")
            strings = _strings(parse_json(line)) if line.strip() else ()
            yield from (BenchmarkText(name, number, _bytes_of(text)) for text in strings)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"ingest.decontaminate: {name}:{number}: not JSON ({error})") from error
    finally:
        stream.close()


def _parquet_texts(root: str, item: Input, name: str) -> Iterator[BenchmarkText]:
    """Yield every string of every row; the row's number is the line."""
    try:
        with open_archive(root, item.path, is_stream=False) as file:
            rows: list[Any] = pq.read_table(file).to_pylist()
    except pa.ArrowException as error:
        raise ConfigError(f"ingest.decontaminate: {name}: not Parquet ({error})") from error
    for number, row in enumerate(rows, start=1):
        yield from (BenchmarkText(name, number, _bytes_of(text)) for text in _strings(row))


def _bytes_of(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


def _strings(value: object) -> Iterator[str | bytes]:
    """Yield the strings in a JSON value, not its keys, or in a row of Parquet, whose text may be binary."""
    if isinstance(value, str | bytes):
        yield value
    elif isinstance(value, dict | list):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _strings(entry)
