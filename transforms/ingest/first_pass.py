"""The first pass of ingest as a pipeline: fingerprints of what is new, and candidates for duplicates of everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam

from schemas.options import IngestOptions
from schemas.units import Unit
from transforms.filters.decontamination import load_benchmark
from transforms.filters.verdicts import ContentFilter, make_content_filter
from transforms.ingest.dedup.candidates import duplicate_candidates
from transforms.ingest.fingerprints import fingerprint_unit
from transforms.storage.folder import OutputFolder


# Beam does not resolve annotations that are strings: types that choose a coder are given outright.
@beam.typehints.with_input_types(Unit)
@beam.typehints.with_output_types(tuple[int, bytes])
class _FingerprintFn(beam.DoFn):
    """Makes the fingerprints of units and yields the candidates for duplicates among them."""

    _filters: ContentFilter

    def __init__(
        self, out: OutputFolder, options: IngestOptions, benchmark: str, *, rehash: bool, partitions: int, threads: int
    ) -> None:
        self._out, self._options, self._rehash, self._partitions = out, options, rehash, partitions
        self._benchmark, self._threads = benchmark, threads

    def setup(self) -> None:
        """Make the filters, once a worker."""
        benchmark = load_benchmark(self._benchmark, self._out, self._options) if self._benchmark else None
        self._filters = make_content_filter(self._options, benchmark)

    def process(self, unit: Unit) -> Iterator[tuple[int, bytes]]:
        """Yield (partition, packed candidates)."""
        name = fingerprint_unit(
            unit, self._out, self._options, self._filters, rehash=self._rehash, threads=self._threads
        )
        if self._options.drop_duplicates:
            with self._out.open_local(name) as path:
                yield from duplicate_candidates(path, unit.payload["index"], self._partitions)


@dataclass(kw_only=True)
class FingerprintInputs(beam.PTransform[beam.PCollection[Unit], beam.PCollection[tuple[int, bytes]]]):
    """Makes the fingerprints of input units; yields what may be duplicates as (partition, packed candidates).

    Attributes:
        out: The output folder; fingerprints go to `.cache/fingerprints`.
        options: The options of ingest.
        partitions: How many partitions duplicates are chosen in.
        benchmark: Where in OUT the index of `decontaminate` is; empty for none.
        rehash: Read everything again, whatever is remembered.
        threads: The most threads that a unit digests documents with.
    """

    out: OutputFolder
    options: IngestOptions
    partitions: int
    benchmark: str = ""
    rehash: bool = False
    threads: int = 1

    def expand(self, units: beam.PCollection[Unit]) -> beam.PCollection[tuple[int, bytes]]:
        """Apply the first pass to a PCollection of input units."""
        reader = _FingerprintFn(
            self.out,
            self.options,
            self.benchmark,
            rehash=self.rehash,
            partitions=self.partitions,
            threads=self.threads,
        )
        candidates: beam.PCollection[tuple[int, bytes]] = units | "Fingerprint" >> beam.ParDo(reader)
        return candidates
