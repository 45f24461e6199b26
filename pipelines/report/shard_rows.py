"""The page of the rows of one Parquet file of a run: its columns, text as text, ids as the tokens that they are.

Only as many rows as are shown are read, and long values are cut, so the page stays small.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import pyarrow.parquet as pq

from pipelines.pages import render_page
from pipelines.report.plots import shortened
from pipelines.tokenizers.show import HUES, Palette, Piece, shown_text
from schemas.errors import ConfigError
from schemas.printing import printable
from tokenizer_build.bands import Strength
from transforms.storage.folder import OutputFolder

SHOWN_BYTES, SHOWN_TOKENS, SHOWN_CHARACTERS = 8_000, 1_000, 500
"""How much is shown of a text, of a row's tokens, and of any other value."""

_LONGEST_TITLE = 40
_TITLES = ("project", "path", "token", "word", "name", "namespace")


def render_rows(out: OutputFolder, name: str, *, first: int, rows: int, palette: Palette | None) -> tuple[str, str]:
    """Return the page of some rows of a file, and the figures to print.

    Args:
        out: The folder of the run.
        name: The file, relative to it.
        first: The first row, from 0.
        rows: How many.
        palette: What is known of the ids; None if there is no tokenizer.

    Raises:
        ConfigError: If there is no such file, it is no Parquet file, or it has no such row.
    """
    file_path = PurePosixPath(name)
    if file_path.suffix != ".parquet" or ".." in file_path.parts or file_path.is_absolute() or not out.exists(name):
        raise ConfigError(f"--shard {name}: no such Parquet file in {out.root}; name one as its receipt does")
    with out.open_ranges(name) as source, pq.ParquetFile(source) as file:
        total = file.metadata.num_rows
        if first >= max(total, 1):
            raise ConfigError(f"--first {first}: {name} has {total:,} rows, counted from 0")
        schema = [(field.name, str(field.type)) for field in file.schema_arrow]
        shown = [_row(first + place, row, palette) for place, row in enumerate(_read(file, first, rows))]
    page = render_page(
        "rows.html.j2",
        title=shortened(name, _LONGEST_TITLE),
        place=out.where(name),
        columns=schema,
        total=total,
        rows=shown,
        hues=HUES,
    )
    return page, f"rows {first:,} to {first + len(shown) - 1:,} of {total:,}" if shown else f"no rows of {total:,}"


def _read(file: pq.ParquetFile, first: int, rows: int) -> Iterator[dict[str, Any]]:
    """Yield rows; row groups before the first and after the last of them are not read."""
    begin = 0
    for place in range(file.num_row_groups):
        end = begin + file.metadata.row_group(place).num_rows
        if end > first and begin < first + rows:
            at = max(first - begin, 0)
            table = file.read_row_group(place)
            yield from table.slice(at, min(end, first + rows) - begin - at).to_pylist()
        begin = end


def _row(number: int, row: Mapping[str, Any], palette: Palette | None) -> dict[str, Any]:
    """Return what the page shows of a row: what names it, its short values, its text and its tokens."""
    ids: list[int] | None = row.get("token_ids") if palette is not None else None
    tokens = None if palette is None or ids is None else _tokens(ids, palette)
    shown_apart = {"token_ids"} if tokens is not None else set()
    short = {k: value for k, value in row.items() if not isinstance(value, bytes) and k not in shown_apart}
    return {
        "number": number,
        "title": " · ".join(_cut(str(row[name])) for name in _TITLES if row.get(name)),
        "cells": [
            (name, _cut(value if isinstance(value, str) else json.dumps(value))) for name, value in short.items()
        ],
        "texts": [(name, _text(value)) for name, value in row.items() if isinstance(value, bytes)],
        "tokens": tokens,
        "more_tokens": max(0, len(ids or ()) - SHOWN_TOKENS),
    }


def _tokens(ids: list[int], palette: Palette) -> list[dict[str, Any]]:
    """Return the first tokens of a row, each with its text, band and strength."""
    pieces = (Piece(number, shown_text(palette.entries[number].token)) for number in ids[:SHOWN_TOKENS])
    return [
        {
            "id": piece.id,
            "text": piece.text,
            "band": palette.bands[piece.id],
            "is_atomic": palette.entries[piece.id].strength is Strength.ATOMIC,
        }
        for piece in pieces
    ]


def _text(value: bytes) -> str:
    text = printable(value[:SHOWN_BYTES].decode("utf-8", "backslashreplace"))
    return f"{text}\n… {len(value) - SHOWN_BYTES:,} more bytes" if len(value) > SHOWN_BYTES else text


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[: SHOWN_CHARACTERS - 1]}…"
