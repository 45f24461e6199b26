"""Reading documents in one pass, with every filter that decides about a document by itself.

Which of several equal or similar documents is kept depends on all of them, so the two passes of ingest choose that.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from schemas.options import IngestOptions
from schemas.reasons import Column
from schemas.tables import DOCUMENTS, REJECTS, TEXTS
from schemas.units import Unit
from transforms.filters.redaction import redacted
from transforms.filters.verdicts import ContentFilter
from transforms.ingest.document_shards import Detect, find_platforms
from transforms.ingest.fingerprints import fingerprint
from transforms.ingest.found_licenses import licensed
from transforms.sources.batches import is_equal
from transforms.sources.readers import read_batches
from transforms.sources.tables import read_column, read_content

WHOLE_CORPUS = ("drop_duplicates", "near_duplicate_similarity", "decontaminate")
"""Options of ingest that a single pass does not follow."""


def read_texts(
    unit: Unit, options: IngestOptions, filters: ContentFilter, *, threads: int = 1
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield documents that pass the filters, a batch of TEXTS, and what became of the others, a batch of REJECTS.

    Args:
        unit: An input unit as `plan_inputs` makes them; its documents come in order.
        options: The options of ingest; those of `WHOLE_CORPUS` are not followed.
        filters: The filters on content that they ask for.
        threads: The most threads to digest documents with.
    """
    documents = redacted(read_batches(unit, options, keep=True, threads=threads), options)
    for batch in licensed(documents, unit, options):
        found = fingerprint(batch, filters)
        kept = is_equal(found.column("column"), Column.KEPT)
        yield _select(batch.filter(pa.array(kept)), TEXTS), _select(found.filter(pa.array(~kept)), REJECTS)


def add_platforms(documents: pa.RecordBatch, detect: Detect) -> pa.RecordBatch:
    """Return documents with the columns `platform_ids` and `platform_info` of DOCUMENTS, in place of any such columns.

    Args:
        documents: Columns `content` and, if they have one, `path`; all others are kept.
        detect: Finds platforms.

    Raises:
        BadInputError: If `content` is missing, null or of another type.
    """
    found = find_platforms(read_column(documents, "path"), read_content(documents), detect)
    fields = {field.name: field for field in (*documents.schema, *map(DOCUMENTS.field, found))}
    columns = dict(zip(documents.schema.names, documents.columns, strict=True)) | found
    return pa.RecordBatch.from_arrays([columns[name] for name in fields], schema=pa.schema(list(fields.values())))


def _select(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column(field.name).cast(field.type) for field in schema], schema=schema)
