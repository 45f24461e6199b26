"""The second pass of ingest: it packs the documents that are kept into shards, and records what became of all others.

The inputs are read again and compared with their fingerprints row by row, so that a shard holds what its unit was
planned for; what differs is `dead[changed]`. A unit of loose files is one shard; an archive's documents are cut into
shards by the rule that cuts files into units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter

from schemas.options import IngestOptions
from schemas.units import DOCUMENTS_PREFIX, REJECTS_PREFIX, OutputFile, Unit, UnitReceipt
from transforms.filters.kept_counts import documents_schema
from transforms.filters.redaction import redacted
from transforms.ingest.decisions import Decisions, decide
from transforms.ingest.document_shards import Detect, write_documents, write_rejects
from transforms.ingest.second_reading import SecondReading
from transforms.sources.readers import read_batches
from transforms.storage.folder import OutputFolder
from transforms.units.flow import Flow, RunUnits


@dataclass(frozen=True)
class WriteSettings:
    """What the units of the second pass are run with.

    Attributes:
        out: The output folder; shards and receipts go to `documents/`.
        options: The options of ingest.
        make_detect: Makes the platform detector; must pickle, and give the same one to all units of a worker. None
            finds no platforms.
        threads: The most threads to digest documents with.
    """

    out: OutputFolder
    options: IngestOptions
    make_detect: Callable[[], Detect] | None = None
    threads: int = 1


def write_units(settings: WriteSettings) -> Flow:
    """Return the flow that writes the documents of the units that `plan_ingest` made, and yields their receipts."""
    return (RunUnits(work=ingest_unit, settings=settings),)


def ingest_unit(unit: Unit, settings: WriteSettings) -> UnitReceipt:
    """Write the documents of a unit and its rejects, and return its receipt, which `run_unit` publishes.

    Publishes `documents/part-<key>-<nnnnn>.parquet`, nothing where nothing is kept, and
    `documents/rejects-<key>.parquet` if there are any. Holds three row groups of documents at a time. Running it twice
    gives the same bytes.
    """
    out = settings.out
    with out.open_local(unit.payload["fingerprints"]) as fingerprints:
        decisions = decide(unit, fingerprints, out, settings.options)
        reading = SecondReading(decisions, settings.options.to_json())
        outputs = [*_publish_shards(unit, decisions, reading, settings), *_publish_rejects(unit, reading, out)]
    return UnitReceipt(
        stage=unit.stage,
        key=unit.key,
        outputs=tuple(outputs),
        totals={
            "documents": reading.ledger.documents.kept,
            "bytes": reading.ledger.num_bytes.kept,
            **reading.counts,
        },
        ledger=reading.ledger.to_json(),
    )


def _publish_shards(
    unit: Unit, decisions: Decisions, reading: SecondReading, settings: WriteSettings
) -> Iterator[OutputFile]:
    """Read a unit's inputs again, and publish the shards of the documents that are kept."""
    if not decisions.kept.any():
        reading.skip()
        return
    detect = settings.make_detect() if settings.make_detect and settings.options.detect_platforms else None
    options, schema = settings.options, documents_schema(settings.options.to_json())
    read = read_batches(unit, options, decisions.kept, keep=True, threads=settings.threads, ends=decisions.ends)
    documents = redacted(read, options)
    for shard, group in groupby(reading.compare(documents), key=itemgetter(0)):
        name = f"{DOCUMENTS_PREFIX}{unit.key}-{shard:05d}.parquet"
        write = partial(write_documents, documents=map(itemgetter(1), group), detect=detect, schema=schema)
        yield settings.out.publish(name, write)


def _publish_rejects(unit: Unit, reading: SecondReading, out: OutputFolder) -> Iterator[OutputFile]:
    """Publish what is not kept, once all is read."""
    if reading.ledger.documents.total > reading.ledger.documents.kept:
        write = partial(write_rejects, rejects=reading.rejects())
        yield out.publish(f"{REJECTS_PREFIX}{unit.key}.parquet", write)
