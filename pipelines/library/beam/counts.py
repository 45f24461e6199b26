"""The counts of `cppmill scan`, from which vocabularies are chosen and learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import cppmill_core
import pyarrow as pa
from apache_beam.coders import Coder, IterableCoder
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.library.beam.arguments import check_number, check_threads
from pipelines.library.beam.batches import ToBatches, in_window
from pipelines.library.commands import read_table
from pipelines.library.options import PlaceText, ScanKeys
from pipelines.library.places import check_place
from pipelines.stages.scan import scanner_config
from pipelines.stages.vocabulary import local_vocabulary
from schemas.coders import RecordBatchCoder
from schemas.errors import ConfigError
from schemas.options import ScanOptions
from transforms.scan.kinds import Family
from transforms.scan.sums import add_counts, finish_counts, take_counts
from transforms.sources.tables import read_column, read_content
from transforms.storage.scratch import temporary_folder

COUNTED_BYTES = 64 << 20
"""A worker sends what it has counted once it has read so much text."""

MAX_PARTS = 16
"""So many partial counts of a kind are held before they are added up."""

Accumulator = list[pa.RecordBatch]


@dataclass(kw_only=True)
class CountTokens(beam.PTransform[beam.PCollection[Any], beam.PCollection[pa.RecordBatch]]):
    """Count the tokens of C++ in documents: by default words, from which a tokenizer is learned.

    In: batches or rows with `content` (text or bytes) and, if they have one, `project`. Out: `pyarrow.RecordBatch`,
    each row once, with the schema of the counts of a run: `WORDS` (word, count), `TERMS` (names of the vocabulary),
    `MORPHEMES` or `NAMESPACES`. The sums are exact, and the same on every runner. Words come in several batches,
    by `scan.word_partitions`; one worker holds all other counts.

    Args:
        family: `words`, `units` (lines, which need `unit_pattern`), `terms`, `morphemes` or `namespaces`.
        scan: Options of the scan by their keys, as for `cppmill.run`.
        vocab: The folder of your own vocabulary; it is read when you construct the pipeline.
        memory_bytes: Memory for the tables of a worker; what does not fit goes to temporary files.
        threads: Threads per worker.

    Raises:
        ConfigError: While you construct the pipeline, for options that cannot be used.
        BadInputError: In a worker, for documents without text.
    """

    family: str = Family.WORDS
    scan: ScanKeys = field(default_factory=ScanKeys)
    vocab: PlaceText | None = None
    memory_bytes: int = 256 << 20
    threads: int = 1

    def expand(self, documents: beam.PCollection[Any]) -> beam.PCollection[pa.RecordBatch]:
        """Count by bundle, and add up by kind."""
        family, config = _read_family(self.family), self._scanner_config()
        memory_bytes = check_number("memory_bytes", self.memory_bytes)
        count = beam.ParDo(_CountFn(family, config, memory_bytes, check_threads(self.threads)))
        add = AddCounts(family).with_input_types(pa.RecordBatch).with_output_types(pa.RecordBatch)
        counted: beam.PCollection[pa.RecordBatch] = (
            documents
            | "Batch" >> ToBatches()
            | "Count" >> count.with_output_types(tuple[str, pa.RecordBatch])
            | "Add" >> beam.CombinePerKey(add)
            | "Finish" >> beam.FlatMap(_finish, family=family).with_output_types(pa.RecordBatch)
        )
        return counted

    def _scanner_config(self) -> str:
        options = read_table(ScanOptions, "scan", self.scan)
        if self.family == Family.LINES and options.unit_pattern is None:
            raise ConfigError("scan: lines are counted with a unit_pattern, such as 'cpp-lines-1'; there is none")
        return scanner_config(
            options, local_vocabulary(None if self.vocab is None else check_place("vocab", self.vocab))
        )


class _CountFn(beam.DoFn):
    """Counts the documents of a bundle, each window apart."""

    def __init__(self, family: Family, config: str, memory_bytes: int, threads: int) -> None:
        self._family, self._config = family, config
        self._memory_bytes, self._threads = memory_bytes, threads

    def setup(self) -> None:
        """Make a folder for temporary files."""
        self._folder = temporary_folder()

    def start_bundle(self) -> None:
        """Begin without counts, whatever a bundle that failed has left."""
        self._scanner = cppmill_core.Scanner(
            self._config, self._threads, memory_bytes=self._memory_bytes, spill_dir=self._folder.name
        )
        self._num_bytes, self._window = 0, None

    def process(self, documents: pa.RecordBatch, window: Any = beam.DoFn.WindowParam) -> Iterator[WindowedValue]:  # noqa: ANN401
        """Count documents, and yield counts once there is enough of them."""
        if self._num_bytes >= COUNTED_BYTES or (self._num_bytes and window != self._window):
            yield from self._take()
        self._window = window
        content = read_content(documents)
        self._scanner.add(
            pa.RecordBatch.from_arrays([read_column(documents, "project"), content], names=["project", "content"])
        )
        self._num_bytes += content.nbytes

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the last counts."""
        yield from self._take()

    def teardown(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()

    def _take(self) -> Iterator[WindowedValue]:
        if self._num_bytes:
            for counted in take_counts(self._scanner, self._family):
                yield in_window(counted, self._window)
        self._num_bytes = 0


class AddCounts(beam.CombineFn):
    """Adds up partial counts of one kind; the order of additions has no effect.

    Batches are collected, and added up when there are too many of them or Beam sends them on.
    """

    def __init__(self, family: Family) -> None:
        """Keep what is counted."""
        self._family = family

    def create_accumulator(self) -> Accumulator:
        """Return no counts."""
        return []

    def add_input(self, accumulator: Accumulator, element: pa.RecordBatch) -> Accumulator:
        """Take partial counts."""
        return self._bounded([*accumulator, element])

    def merge_accumulators(self, accumulators: Iterable[Accumulator]) -> Accumulator:
        """Take the partial counts of others."""
        return self._bounded([batch for accumulator in accumulators for batch in accumulator])

    def compact(self, accumulator: Accumulator) -> Accumulator:
        """Add up what is held."""
        return [add_counts(self._family, accumulator)] if len(accumulator) > 1 else accumulator

    def extract_output(self, accumulator: Accumulator) -> pa.RecordBatch:
        """Return the sums."""
        return add_counts(self._family, accumulator)

    def get_accumulator_coder(self) -> Coder:
        """Return a coder that pickles nothing."""
        return IterableCoder(RecordBatchCoder())

    def _bounded(self, batches: Accumulator) -> Accumulator:
        return self.compact(batches) if len(batches) > MAX_PARTS else batches


def _finish(counted: tuple[str, pa.RecordBatch], family: Family) -> Iterator[pa.RecordBatch]:
    yield from finish_counts(family, counted[1])


def _read_family(name: str) -> Family:
    families = [str(family) for family in Family if family is not Family.STATISTICS]
    if name not in families:
        raise ConfigError(f"family {name!r}: nothing that is counted; it takes one of {', '.join(families)}")
    return Family(name)
