"""Rows of sequences: segments side by side, with the mask that keeps training inside of documents."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.export_options import SequenceOptions
from transforms.exports.sequences.packing import pack_best_fit
from transforms.exports.sequences.segments import RepositoryFile, Segment, SourceText

GROUP_TOKENS = 1 << 22
"""About how many positions a row group of sequences has."""


def make_rows(
    segments: Sequence[Segment],
    texts: Sequence[SourceText],
    options: SequenceOptions,
    *,
    pad_id: int,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Yield the sequences of segments, a row group at a time.

    Args:
        segments: Their segments; each has at most `options.length` tokens.
        texts: What `Segment.text` counts.
        options: Length and mode.
        pad_id: The id behind the last token.
        schema: What `sequences_schema` returns.
    """
    if options.mode == "pack":
        places = pack_best_fit([len(segment.ids) for segment in segments], options.length)
    else:
        places = [[number] for number in range(len(segments))]
    step = max(1, GROUP_TOKENS // options.length)
    for start in range(0, len(places), step):
        rows = [[segments[number] for number in row] for row in places[start : start + step]]
        yield assemble(rows, texts, options.length, pad_id=pad_id, schema=schema)


def assemble(
    rows: Sequence[Sequence[Segment]], texts: Sequence[SourceText], length: int, *, pad_id: int, schema: pa.Schema
) -> pa.RecordBatch:
    """Return sequences as rows of the table.

    A position has loss if its id is to be predicted from those before it in the same segment: so not the first of a
    segment, and no padding.
    """
    starts = [[0, *accumulate(len(segment.ids) for segment in row)] for row in rows]
    ids = np.full((len(rows), length), pad_id, schema.field("token_ids").type.value_type.to_pandas_dtype())
    loss = np.zeros((len(rows), length), np.bool_)
    for number, (row, places) in enumerate(zip(rows, starts, strict=True)):
        np.concatenate([segment.ids for segment in row], out=ids[number, : places[-1]])
        loss[number, : places[-1]] = True
        loss[number, places[:-1]] = False
    columns: dict[str, Any] = {
        "token_ids": ids,
        "loss_mask": loss,
        "num_tokens": [places[-1] for places in starts],
        "doc_ids": [[texts[segment.text].name for segment in row] for row in rows],
        "starts": [places[:-1] for places in starts],
        "first_tokens": [[segment.first for segment in row] for row in rows],
        "fim": [[int(segment.split.kind) for segment in row] for row in rows],
        "fim_starts": [[segment.split.start for segment in row] for row in rows],
        "fim_ends": [[segment.split.end for segment in row] for row in rows],
    }
    if "file_starts" in schema.names:
        files = [_files(row, places, texts) for row, places in zip(rows, starts, strict=True)]
        columns["file_doc_ids"] = [[file.doc_id for file in row] for row in files]
        columns["file_starts"] = [[file.start for file in row] for row in files]
    return pa.RecordBatch.from_arrays([_array(columns[field.name], field.type) for field in schema], schema=schema)


def _files(row: Sequence[Segment], starts: Sequence[int], texts: Sequence[SourceText]) -> list[RepositoryFile]:
    """Return the files that begin in a sequence, with their places in it."""
    return [
        RepositoryFile(start + file.start - segment.first, file.doc_id)
        for segment, start in zip(row, starts[:-1], strict=True)
        for file in texts[segment.text].files[slice(*_within(segment, texts[segment.text].files))]
    ]


def _within(segment: Segment, files: Sequence[RepositoryFile]) -> tuple[int, int]:
    """Return which files of a text, of those in order, begin in a segment of it."""
    first, end = (bisect_left(files, place, key=lambda file: file.start) for place in (segment.first, segment.end))
    return first, end


def _array(values: Any, kind: pa.DataType) -> pa.Array[Any]:  # noqa: ANN401 - a matrix, or lists
    if not pa.types.is_fixed_size_list(kind):
        return pa.array(values, kind)
    flat: pa.Array[Any] = pa.array(values.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, type=kind)  # type: ignore[call-overload, no-any-return]
