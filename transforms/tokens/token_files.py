"""Rows of tokens outside of a run: of any documents, and in files that are named by what is in them.

The schema of a batch says in its metadata, as the footer of a token shard does, which tokenizer the ids are of.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa

from schemas.digests import sha256_file
from schemas.errors import BadInputError, IntegrityError
from schemas.options import TokenizeOptions
from schemas.tables import tokens_schema
from schemas.units import OutputFile
from transforms.sources.tables import complete_documents
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import tokenizer_facts
from transforms.tokens.tokenize import bounded_rows, encode_documents, open_writer
from transforms.units.batches import list_column

_PREFIX = "cppmill."
_ORDER = ("project", "path", "doc_id")

Facts = Mapping[str, str]
"""What the footers of all files of a tokenizer have in common: format, tokenizer, vocab_size."""


@dataclass(frozen=True)
class TokenFile:
    """A published file of tokens.

    Attributes:
        output: Its path, digest, size and rows.
        tokens: The ids of all rows.
    """

    output: OutputFile
    tokens: int


def encode_table(
    documents: pa.RecordBatch, tokenizer: cppmill_core.AnyTokenizer, options: TokenizeOptions, *, threads: int = 1
) -> pa.RecordBatch:
    """Return the rows of a token shard for documents that `complete_documents` completes, in their order."""
    complete = complete_documents(documents, threads=threads)
    rows = encode_documents(complete, tokenizer, options, threads=threads)
    return rows.replace_schema_metadata({f"{_PREFIX}{name}": v for name, v in tokenizer_facts(tokenizer).items()})


def read_facts(rows: pa.RecordBatch) -> Facts:
    """Return which tokenizer the ids of a batch are of; empty if its schema does not say it."""
    metadata = {key.decode(): value.decode() for key, value in (rows.schema.metadata or {}).items()}
    return {name.removeprefix(_PREFIX): value for name, value in metadata.items() if name.startswith(_PREFIX)}


def split_rows(rows: pa.RecordBatch, shards: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the number of a shard, CRC-32 of `doc_id` modulo `shards`, and the rows of a batch that belong there.

    Raises:
        BadInputError: If the column `doc_id` is missing, or has anything but texts.
    """
    if "doc_id" not in rows.schema.names:
        raise BadInputError(f"rows of tokens without the column 'doc_id', only {', '.join(rows.schema.names)}")
    names: list[Any] = rows.column("doc_id").to_pylist()
    if not all(isinstance(name, str) for name in names):
        raise BadInputError(
            f"column 'doc_id' of rows of tokens: {rows.schema.field('doc_id').type} or null; give texts"
        )
    numbers = np.array([zlib.crc32(name.encode()) % shards for name in names], dtype=np.int64)
    for number in np.unique(numbers).tolist():
        yield number, rows.take(np.flatnonzero(numbers == number))


def write_rows(shard: int, batches: Sequence[pa.RecordBatch], out: OutputFolder, facts: Facts) -> TokenFile:
    """Publish the rows of a shard as a file whose name has the SHA-256 of its bytes.

    The bytes do not depend on the order of the rows or on how they come in batches: rows are sorted by project, path
    and doc_id. So whoever writes the same rows again, after a failure or beside another attempt, publishes the same
    file.

    Args:
        shard: Its number, the first part of the file's name.
        batches: The rows.
        out: Where the file goes.
        facts: Which tokenizer the ids are of; empty if the batches say it.

    Raises:
        BadInputError: If no tokenizer is named, or a column is missing or of another type.
        IntegrityError: If the ids are of several tokenizers, or one is not in the vocabulary.
    """
    facts = _common_facts(batches, facts)
    rows = _sorted(batches, int(facts["vocab_size"]))
    ids = [list_column(batch, "token_ids").flatten().to_numpy() for batch in rows.to_batches()]
    largest = max((int(values.max(initial=0)) for values in ids), default=0)
    if largest >= int(facts["vocab_size"]):
        raise IntegrityError(
            f"the rows of shard {shard} hold id {largest}, the vocabulary has {facts['vocab_size']} ids"
        )
    temporary = out.temporary / uuid.uuid4().hex
    try:
        with open_writer(temporary, rows.schema) as writer:
            for batch in rows.to_batches():
                for piece in bounded_rows(batch):
                    writer.write_batch(piece)
            footer = {**facts, "max_token_id": str(largest)}
            writer.add_key_value_metadata({f"{_PREFIX}{name}": value for name, value in footer.items()})
        name = f"part-{shard:05d}-{sha256_file(temporary)}.parquet"
        return TokenFile(out.adopt(name, temporary, rows=rows.num_rows), sum(map(len, ids)))
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _common_facts(batches: Sequence[pa.RecordBatch], facts: Facts) -> Facts:
    found = {tuple(sorted((read_facts(batch) or facts).items())) for batch in batches}
    if facts:
        found.add(tuple(sorted(facts.items())))
    if () in found:
        raise BadInputError("the rows do not say which tokenizer their ids are of; name it with `tokenizer`")
    if len(found) > 1:
        names = ", ".join(sorted(dict(item)["tokenizer"] for item in found))
        raise IntegrityError(f"the rows have ids of several tokenizers: {names}; write them into folders of their own")
    return dict(found.pop())


def _sorted(batches: Sequence[pa.RecordBatch], vocab_size: int) -> pa.Table:
    """Return the rows as a table with the columns of a token shard, in one chunk."""
    schema = tokens_schema(vocab_size, prefix="prefix_token_ids" in batches[0].schema.names)
    tables = []
    for batch in batches:
        if missing := [name for name in schema.names if name not in batch.schema.names]:
            raise BadInputError(
                f"rows of tokens without the column {missing[0]!r}, only {', '.join(batch.schema.names)}"
            )
        try:
            tables.append(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
        except (pa.ArrowException, ValueError) as error:
            raise BadInputError(
                f"rows of tokens that cannot be read as the columns of a token shard: {error}"
            ) from error
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in _ORDER]).combine_chunks()
