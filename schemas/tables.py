"""Arrow schemas of every table that one stage writes and another reads."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from schemas.sequences import SequenceOptions

DATA_FORMAT_VERSION = 1
"""Version of the files' layout; part of every unit key."""

PLATFORM_VOCAB_SIZE = 113
"""Ids of the platform vocabulary, padding 0 included."""

MAX_PLATFORM_IDS = 20
"""The most platform ids that a document has."""


def required(name: str, kind: pa.DataType) -> pa.Field[Any]:
    """Return a field that has no nulls."""
    return pa.field(name, kind, nullable=False)


_ITEMS = pa.list_(required("item", pa.uint16()))

DOCUMENTS = pa.schema(
    [
        required("doc_id", pa.string()),
        required("project", pa.string()),
        required("path", pa.string()),
        required("content", pa.binary()),
        required("num_bytes", pa.uint64()),
        pa.field("license", pa.string()),
        required("platform_ids", _ITEMS),
        required("platform_info", pa.string()),
    ]
)
"""`documents/part-*.parquet`: one row a kept document; `content` holds its exact bytes, `doc_id` their SHA-256."""

REJECTS = pa.schema(
    [
        required("project", pa.string()),
        required("path", pa.string()),
        required("num_bytes", pa.uint64()),
        required("column", pa.string()),
        required("reason", pa.string()),
        required("detail", pa.string()),
    ]
)
"""`documents/rejects-*.parquet`: one row a document that is not kept, with its column and reason in the ledger."""

FINGERPRINTS = pa.schema(
    [
        required("project", pa.string()),
        required("path", pa.string()),
        required("doc_id", pa.string()),
        required("num_bytes", pa.uint64()),
        required("column", pa.string()),
        required("reason", pa.string()),
        required("detail", pa.string()),
        pa.field("license", pa.string()),
    ]
)
"""What the first pass of ingest records of each document, in source and member order.

`column` is `kept` for what passed every filter but the duplicate filter. `doc_id` is empty where nothing was read.
"""

DUPLICATE_CANDIDATES = pa.schema(
    [
        required("doc_id", pa.string()),
        required("project", pa.string()),
        required("path", pa.string()),
        required("unit", pa.uint32()),
        required("row", pa.uint32()),
    ]
)
"""What passed all other filters, to choose the kept copy from; `unit` counts input units in source order."""

_ROW = [required("unit", pa.uint32()), required("row", pa.uint32())]

DUPLICATES = pa.schema([*_ROW, required("kept_unit", pa.uint32()), required("kept_row", pa.uint32())])
"""The copies that are not kept, and the one that is: row numbers in the units' fingerprints."""

NEAR_PAIRS = pa.schema([*_ROW, required("near_unit", pa.uint32()), required("near_row", pa.uint32())])
"""Documents that are near-duplicates of one another, as edges of a graph; rows as in `DUPLICATES`."""

NEAR_CLUSTERS = pa.schema([*_ROW, required("cluster", pa.uint32())])
"""The documents of each cluster of near-duplicates, exact copies of them among these."""

NEAR_MEMBERS = pa.schema(
    [
        required("cluster", pa.uint32()),
        required("project", pa.string()),
        required("path", pa.string()),
        required("unit", pa.uint32()),
        required("row", pa.uint32()),
        required("doc_id", pa.string()),
        required("sketch", pa.binary()),
        required("key", pa.string()),
    ]
)
"""The document with the smallest name of those that a unit, of this key, has in a cluster, to choose from."""

NEAR_KEPT = pa.schema([NEAR_MEMBERS.field(name) for name in ("cluster", "unit", "key", "doc_id", "sketch")])
"""The document that a cluster keeps, for each unit that has some of the cluster."""

NEAR_DUPLICATES = pa.schema([*_ROW, required("kept", pa.string()), required("similarity", pa.float32())])
"""The documents that are dropped as near-duplicates, the doc_id of the one that is kept, how similar they are to it."""


def signatures_schema(permutations: int) -> pa.Schema:
    """Return the schema of `.cache/signatures/*.parquet`: a row of fingerprints, and its signature.

    Args:
        permutations: Bytes of a signature.
    """
    return pa.schema([required("row", pa.uint32()), required("signature", pa.binary(permutations))])


BENCHMARK_NGRAMS = pa.schema(
    [
        required("ngram", pa.uint64()),
        required("name", pa.dictionary(pa.int32(), pa.string())),
        required("line", pa.uint32()),
    ]
)
"""The n-grams of a benchmark, ascending: file and line of the first that has it."""

WORDS = pa.schema([required("word", pa.binary()), required("count", pa.uint64())])
"""`counts/words/*.parquet`: pre-tokens with their counts, sorted by word within a partition."""

PARTITIONED_WORDS = pa.schema([required("partition", pa.uint16()), *WORDS])
"""`counts/parts/words-*.parquet`: the words of one shard, sorted by partition and word."""

TERMS = pa.schema(
    [
        required("term", pa.string()),
        required("category", pa.string()),
        required("hits", pa.uint64()),
        required("documents", pa.uint64()),
        required("projects", pa.uint64()),
    ]
)
"""`counts/terms.parquet`: fixed-token candidates."""

MORPHEMES = pa.schema(
    [
        required("morpheme", pa.string()),
        required("position", pa.string()),
        required("hits", pa.uint64()),
        required("documents", pa.uint64()),
        required("projects", pa.uint64()),
    ]
)
"""`counts/morphemes.parquet`: morphemes inside identifiers, by position."""

NAMESPACES = pa.schema(
    [
        required("namespace", pa.string()),
        required("hits", pa.uint64()),
        required("documents", pa.uint64()),
        required("projects", pa.uint64()),
    ]
)
"""`counts/namespaces.parquet`: leading namespaces."""


def tokens_schema(vocab_size: int, *, prefix: bool) -> pa.Schema:
    """Return the schema of token shards for a vocabulary of `vocab_size` ids.

    Args:
        vocab_size: Number of ids; `token_ids` is list<uint16> up to 65,536 and list<uint32> above.
        prefix: Whether `prefix_token_ids` (the rendered platform comment) is a column.
    """
    ids = pa.list_(required("item", token_type(vocab_size)))
    fields = [
        required("doc_id", pa.string()),
        required("project", pa.string()),
        required("path", pa.string()),
        required("num_bytes", pa.uint64()),
        required("num_tokens", pa.uint64()),
        required("token_ids", ids),
        required("platform_ids", _ITEMS),
        required("platform_info", pa.string()),
    ]
    if prefix:
        fields.append(required("prefix_token_ids", ids))
    return pa.schema(fields)


def token_type(vocab_size: int) -> pa.DataType:
    """Return the Arrow type of one token id: uint16 while every id fits, else uint32."""
    return pa.uint16() if vocab_size <= 1 << 16 else pa.uint32()


def sequences_schema(vocab_size: int, options: SequenceOptions) -> pa.Schema:
    """Return the schema of `sequences/part-*.parquet`.

    Args:
        vocab_size: Number of ids; `token_ids` is of uint16 up to 65,536 and of uint32 above.
        options: What the sequences are made of: only sequences with filling in the middle have `fim*`, only those of
            repositories have `file*`.
    """
    names, places = pa.list_(required("item", pa.string())), pa.list_(required("item", pa.uint32()))
    fields = [
        required("token_ids", pa.list_(required("item", token_type(vocab_size)), options.length)),
        required("loss_mask", pa.list_(required("item", pa.bool_()), options.length)),
        required("num_tokens", pa.uint32()),
        required("doc_ids", names),
        required("starts", places),
        required("first_tokens", pa.list_(required("item", pa.uint64()))),
    ]
    if options.fim_rate:
        fields += [
            required("fim", pa.list_(required("item", pa.uint8()))),
            required("fim_starts", places),
            required("fim_ends", places),
        ]
    if options.repositories:
        fields += [required("file_doc_ids", names), required("file_starts", places)]
    return pa.schema(fields)
