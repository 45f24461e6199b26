"""The documents of an input unit as both passes of ingest read them: redacted if options ask for that."""

from __future__ import annotations

from collections.abc import Container, Iterator

import pyarrow as pa

from schemas.options import IngestOptions
from schemas.units import Unit
from transforms.filters.redaction import make_redactor
from transforms.sources.batches import Flags
from transforms.sources.readers import read_batches


def read_unit(
    unit: Unit,
    options: IngestOptions,
    wanted: Flags | None = None,
    *,
    keep: bool,
    threads: int = 1,
    ends: Container[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of an input unit in order, in batches; filters and duplicates see what was redacted.

    Args:
        unit: An input unit.
        options: The options of ingest.
        wanted: For each loose file, whether it is read; all are by default.
        keep: Whether the bytes stay in the batches; they must if the options alter content.
        threads: The most threads to digest documents with.
        ends: The rows at which an earlier reading ran out of time; None for a first reading.

    Raises:
        ConfigError: If secrets are to be found and their library is not installed.
        StoreError: If a store fails beyond all retries, or refuses the credentials.
    """
    batches = read_batches(unit, options, wanted, keep=keep, threads=threads, ends=ends)
    redactor = make_redactor(options)
    return batches if redactor is None else map(redactor.redact_batch, batches)
