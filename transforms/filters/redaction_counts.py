"""How many places were replaced in the documents of a run that redacts: by kind, in shards and in receipts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.options import alters_content
from schemas.tables import DOCUMENTS, REDACTED_COLUMNS, altered_schema

REDACTED = "redacted"
"""The key in the totals of unit receipts, and in `corpus` of a receipt, if a run redacts."""

Redactions = dict[str, dict[str, int]]
"""Documents and places by the column of REDACTED_COLUMNS."""


def documents_schema(ingest: Mapping[str, Any]) -> pa.Schema:
    """Return the schema of the documents shards of a run, by its options of ingest in their canonical form."""
    schema = altered_schema(DOCUMENTS, altered=alters_content(ingest))
    return pa.schema([*schema, *REDACTED_COLUMNS]) if ingest.get("redact") else schema


def count_redactions(documents: pa.RecordBatch | pa.Table) -> Redactions:
    """Return how many documents have places that were replaced, and how many places."""
    columns = {name: documents.column(name) for name in REDACTED_COLUMNS.names}
    return {
        name: {"documents": _sum(pc.greater(column, pa.scalar(0, column.type))), "places": _sum(column)}
        for name, column in columns.items()
    }


def sum_redactions(counts: Iterable[Redactions]) -> Redactions:
    """Return the sums of counts."""
    totals = {name: {"documents": 0, "places": 0} for name in REDACTED_COLUMNS.names}
    for count in counts:
        for name, numbers in count.items():
            for unit, number in numbers.items():
                totals[name][unit] += number
    return totals


def _sum(column: Any) -> int:  # noqa: ANN401 - an array or a chunked one
    return int(pc.sum(column, min_count=0).as_py())
