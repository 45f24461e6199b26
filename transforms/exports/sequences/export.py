"""Sequences: token shards to rows of one length, packed or padded, and proved by reading them back.

Packing happens inside a unit, a group of token shards or of projects, so the bytes depend on its documents alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq
from cppmill_core import AnyTokenizer

from schemas.export_options import SequenceOptions
from schemas.tables import sequences_schema
from schemas.units import Stage, Unit, UnitReceipt
from transforms.exports.sequences.proofs import prove_sequences
from transforms.exports.sequences.repositories import read_repositories
from transforms.exports.sequences.rows import make_rows
from transforms.exports.sequences.segments import Encoding, SourceText, make_segments
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import TokenShard, footer, open_token_shard
from transforms.tokens.tokenizer import TokenizeSettings, open_tokenizer
from transforms.units.batches import list_column, read_row_groups, split_lists

UNIT_TOKENS = 1 << 24
"""Mean tokens of a unit: they are held in memory, and packing gets better the more there are."""

PAD = "<PAD>"
_COLUMNS = ["doc_id", "project", "token_ids"]


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
        texts = read_repositories(source.out, shards, unit.payload["projects"], encoding)
    else:
        texts = list(read_texts(source.out, shards))
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


def read_texts(run: OutputFolder, shards: Sequence[TokenShard]) -> Iterator[SourceText]:
    """Yield the documents of token shards, in order."""
    for shard in shards:
        with open_token_shard(run, shard) as file:
            for batch in read_row_groups(file, _COLUMNS):
                yield from _texts(batch)


def pad_id(tokenizer: AnyTokenizer) -> int:
    """Return the id that fills a row behind its last token: that of `<PAD>`, 0 if the tokenizer has none."""
    try:
        return tokenizer.control_id(PAD)
    except cppmill_core.InvalidInputError:
        return 0


def _texts(batch: pa.RecordBatch) -> Iterator[SourceText]:
    columns = (batch["doc_id"].to_pylist(), batch["project"].to_pylist(), split_lists(list_column(batch, "token_ids")))
    for doc_id, project, ids in zip(*columns, strict=True):
        yield SourceText(str(doc_id), str(project), ids, 1, len(ids))


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
