"""Tokenize: documents shards to token shards, one for one.

A row group of documents goes through one call of the native encoder and becomes a row group of tokens. Only the policy
of BOS and EOS inserts control ids. While one row group is encoded, the next is read and the one before is written.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import parse_json
from schemas.options import PrefixForm, TokenizeOptions
from schemas.tables import DOCUMENTS, tokens_schema
from schemas.units import Stage, Unit, UnitReceipt
from transforms.storage.folder import naming_damage
from transforms.tokens.shards import footer
from transforms.tokens.tokenizer import TokenizeSettings, document_ends, open_tokenizer
from transforms.units.batches import list_column, read_columns
from transforms.units.prefetch import prefetch

_ENCODING = threading.Lock()
"""One call encodes at a time, on all threads: their caches, tens of megabytes each, serve all units in flight."""

_COLUMNS = pa.schema([field for field in DOCUMENTS if field.name != "license"])
MAX_ROW_GROUP_TOKENS = 1 << 24
"""A row group of tokens is closed before it holds more; a single longer document has its own."""

_UNKNOWN = 1 << 16
"""The rank of a standard of the user's own: newer than those that come with cppmill."""


def tokenize_unit(unit: Unit, settings: TokenizeSettings) -> UnitReceipt:
    """Encode one documents shard, publish the token shard and its receipt.

    Args:
        unit: Its payload names the shard: `{"shard": path relative to OUT, "inputs": {shard: SHA-256}}`.
        settings: Tokenizer and policy.

    Raises:
        IntegrityError: If the tokenizer in OUT is not the planned one, or the shard is damaged.
    """
    settings.out.check_bytes(unit.payload["inputs"])
    tokenizer = open_tokenizer(settings)
    totals: dict[str, Any] = {"documents": 0, "bytes": 0, "tokens": 0, "max_token_id": 0, "control_text": {}}

    def write(path: Path) -> int:
        schema = tokens_schema(tokenizer.vocab_size, prefix=settings.options.platform_prefix)
        with settings.out.open_local(unit.payload["shard"]) as shard, open_writer(path, schema) as writer:
            documents = prefetch(_documents(shard))
            for batch in prefetch(_encoded(documents, tokenizer, settings, totals, where=str(shard))):
                for piece in bounded_rows(batch):
                    writer.write_batch(piece)
            writer.add_key_value_metadata(footer(unit.key, tokenizer, totals["max_token_id"]))
        return int(totals["documents"])

    output = settings.out.publish(f"tokens/part-{unit.key}.parquet", write)
    return UnitReceipt(
        stage=Stage.TOKENIZE, key=unit.key, outputs=(output,), totals=totals, inputs=unit.payload["inputs"]
    )


def encode_documents(
    documents: pa.RecordBatch, tokenizer: cppmill_core.AnyTokenizer, options: TokenizeOptions, *, threads: int = 1
) -> pa.RecordBatch:
    """Return the rows of a token shard for documents, in their order."""
    bos, eos = document_ends(tokenizer, options)
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
        lines = [platform_comment(info, options.platform_prefix_form).encode() for info in infos]
        columns["prefix_token_ids"] = tokenizer.encode_batch(pa.array(lines, pa.binary()))
    schema = tokens_schema(tokenizer.vocab_size, prefix=options.platform_prefix)
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def platform_comment(platform_info: str, form: PrefixForm = "labels") -> str:
    r"""Render the labels of a document's `platform_info` as a C++ comment line; empty without labels.

    With `categories` it is the line that MegaCpp publishes: the labels of a category sorted, with commas, and one
    standard. Of several standards it is the newest, which alone can compile the document. Categories of the user's own
    are before the standard, by name.

    Raises:
        pa.ArrowInvalid: If it is not JSON of categories and their labels.

    Example:
        >>> info = '{"gpu":{"cuda":["kernel"]},"os":{"linux":["__linux__"]},"cpp_std":{"c++17":["a"],"c++20":["b"]}}'
        >>> platform_comment(info)
        '// platform: c++17, c++20, cuda, linux\n'
        >>> platform_comment(info, "categories")
        '// platform: os=linux gpu=cuda std=c++20\n'
    """
    found = _labels(platform_info)
    if form == "categories":
        text = " ".join(_by_category(found))
    else:
        text = ", ".join(sorted({label for category in found.values() for label in category}))
    return f"// platform: {text}\n" if text else ""


def _labels(platform_info: str) -> dict[str, dict[str, Any]]:
    try:
        found = parse_json(platform_info)
    except ValueError as error:
        raise pa.ArrowInvalid(f"platform_info is not JSON: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(labels, dict) for labels in found.values()):
        raise pa.ArrowInvalid("platform_info has no labels by category")
    return found


def _by_category(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield category and labels, in the published order."""
    *first, standard = _known_categories()
    for category in [*first, *sorted(found.keys() - {*first, standard})]:
        if found.get(category):
            yield f"{category}={','.join(sorted(found[category]))}"
    if found.get(standard):
        ranks = _known_categories()[standard]
        yield f"std={max(found[standard], key=lambda label: (ranks.get(label, _UNKNOWN), label))}"


@lru_cache(maxsize=1)
def _known_categories() -> Mapping[str, Mapping[str, int]]:
    """Return the categories that come with cppmill, in the published order: standards of C++ are the last."""
    return cppmill_core.platform_vocab().categories


def open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a file of tokens for writing."""
    dictionary: Any = ["project"]  # the stub lacks lists
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=dictionary, write_statistics=True)


def _documents(shard: Path) -> Iterator[pa.RecordBatch]:
    """Yield the row groups of a documents shard, without the columns that a token shard has no use for."""
    with naming_damage(str(shard)), pq.ParquetFile(shard) as file:
        yield from read_columns(file, _COLUMNS)


def _encoded(
    documents: Iterator[pa.RecordBatch],
    tokenizer: cppmill_core.AnyTokenizer,
    settings: TokenizeSettings,
    totals: dict[str, Any],
    *,
    where: str,
) -> Iterator[pa.RecordBatch]:
    for batch in documents:
        with naming_damage(where):
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


def bounded_rows(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
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
