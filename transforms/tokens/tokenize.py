"""Tokenize: documents shards to token shards, one for one.

A row group of documents goes through one call of the native encoder and becomes a row group of tokens. BOS and EOS
stand where the policy puts them; nothing else inserts control ids. While one row group is encoded, the next is read and
the one before is written.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.options import TokenizeOptions
from schemas.tables import DATA_FORMAT_VERSION, tokens_schema
from schemas.units import Stage, Unit, UnitReceipt
from transforms.storage.folder import OutputFolder
from transforms.units.batches import list_column
from transforms.units.prefetch import prefetch

BOS, EOS = "<BOS>", "<EOS>"
_ENCODING = threading.Lock()
"""One call encodes at a time, on all threads: their caches, tens of megabytes each, serve all units in flight."""

_LOADING = threading.Lock()
"""Units that begin at the same time wait for one tokenizer."""

_COLUMNS = ["doc_id", "project", "path", "content", "num_bytes", "platform_ids", "platform_info"]
MAX_ROW_GROUP_TOKENS = 1 << 24
"""A row group of tokens is closed before it holds more; a single longer document stands alone."""


@dataclass(frozen=True, kw_only=True)
class TokenizeSettings:
    """What a worker needs to tokenize.

    Attributes:
        out: The output folder; the tokenizer stands in its `tokenizer/`.
        tokenizer_digest: SHA-256 of the manifest that the plan was made for.
        options: BOS, EOS and prefix policy.
        threads: Threads of the native core.
    """

    out: OutputFolder
    tokenizer_digest: str
    options: TokenizeOptions
    threads: int = 1


def tokenize_unit(unit: Unit, settings: TokenizeSettings) -> UnitReceipt:
    """Encode one documents shard, publish the token shard and its receipt.

    Args:
        unit: Its payload names the shard: `{"shard": path relative to OUT, "inputs": {shard: SHA-256}}`.
        settings: Tokenizer and policy.

    Raises:
        IntegrityError: If the tokenizer in OUT is not the planned one.
    """
    tokenizer = open_tokenizer(settings)
    totals: dict[str, Any] = {"documents": 0, "bytes": 0, "tokens": 0, "max_token_id": 0, "control_text": {}}

    def write(path: Path) -> int:
        schema = tokens_schema(tokenizer.vocab_size, prefix=settings.options.platform_prefix)
        with (
            settings.out.open_local(unit.payload["shard"]) as shard,
            pq.ParquetWriter(
                path,
                schema,
                compression="zstd",
                use_dictionary=["project"],  # type: ignore[arg-type]  # the stub lacks lists
                write_statistics=True,
            ) as writer,
        ):
            documents = prefetch(_documents(shard))
            for batch in prefetch(_encoded(documents, tokenizer, settings, totals)):
                for piece in _bounded(batch):
                    writer.write_batch(piece)
            writer.add_key_value_metadata(footer(unit.key, tokenizer, totals["max_token_id"]))
        return int(totals["documents"])

    output = settings.out.publish(f"tokens/part-{unit.key}.parquet", write)
    return UnitReceipt(
        stage=Stage.TOKENIZE, key=unit.key, outputs=(output,), totals=totals, inputs=unit.payload["inputs"]
    )


def footer(key: str, tokenizer: cppmill_core.AnyTokenizer, max_token_id: int) -> dict[str, str]:
    """Return what the footer of a token shard says of itself."""
    return {
        "cppmill.format": str(DATA_FORMAT_VERSION),
        "cppmill.tokenizer": tokenizer.digest,
        "cppmill.vocab_size": str(tokenizer.vocab_size),
        "cppmill.max_token_id": str(max_token_id),
        "cppmill.unit": key,
    }


def open_tokenizer(settings: TokenizeSettings) -> cppmill_core.AnyTokenizer:
    """Load the tokenizer of OUT and check that it is the planned one.

    Raises:
        IntegrityError: If its digest differs.
    """
    with _LOADING:
        tokenizer = _load_tokenizer(settings.out, manifest_digest(settings.out))
    if tokenizer.digest != settings.tokenizer_digest:
        raise IntegrityError(
            f"{settings.out.where('tokenizer')}: the tokenizer's digest is {tokenizer.digest}, the plan was made for "
            f"{settings.tokenizer_digest}; it changed during the run: run again"
        )
    return tokenizer


def manifest_digest(out: OutputFolder, name: str = "tokenizer/manifest.json") -> str:
    """Return the SHA-256 of a tokenizer's manifest, which is the tokenizer's digest; empty if there is none."""
    try:
        return hashlib.sha256(out.read_bytes(name)).hexdigest()
    except FileNotFoundError:
        return ""


@lru_cache(maxsize=1)
def _load_tokenizer(out: OutputFolder, digest: str) -> cppmill_core.AnyTokenizer:
    """Load a tokenizer once for all units of a process that find the same manifest; its cache of words stays warm."""
    with out.open_local_folder("tokenizer") as directory:
        return cppmill_core.load_tokenizer(directory)


def encode_documents(
    documents: pa.RecordBatch, tokenizer: cppmill_core.AnyTokenizer, options: TokenizeOptions, *, threads: int = 1
) -> pa.RecordBatch:
    """Return the rows of a token shard for documents, in their order.

    Args:
        documents: Columns of `schemas.tables.DOCUMENTS`.
        tokenizer: The encoder.
        options: BOS, EOS and prefix policy.
        threads: Threads of the native core.
    """
    bos, eos = (control_id(tokenizer, *wanted) for wanted in ((BOS, options.bos), (EOS, options.eos)))
    with _ENCODING:
        ids = tokenizer.encode_batch(documents.column("content"), threads, bos=bos, eos=eos)
    lengths = np.diff(ids.offsets.to_numpy()).astype(np.uint64)
    columns = {
        **{name: documents.column(name) for name in ("doc_id", "project", "path", "num_bytes")},
        "num_tokens": pa.array(lengths),
        "token_ids": ids,
        **{name: documents.column(name) for name in ("platform_ids", "platform_info")},
    }
    if options.platform_prefix:
        infos: list[Any] = documents.column("platform_info").to_pylist()
        lines = [platform_comment(info).encode() for info in infos]
        columns["prefix_token_ids"] = tokenizer.encode_batch(pa.array(lines, pa.binary()))
    schema = tokens_schema(tokenizer.vocab_size, prefix=options.platform_prefix)
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def platform_comment(platform_info: str) -> str:
    r"""Render the labels of a document's `platform_info` as a C++ comment line; empty without labels.

    Example:
        >>> platform_comment('{"gpu":{"cuda":["kernel"]},"os":{"linux":["__linux__"]}}')
        '// platform: cuda, linux\\n'
    """
    labels = [label for category in json.loads(platform_info).values() for label in category]
    return f"// platform: {', '.join(sorted(set(labels)))}\n" if labels else ""


def control_id(tokenizer: cppmill_core.AnyTokenizer, name: str, wanted: bool) -> int | None:
    """Return the id of a control token if it is wanted."""
    return tokenizer.control_id(name) if wanted else None


def _documents(shard: Path) -> Iterator[pa.RecordBatch]:
    """Yield the row groups of a documents shard, without the columns that a token shard has no use for."""
    with pq.ParquetFile(shard) as file:
        for number in range(file.num_row_groups):
            yield from file.read_row_group(number, columns=_COLUMNS, use_threads=False).to_batches()


def _encoded(
    documents: Iterator[pa.RecordBatch],
    tokenizer: cppmill_core.AnyTokenizer,
    settings: TokenizeSettings,
    totals: dict[str, Any],
) -> Iterator[pa.RecordBatch]:
    for batch in documents:
        tokens = encode_documents(batch, tokenizer, settings.options, threads=settings.threads)
        _add_totals(totals, tokens, tokenizer.count_control(batch.column("content")))
        yield tokens


def _add_totals(totals: dict[str, Any], tokens: pa.RecordBatch, control: dict[str, int]) -> None:
    totals["documents"] += tokens.num_rows
    totals["bytes"] += int(tokens.column("num_bytes").to_numpy().sum())
    values = list_column(tokens, "token_ids").flatten()
    totals["tokens"] += len(values)
    totals["max_token_id"] = max(totals["max_token_id"], int(values.to_numpy().max(initial=0)))
    counted = totals["control_text"]
    for name, number in control.items():
        counted[name] = counted.get(name, 0) + number


def _bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch so that no piece of more than one row exceeds the token bound."""
    lengths: list[Any] = batch.column("num_tokens").to_pylist()
    start = tokens = 0
    for row, length in enumerate(lengths):
        if row > start and tokens + length > MAX_ROW_GROUP_TOKENS:
            yield batch.slice(start, row - start)
            start, tokens = row, 0
        tokens += length
    if batch.num_rows:
        yield batch.slice(start)
