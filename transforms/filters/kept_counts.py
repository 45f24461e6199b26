"""What is counted of the kept documents of a run beside their number and bytes: in shards, unit receipts and receipt.

How many have other bytes than their source, what was replaced in them, and where their licences are from; each only if
an option asks for it. The receipt has the sums in `corpus`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.options import alters_content
from schemas.tables import DOCUMENTS, LICENSE_SOURCE, LICENSE_SOURCES, REDACTED_COLUMNS, altered_schema

ALTERED, REDACTED, LICENSES = "altered", "redacted", "licenses"
"""The keys in the totals of unit receipts, and in `corpus` of a receipt."""

Counts = dict[str, Any]
"""Numbers by these keys; of REDACTED by column and unit, of LICENSES by source."""


def documents_schema(ingest: Mapping[str, Any]) -> pa.Schema:
    """Return the schema of the documents shards of a run, by its options of ingest in their canonical form."""
    schema = altered_schema(DOCUMENTS, altered=alters_content(ingest))
    more = list(REDACTED_COLUMNS) if ingest.get("redact") else []
    more += [LICENSE_SOURCE] if ingest.get("find_licenses") else []
    return pa.schema([*schema, *more])


def added_columns(ingest: Mapping[str, Any]) -> list[str]:
    """Return the columns that documents shards of a run have and those of most runs do not."""
    return documents_schema(ingest).names[len(DOCUMENTS) :]


def count_kept(documents: pa.RecordBatch | pa.Table, ingest: Mapping[str, Any]) -> Counts:
    """Return what is to be counted of kept documents, by their columns in shards."""
    counts = Counts()
    if alters_content(ingest):
        counts[ALTERED] = documents.num_rows - documents.column("source_doc_id").null_count
    if ingest.get("redact"):
        columns = {name: documents.column(name) for name in REDACTED_COLUMNS.names}
        counts[REDACTED] = {
            name: {"documents": _sum(pc.greater(column, pa.scalar(0, column.type))), "places": _sum(column)}
            for name, column in columns.items()
        }
    if ingest.get("find_licenses"):
        sources = documents.column(LICENSE_SOURCE.name)
        counts[LICENSES] = {name: _sum(pc.equal(sources, pa.scalar(name))) for name in LICENSE_SOURCES}
    return counts


def sum_counts(counts: Iterable[Mapping[str, Any]], ingest: Mapping[str, Any]) -> Counts:
    """Return the sums of counts, or of totals that have them."""
    return reduce(_add, counts, _no_counts(ingest))


def _no_counts(ingest: Mapping[str, Any]) -> Counts:
    """Return the counts of nothing; an array for it would import pandas, where that is installed."""
    counts = Counts()
    if alters_content(ingest):
        counts[ALTERED] = 0
    if ingest.get("redact"):
        counts[REDACTED] = {name: {"documents": 0, "places": 0} for name in REDACTED_COLUMNS.names}
    if ingest.get("find_licenses"):
        counts[LICENSES] = dict.fromkeys(LICENSE_SOURCES, 0)
    return counts


def _add(sums: Counts, more: Mapping[str, Any]) -> Counts:
    """Return numbers with others added by their keys; keys that the first lack are passed over."""
    return {
        name: _add(number, more.get(name, {})) if isinstance(number, dict) else number + more.get(name, 0)
        for name, number in sums.items()
    }


def _sum(column: Any) -> int:  # noqa: ANN401 - an array or a chunked one
    return int(pc.sum(column, min_count=0).as_py())
