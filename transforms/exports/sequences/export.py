"""Sequences: rows of one length, made from token shards, packed or padded, and proved by reading them back.

Packing happens inside a unit, a group of token shards or of projects, so its bytes depend on its documents alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cppmill_core import AnyTokenizer

from schemas.export_options import SequenceOptions
from schemas.tables import sequences_schema
from schemas.units import Stage, Unit, UnitReceipt
from transforms.exports.sequences.packing import pack_best_fit
from transforms.exports.sequences.prefixes import NO_IDS, clear_spans, usable_prefix
from transforms.exports.sequences.proofs import prove_sequences
from transforms.exports.sequences.repositories import read_repositories
from transforms.exports.sequences.segments import (
    Encoding,
    RepositoryFile,
    Segment,
    SourceText,
    files_within,
    make_segments,
    platforms_at,
)
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import TokenShard, footer, open_token_shard
from transforms.tokens.tokenizer import TokenizeSettings, open_tokenizer
from transforms.units.batches import list_column, read_row_groups, split_lists

UNIT_TOKENS = 1 << 24
"""Mean tokens of a unit: they are held in memory, and packing gets better the more there are."""

GROUP_TOKENS = 1 << 22
"""About how many positions a row group of sequences has."""

PAD = "<PAD>"
_COLUMNS, _PREFIX, _PLATFORMS = ["doc_id", "project", "token_ids"], "prefix_token_ids", "platform_ids"


@dataclass(frozen=True, kw_only=True)
class SequenceSettings:
    """What a worker needs to make sequences.

    Attributes:
        out: The folder of the export.
        source: The run, its tokenizer, and its policy of BOS and EOS.
        options: What sequences are made of.
    """

    out: OutputFolder
    source: TokenizeSettings
    options: SequenceOptions


def sequence_unit(unit: Unit, settings: SequenceSettings) -> UnitReceipt:
    """Make the sequences of one unit, prove and publish them, and return the receipt.

    Args:
        unit: Its payload: `{"shards": [token shard, …]}`; of repositories `{"shards", "projects"}`, as
            `read_repositories` takes them.
        settings: The run and the options.

    Raises:
        IntegrityError: If a shard is not the run's, or the written file is not what was meant.
    """
    source, options = settings.source, settings.options
    tokenizer = open_tokenizer(source)
    encoding = Encoding(tokenizer, source.options, source.threads)
    shards = [TokenShard(**shard) for shard in unit.payload["shards"]]
    if options.repositories:
        rows = unit.payload["projects"]
        texts = read_repositories(source.out, shards, rows, encoding, platforms=options.platform_ids)
    else:
        texts = list(read_texts(source.out, shards, options))
    segments, ledger = make_segments(texts, options, encoding)
    schema = sequences_schema(tokenizer.vocab_size, options)

    def write(path: Path) -> int:
        rows = make_rows(segments, texts, options, pad_id=pad_id(tokenizer), schema=schema)
        number = _write(path, rows, schema, unit.key, tokenizer)
        proved = prove_sequences(path, texts, options, encoding, pad_id=pad_id(tokenizer), ledger=ledger)
        ledger.update(proved)
        return number

    output = settings.out.publish(f"sequences/part-{unit.key}.parquet", write)
    inputs = {shard.path: shard.sha256 for shard in shards}
    return UnitReceipt(
        stage=Stage.SEQUENCES, key=unit.key, outputs=(output,), totals=dict(sorted(ledger.items())), inputs=inputs
    )


def read_texts(run: OutputFolder, shards: Sequence[TokenShard], options: SequenceOptions) -> Iterator[SourceText]:
    """Yield the documents of token shards, in order, with the prefixes and platforms that the options ask for."""
    asked = ((_PREFIX, bool(options.prefix)), (_PLATFORMS, options.platform_ids))
    columns = [*_COLUMNS, *(name for name, is_asked in asked if is_asked)]
    for shard in shards:
        with open_token_shard(run, shard) as file:
            for batch in read_row_groups(file, columns):
                yield from _texts(batch, options)


def pad_id(tokenizer: AnyTokenizer) -> int:
    """Return the id that fills a row after its last token: `<PAD>`, or 0 if the tokenizer has none."""
    try:
        return tokenizer.control_id(PAD)
    except cppmill_core.InvalidInputError:
        return 0


def _texts(batch: pa.RecordBatch, options: SequenceOptions) -> Iterator[SourceText]:
    names = (batch["doc_id"].to_pylist(), batch["project"].to_pylist())
    lists = [
        split_lists(list_column(batch, name)) if name in batch.schema.names else repeat(NO_IDS, batch.num_rows)
        for name in ("token_ids", _PREFIX, _PLATFORMS)
    ]
    for doc_id, project, ids, line, platforms in zip(*names, *lists, strict=True):
        prefix = usable_prefix(line, options)
        yield SourceText(str(doc_id), str(project), ids, 1, len(ids), prefix=prefix, platforms=platforms)


def _write(path: Path, rows: Iterator[pa.RecordBatch], schema: pa.Schema, key: str, tokenizer: AnyTokenizer) -> int:
    number = largest = 0
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False, write_statistics=False) as writer:
        for batch in rows:
            writer.write_batch(batch)
            number += batch.num_rows
            column: Any = batch["token_ids"]
            largest = max(largest, int(column.flatten().to_numpy().max(initial=0)))
        writer.add_key_value_metadata(footer(key, tokenizer, largest))
    return number


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
        pad_id: The id after the last token.
        schema: What `sequences_schema` returns.
    """
    if options.mode == "pack":
        places = pack_best_fit([len(segment.ids) for segment in segments], options.length)
    else:
        places = [[number] for number in range(len(segments))]
    step = max(1, GROUP_TOKENS // options.length)
    for start in range(0, len(places), step):
        rows = [[segments[number] for number in row] for row in places[start : start + step]]
        yield assemble(rows, texts, options, pad_id=pad_id, schema=schema)


def assemble(
    rows: Sequence[Sequence[Segment]],
    texts: Sequence[SourceText],
    options: SequenceOptions,
    *,
    pad_id: int,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Return sequences as rows of the table.

    A position has loss if its id is predicted from the ids before it in the same segment: so not the first of a
    segment, no padding, and no prefix if the options say so.
    """
    length = options.length
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
    if options.cursor_rate:
        columns["cursors"] = [[segment.cursor for segment in row] for row in rows]
    if options.prefix:
        columns |= _prefix_columns(rows, starts)
    if options.prefix == "no-loss":
        clear_spans(loss, columns["prefix_starts"], columns["prefix_ends"])
    if options.platform_ids:
        columns["platform_ids"] = [[platforms_at(texts[part.text], part.first) for part in row] for row in rows]
    if "file_starts" in schema.names:
        files = [_files(row, places, texts) for row, places in zip(rows, starts, strict=True)]
        columns["file_doc_ids"] = [[file.doc_id for file in row] for row in files]
        columns["file_starts"] = [[file.start for file in row] for row in files]
        columns["file_platform_ids"] = [[file.platforms for file in row] for row in files]
    return pa.RecordBatch.from_arrays([_array(columns[field.name], field.type) for field in schema], schema=schema)


def _prefix_columns(rows: Sequence[Sequence[Segment]], starts: Sequence[Sequence[int]]) -> dict[str, list[list[int]]]:
    """Return where in each sequence the prefixes of its segments are."""
    placed = [list(zip(row, places[:-1], strict=True)) for row, places in zip(rows, starts, strict=True)]
    return {
        "prefix_starts": [[start + segment.prefix.start for segment, start in row] for row in placed],
        "prefix_ends": [[start + segment.prefix.end for segment, start in row] for row in placed],
    }


def _files(row: Sequence[Segment], starts: Sequence[int], texts: Sequence[SourceText]) -> list[RepositoryFile]:
    """Return the files that begin in a sequence, with their places in it."""
    return [
        file._replace(start=start + file.start - segment.first)
        for segment, start in zip(row, starts[:-1], strict=True)
        for file in files_within(texts[segment.text], segment.first, segment.end)
    ]


def _array(values: Any, kind: pa.DataType) -> pa.Array[Any]:  # noqa: ANN401 - a matrix, or lists
    if not pa.types.is_fixed_size_list(kind):
        return pa.array(values, kind)
    flat: pa.Array[Any] = pa.array(values.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, type=kind)  # type: ignore[call-overload, no-any-return]
