"""Arrow schemas of every table that one stage writes and another reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.export_options import SequenceOptions

DATA_FORMAT_VERSION = 1
"""Version of the files' layout; part of every unit key."""

_FORMAT_KEY, _FORMAT = b"cppmill.format", str(DATA_FORMAT_VERSION).encode()

PLATFORM_VOCAB_SIZE = 113
"""Ids of the platform vocabulary that comes with cppmill, padding 0 included; a run may add more."""

MAX_PLATFORM_IDS = 20
"""The most platform ids that a document has."""


def required(name: str, kind: pa.DataType) -> pa.Field[Any]:
    """Return a field that has no nulls."""
    return pa.field(name, kind, nullable=False)


def required_columns(**kinds: pa.DataType) -> pa.Schema:
    """Return the schema of columns that have no nulls, in order."""
    return pa.schema([required(name, kind) for name, kind in kinds.items()])


def is_annotated(fields: Iterable[pa.Field[Any]]) -> bool:
    """Return whether a field, or one within it, has metadata: no table here has any but in its footer."""
    return any(
        field.metadata or is_annotated(field.type.field(number) for number in range(field.type.num_fields))
        for field in fields
    )


def column_problems(file: pq.ParquetFile, schema: pa.Schema, *, complete: bool) -> Iterator[str]:
    """Yield how the columns and the footer of a file differ from those of a table here.

    Args:
        file: An open file.
        schema: What the table has.
        complete: Whether this version wrote the file; one of another version may lack columns, or allow nulls.
    """
    found, footer = file.schema_arrow, file.metadata.metadata or {}
    known = {field.name: field.type for field in schema}
    wrong = [field.name for field in found if known.get(field.name) != field.type or is_annotated([field])]
    if wrong or found.names != [name for name in schema.names if name in found.names]:
        shown = (wrong or found.names)[0]
        yield f"the column {shown!r} is not of this table there, of another type or with metadata"
    elif complete:
        other = [
            field.name for field in schema if field.name not in found.names or not field.equals(found.field(field.name))
        ]
        if other:
            yield f"the column {other[0]!r} is missing, or may have nulls although it has none in a run"
    if unknown := sorted(footer.keys() - {b"ARROW:schema", _FORMAT_KEY}):
        yield f"its footer has the key {unknown[0].decode(errors='replace')!r}"
    if footer.get(_FORMAT_KEY, _FORMAT) != _FORMAT:
        yield f"its footer has another format than {_FORMAT.decode()}"


_TEXT, _BYTES, _UINT32, _UINT64, _INT64 = pa.string(), pa.binary(), pa.uint32(), pa.uint64(), pa.int64()
_ITEMS = pa.list_(required("item", pa.uint16()))
_LICENSE = pa.field("license", _TEXT)

DOCUMENTS = required_columns(
    doc_id=_TEXT, project=_TEXT, path=_TEXT, content=_BYTES, num_bytes=_UINT64, platform_ids=_ITEMS, platform_info=_TEXT
).insert(5, _LICENSE)
"""`documents/part-*.parquet`: one row a kept document; `content` holds its exact bytes, `doc_id` their SHA-256."""

NO_EVIDENCE = "{}"
"""`platform_info` of a document without platforms."""

SOURCE_DOC_ID = "source_doc_id"
"""SHA-256 of the bytes in the source where `content` holds others, null elsewhere."""


def altered_schema(schema: pa.Schema, *, altered: bool) -> pa.Schema:
    """Return the schema of documents or fingerprints in a run that may keep other bytes than the source has.

    Args:
        schema: Their schema in all other runs.
        altered: Whether an option is on that alters content; otherwise nothing is added.
    """
    return schema.append(pa.field(SOURCE_DOC_ID, _TEXT)) if altered else schema


LICENSE_SOURCE = required("license_source", _TEXT)
"""Where a licence is from, one of LICENSE_SOURCES.

A column of documents and fingerprints if licences are looked for.
"""

LICENSE_SOURCES = ("source", "tag", "text", "folder", "none")
"""What names a licence: the source, a tag, a text or notice, a licence file of a folder, nothing."""

TEXTS = pa.schema(list(DOCUMENTS)[:-2])
"""Documents as a single pass reads them, before platforms are looked for."""

REDACTED_COLUMNS = required_columns(redacted_emails=_UINT32, redacted_ips=_UINT32, redacted_secrets=_UINT32)
"""How many places of a document were replaced; columns of the documents shards of runs that redact."""

REJECTS = required_columns(project=_TEXT, path=_TEXT, num_bytes=_UINT64, column=_TEXT, reason=_TEXT, detail=_TEXT)
"""`documents/rejects-*.parquet`: one row per document that is not kept, with its column and reason in the ledger."""

FINGERPRINTS = REJECTS.insert(2, required("doc_id", _TEXT)).append(_LICENSE)
"""What the first pass of ingest records of each document, in source and member order.

`column` is `kept` for what passed every filter but the duplicate filter. `doc_id` is empty where nothing was read.
"""

READ = (
    FINGERPRINTS.append(pa.field("terms", _TEXT))
    .append(required("has_nul", pa.bool_()))
    .append(required("is_wide", pa.bool_()))
    .append(required("content", pa.large_binary()))
)
"""Documents as ingest reads them, before the filters on content.

`doc_id` is empty, and `content` too, where the bytes were not looked at; `terms` are licences that are no text.
"""

UNDIGESTED = pa.schema(
    [READ.field(name) for name in READ.names if name not in ("doc_id", "has_nul", "is_wide", "content")]
).append(pa.field("content", pa.large_binary()))
"""Documents as the readers give them; `content` is null where the bytes are not looked at."""

READ_DIGESTS = READ.remove(READ.get_field_index("content"))
"""READ without the bytes."""

FILTER_INPUT = (
    required_columns(doc_id=_TEXT, project=_TEXT, path=_TEXT, num_bytes=_UINT64)
    .append(_LICENSE)
    .append(required("content", pa.large_binary()))
)
"""What a filter on content gets: documents of any number and order that passed the filters before it.

None is empty, and none too large. `license` is what the source says about the licence, in whatever form.
"""

DUPLICATE_CANDIDATES = required_columns(doc_id=_TEXT, project=_TEXT, path=_TEXT, unit=_UINT32, row=_UINT32)
"""What passed all other filters, to choose the kept copy from; `unit` counts input units in source order."""

DUPLICATES = required_columns(unit=_UINT32, row=_UINT32, kept_unit=_UINT32, kept_row=_UINT32)
"""The copies that are not kept, and the one that is: row numbers in the units' fingerprints."""

NEAR_PAIRS = required_columns(unit=_UINT32, row=_UINT32, near_unit=_UINT32, near_row=_UINT32)
"""Documents that are near-duplicates of one another, as edges of a graph; rows as in `DUPLICATES`."""

NEAR_CLUSTERS = required_columns(unit=_UINT32, row=_UINT32, cluster=_UINT32)
"""The documents of each cluster of near-duplicates, exact copies of them among these."""

NEAR_MEMBERS = required_columns(
    cluster=_UINT32, project=_TEXT, path=_TEXT, unit=_UINT32, row=_UINT32, doc_id=_TEXT, sketch=_BYTES, key=_TEXT
)
"""The document with the smallest name of those that a unit, of this key, has in a cluster, to choose from."""

NEAR_KEPT = required_columns(cluster=_UINT32, unit=_UINT32, key=_TEXT, doc_id=_TEXT, sketch=_BYTES)
"""The document that a cluster keeps, for each unit that has some of the cluster."""

NEAR_DUPLICATES = required_columns(unit=_UINT32, row=_UINT32, kept=_TEXT, similarity=pa.float32())
"""The documents that are dropped as near-duplicates, the doc_id of the one that is kept, how similar they are to it."""


def signatures_schema(permutations: int) -> pa.Schema:
    """Return the schema of `.cache/signatures/*.parquet`: a row of fingerprints, and its signature."""
    return required_columns(row=_UINT32, signature=pa.binary(permutations))


BENCHMARK_NGRAMS = required_columns(ngram=_UINT64, name=pa.dictionary(pa.int32(), _TEXT), line=_UINT32)
"""The n-grams of a benchmark, ascending: file and line of the first that has it."""

WORDS = required_columns(word=_BYTES, count=_UINT64)
"""`counts/words/*.parquet`: pre-tokens with their counts, sorted by word within a partition."""

GROUPED_WORDS = WORDS.append(required("group", pa.uint16()))
"""Words as training takes them by project: `group` is the number of their file."""

PARTITIONED_WORDS = WORDS.insert(0, required("partition", pa.uint16()))
"""`counts/parts/words-*.parquet`: the words of one shard, sorted by partition and word."""

TERMS = required_columns(term=_TEXT, category=_TEXT, hits=_UINT64, documents=_UINT64, projects=_UINT64)
"""`counts/terms.parquet`: fixed-token candidates."""

MORPHEMES = required_columns(morpheme=_TEXT, position=_TEXT, hits=_UINT64, documents=_UINT64, projects=_UINT64)
"""`counts/morphemes.parquet`: morphemes inside identifiers, by position."""

NAMESPACES = required_columns(namespace=_TEXT, hits=_UINT64, documents=_UINT64, projects=_UINT64)
"""`counts/namespaces.parquet`: leading namespaces."""

ID_COUNTS = required_columns(id=_UINT32, count=_INT64, reference=_INT64)
"""How often each id occurs in a version of a dataset, and in the first version that has its tokenizer."""

NAME_COUNTS = required_columns(kind=_TEXT, name=_TEXT, hits=_INT64, documents=_INT64)
"""How often code uses namespaces and families of names (`kind`); sorted by kind and name."""

PROJECT_SUMS = required_columns(project=_TEXT, documents=_INT64, num_bytes=_INT64, num_tokens=_INT64)
"""`trend/vNNNNNN.parquet` of a store of versions: what each project has in token shards, as signed numbers."""


def tokens_schema(vocab_size: int, *, prefix: bool) -> pa.Schema:
    """Return the schema of token shards for a vocabulary of `vocab_size` ids.

    Args:
        vocab_size: Number of ids; `token_ids` is list<uint16> up to 65,536 and list<uint32> above.
        prefix: Whether `prefix_token_ids` (the rendered platform comment) is a column.
    """
    ids = pa.list_(required("item", token_type(vocab_size)))
    schema = required_columns(
        doc_id=_TEXT,
        project=_TEXT,
        path=_TEXT,
        num_bytes=_UINT64,
        num_tokens=_UINT64,
        token_ids=ids,
        platform_ids=_ITEMS,
        platform_info=_TEXT,
    )
    return schema.append(required("prefix_token_ids", ids)) if prefix else schema


def token_type(vocab_size: int) -> pa.DataType:
    """Return the Arrow type of one token id: uint16 while every id fits, else uint32."""
    return pa.uint16() if vocab_size <= 1 << 16 else pa.uint32()


def sequences_schema(vocab_size: int, options: SequenceOptions) -> pa.Schema:
    """Return the schema of `sequences/part-*.parquet`.

    Args:
        vocab_size: Number of ids; `token_ids` is of uint16 up to 65,536 and of uint32 above.
        options: What the sequences are made of: only sequences with filling in the middle have `fim*`, only those cut
            at cursors have `cursors`, only those of repositories `file*`, only those with prefixes `prefix*`, and
            `*platform_ids` only if asked for.
    """
    names, places = pa.list_(required("item", _TEXT)), pa.list_(required("item", _UINT32))
    columns = {
        "token_ids": pa.list_(required("item", token_type(vocab_size)), options.length),
        "loss_mask": pa.list_(required("item", pa.bool_()), options.length),
        "num_tokens": _UINT32,
        "doc_ids": names,
        "starts": places,
        "first_tokens": pa.list_(required("item", _UINT64)),
    }
    if options.fim_rate:
        columns |= {"fim": pa.list_(required("item", pa.uint8())), "fim_starts": places, "fim_ends": places}
    if options.cursor_rate:
        columns |= {"cursors": places}
    if options.repositories:
        columns |= {"file_doc_ids": names, "file_starts": places}
    if options.prefix:
        columns |= {"prefix_starts": places, "prefix_ends": places}
    if options.platform_ids:
        platforms = pa.list_(required("item", _ITEMS))
        columns |= {"platform_ids": platforms} | ({"file_platform_ids": platforms} if options.repositories else {})
    return required_columns(**columns)
