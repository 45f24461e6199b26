"""C++ documents: read from sources, and searched for platforms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import pyarrow as pa

from pipelines.library.beam.arguments import check_threads
from pipelines.library.beam.batches import ToBatches
from pipelines.library.commands import read_table
from pipelines.library.options import IngestKeys, PlaceText
from pipelines.library.places import check_place, check_places
from pipelines.stages.platforms import make_detect, read_platforms
from schemas.coders import register_coders
from schemas.errors import ConfigError
from schemas.options import IngestOptions
from schemas.reasons import Column
from schemas.units import Unit
from transforms.filters.verdicts import ContentFilter, make_content_filter
from transforms.ingest.input_units import plan_inputs
from transforms.ingest.single_pass import WHOLE_CORPUS, add_platforms, read_texts
from transforms.sources.listing import list_inputs
from transforms.units.batches import cut_batch

REJECTED = "rejected"
"""The output of documents that are not kept."""


@dataclass(kw_only=True)
class ReadCpp(beam.PTransform[beam.Pipeline, Any]):
    """Read the documents of sources as `cppmill run` does: files, archives, Parquet and JSONL, local or by URL.

    In: a pipeline. Out: `pyarrow.RecordBatch` with the schema `TEXTS` (doc_id, project, path, content, num_bytes,
    license), of at most 8 MiB unless a document is larger; the same documents on every runner, in any order. With
    `with_rejected`, a pair of `.documents` and `.rejected`, the latter with the schema `REJECTS` (project, path,
    num_bytes, column, reason, detail): one row for every document that was found but not kept.

    Copies are kept, because a choice among equal or similar documents needs all of them; `cppmill run` makes it.

    Args:
        sources: As for `cppmill.run`. Workers list and read them, so all workers must be able to access them.
        ingest: Options of ingest by their keys, as for `cppmill.run`; those that need the whole corpus are refused.
        with_rejected: Whether to return also the documents that are not kept.
        threads: Threads per worker, for reading and digesting.

    Raises:
        ConfigError: While you construct the pipeline, for options that cannot be used; in a worker, for a source that
            does not exist.
        StoreError: In a worker, if a store fails or refuses the credentials.
    """

    sources: PlaceText | Iterable[PlaceText]
    ingest: IngestKeys = field(default_factory=IngestKeys)
    with_rejected: bool = False
    threads: int = 1

    def expand(self, pipeline: beam.Pipeline) -> Any:  # noqa: ANN401 - one PCollection, or two
        """List each source, spread its units, and read them."""
        register_coders()
        options = _single_pass(self.ingest)
        sources, threads = check_places("sources", self.sources), check_threads(self.threads)
        if not sources:
            raise ConfigError("sources: it names no path or URL")
        read = beam.ParDo(_ReadFn(options, threads)).with_output_types(pa.RecordBatch, rejected=pa.RecordBatch)
        outputs = (
            pipeline
            | "Sources" >> beam.Create(sources, reshuffle=False)
            | "List" >> beam.FlatMap(list_units, options=options).with_output_types(Unit)
            | "Spread" >> beam.Reshuffle()
            | "Read" >> read.with_outputs(REJECTED, main="documents")
        )
        return outputs if self.with_rejected else outputs.documents


def list_units(source: str, options: IngestOptions) -> list[Unit]:
    """Return the input units of a source."""
    return plan_inputs(list_inputs([source], options), options)


class _ReadFn(beam.DoFn):
    """Reads input units; the filters are made once a worker."""

    def __init__(self, options: IngestOptions, threads: int) -> None:
        self._options, self._threads = options, threads
        self._filters: ContentFilter | None = None
        self._counters = {
            column: beam.metrics.Metrics.counter("cppmill", f"{column}-documents") for column in ("kept", REJECTED)
        }

    def process(self, unit: Unit) -> Iterator[Any]:
        """Yield the documents of a unit, and what is not kept of it; an error in `setup` would make Spark hang."""
        if self._filters is None:
            self._filters = make_content_filter(self._options)
        for texts, rejects in read_texts(unit, self._options, self._filters, threads=self._threads):
            self._counters[str(Column.KEPT)].inc(texts.num_rows)
            self._counters[REJECTED].inc(rejects.num_rows)
            yield from cut_batch(texts)
            for rejected in cut_batch(rejects):
                yield beam.pvalue.TaggedOutput(REJECTED, rejected)


@dataclass(kw_only=True)
class DetectPlatforms(beam.PTransform[beam.PCollection[Any], beam.PCollection[pa.RecordBatch]]):
    """Find which platforms documents are written for.

    In: batches or rows with `content` (text or bytes) and, if they have one, `path`, which is also evidence (for CUDA,
    for example). Out: `pyarrow.RecordBatch` with all input columns, `platform_ids` (list of uint16, ascending) and
    `platform_info` (JSON: category to label to evidence). The result is the same as from `cppmill run`.

    Args:
        platforms: A file with your own platforms, a path or a URL; it is read when you construct the pipeline.
        threads: Threads per worker.

    Raises:
        ConfigError: While you construct the pipeline, for a file that cannot be used.
        BadInputError: In a worker, for documents without text.
    """

    platforms: PlaceText | None = None
    threads: int = 1

    def expand(self, documents: beam.PCollection[Any]) -> beam.PCollection[pa.RecordBatch]:
        """Send the rules to the workers, which compile them once."""
        place = None if self.platforms is None else check_place("platforms", self.platforms)
        threads = check_threads(self.threads)
        found: beam.PCollection[pa.RecordBatch] = (
            documents
            | "Batch" >> ToBatches()
            | "Detect"
            >> beam.Map(detect_platforms, rules=read_platforms(place).rules, threads=threads).with_output_types(
                pa.RecordBatch
            )
        )
        return found


def detect_platforms(documents: pa.RecordBatch, rules: str, threads: int) -> pa.RecordBatch:
    """Return documents with their platforms."""
    return add_platforms(documents, make_detect(rules, threads))


def _single_pass(values: Mapping[str, Any]) -> IngestOptions:
    """Return the options of ingest that are given, without those that need the whole corpus.

    Raises:
        ConfigError: If one of those is given, or a value is not allowed.
    """
    options = read_table(IngestOptions, "ingest", values)
    if refused := [name for name in WHOLE_CORPUS if values.get(name)]:
        raise ConfigError(
            f"ingest: {refused[0]} needs the whole corpus, which a single pass does not see: leave it out and use "
            "cppmill.run, or read the documents that a run has kept"
        )
    if "detect_platforms" in values:
        raise ConfigError("ingest: detect_platforms is a transform of its own: put DetectPlatforms behind ReadCpp")
    return options
