"""The program of `cppmill byte-tables`: it makes byte tables of a tokenizer and checks them on a run's token shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from cppmill_core import CorruptDataError, open_any
from cppmill_core.byte_tables import ByteTables

from configs.outputs import check_file
from pipelines.tokenizers.codec import load_tokenizer
from pipelines.tokenizers.texts import read_shards
from schemas.errors import ConfigError, IntegrityError
from schemas.files import write_file
from transforms.records.receipts import check_named, read_receipt
from transforms.storage.folder import OutputFolder

_COLUMNS = ["project", "path", "num_bytes", "token_ids"]


def write_byte_tables(tokenizer: Path, file: Path, *, run: str | None) -> Iterator[str]:
    """Write the byte tables of a tokenizer, after they were proven.

    Args:
        tokenizer: The tokenizer directory, a SentencePiece model, or a tokenizer.json.
        file: The .npz file to write.
        run: The folder, or URL, of a finished run with this tokenizer, to prove them on.

    Yields:
        What to print.

    Raises:
        ConfigError: If there is no tokenizer, no finished run, or one with another tokenizer; or the file cannot be
            written there.
        IntegrityError: If the tables do not give the bytes of a document.
    """
    check_file(file, option="--out")
    if file.exists() and tokenizer.exists() and file.samefile(tokenizer):
        raise ConfigError(f"--out {file}: it is the tokenizer; name another file")
    tables = _make(tokenizer)
    proven = None if run is None else check_byte_tables(tables, run)
    write_file(file, tables.to_bytes())
    text = int((~tables.is_boundary).sum())
    yield (
        f"{file}: {tables.vocab_size:,} ids of tokenizer {tables.tokenizer}, {text:,} of them text, "
        f"{int(tables.base_bytes.max(initial=0)):,} bytes at most ({tables.convention})"
    )
    if proven is not None:
        yield proven


def check_byte_tables(tables: ByteTables, run: str) -> str:
    """Compare the bytes of every document of a run with what the tables count.

    Returns:
        What to print: a line with the figures.

    Raises:
        ConfigError: If there is no finished run, or it has another tokenizer.
        IntegrityError: If they differ, naming the first document; or if the run lacks a shard that its receipt names.
    """
    out = OutputFolder(run)
    receipt = read_receipt(out, argument="--check")
    if receipt["tokenizer"]["digest"] != tables.tokenizer:
        raise ConfigError(
            f"--check {run}: made with tokenizer {receipt['tokenizer']['digest']}, but these tables are of "
            f"{tables.tokenizer}; give the tokenizer of the run"
        )
    documents = num_bytes = 0
    shards = [shard["path"] for shard in receipt["dataset"]["shards"]]
    check_named(out, receipt, shards)
    for batch in read_shards(out, shards, _COLUMNS):
        num_bytes += _check_batch(tables, batch)
        documents += batch.num_rows
    tokens = receipt["dataset"]["tokens"]
    return f"{run}: correct for each of {documents:,} documents: {num_bytes:,} bytes in {tokens:,} tokens"


def _check_batch(tables: ByteTables, batch: pa.RecordBatch) -> int:
    counted = tables.count_documents(cast("pa.ListArray[Any]", batch["token_ids"]))
    real = np.asarray(batch["num_bytes"]).astype(np.int64)
    wrong = np.flatnonzero(counted != real)
    if len(wrong):
        row = int(wrong[0])
        raise IntegrityError(
            f"{batch['project'][row]}/{batch['path'][row]}: {real[row]:,} bytes, the byte tables count "
            f"{counted[row]:,}; do not use them"
        )
    return int(real.sum())


def _make(tokenizer: Path) -> ByteTables:
    if not tokenizer.is_file():
        return ByteTables.of(load_tokenizer(tokenizer))
    try:
        if tokenizer.suffix == ".json":
            return ByteTables.of(open_any(tokenizer))
        return ByteTables.of_sentencepiece(tokenizer)
    except (CorruptDataError, OSError) as error:
        raise ConfigError(
            f"--tokenizer {error}; it takes a tokenizer directory, a SentencePiece .model or a tokenizer.json"
        ) from error
