"""What the benchmarks measure on: a source tree, one whole run of it, and a sample of its documents.

All of this is made once, outside every clock. The run is kept as it is: a timed stage starts from copies of its files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benches.lib.references import is_utf8
from configs.execution import usable_threads
from configs.runs import RunConfig, load_run_config
from configs.tables import DEFAULT_PROFILE
from pipelines.console.progress import MEGABYTE, Reporter
from pipelines.stages import ingest
from pipelines.stages import run as whole_run
from schemas.errors import ConfigError
from schemas.options import IngestOptions
from schemas.printing import count
from transforms.records.receipts import RECEIPT

VOCAB_SIZES = ((32 * MEGABYTE, 1 << 16), (MEGABYTE, 1 << 14), (0, 1 << 13))
"""Least bytes of text and the vocabulary that so much can fill, largest first."""

SAMPLE_BYTES = 20 * MEGABYTE
MAX_SAMPLE_DOCUMENT_BYTES = MEGABYTE
"""Longer documents stay out of the sample: `tokenizers` takes hundreds of bytes of memory for each of theirs."""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A source tree after one whole run.

    Attributes:
        config: The run's configuration; all its files are in `config.out`.
        documents: Documents kept.
        num_bytes: Their bytes: the source that every stage's rate is of.
        tokens: Their tokens.
        units: Units of work, so the most that a stage can do at once.
    """

    config: RunConfig
    documents: int
    num_bytes: int
    tokens: int
    units: int

    def describe(self) -> str:
        """Return what it is in a line."""
        return (
            f"{self.documents:,} documents, {self.num_bytes / MEGABYTE:,.1f} MB, {self.tokens:,} tokens "
            f"({self.num_bytes / max(1, self.tokens):.2f} bytes per token), {count(self.units, 'unit')}; "
            f"vocabulary of {self.config.options.build.vocab_size:,} ids"
        )


def make_corpus(
    source: Path,
    out: Path,
    *,
    threads: int | None,
    limit_bytes: int | None,
    reporter: Reporter,
    tokenizer: Path | None = None,
    profile: str = DEFAULT_PROFILE,
) -> Corpus:
    """Run a source tree through every stage, with a vocabulary that its text can fill.

    Args:
        source: The tree.
        out: The run's output folder.
        threads: Number of threads; all usable CPUs by default.
        limit_bytes: Take a sample of about this many bytes, by the hash of the path; all by default.
        reporter: Where progress goes.
        tokenizer: Directory of a tokenizer to use instead of building one.
        profile: What builds the tokenizer, and counts for it.

    Raises:
        ConfigError: If there is no C++ in the tree, or too little to fill the smallest vocabulary.
    """
    options = load_run_config(flags={"SOURCE": (str(source),), "--out": str(out), "--profile": profile}).options
    options = options.model_copy(update={"max_dead_fraction": 1.0})
    config = RunConfig(
        sources=(str(source),),
        out=out,
        options=options,
        tokenizer=tokenizer,
        rebuild_tokenizer=tokenizer is None,
        threads=threads or usable_threads(),
    )
    ingest_options = IngestOptions(sample=sample_share(config, limit_bytes))
    config = config.model_copy(update={"options": options.model_copy(update={"ingest": ingest_options})})
    ingest.run(config, reporter)
    vocab_size = choose_vocab_size(documents_bytes(out))
    build_options = options.build.model_copy(update={"vocab_size": vocab_size})
    options = config.options.model_copy(update={"build": build_options})
    config = config.model_copy(update={"options": options})
    whole_run.run(config, reporter)
    dataset = json.loads((out / RECEIPT).read_bytes())["dataset"]
    return Corpus(
        config=config,
        documents=dataset["documents"],
        num_bytes=dataset["bytes"],
        tokens=dataset["tokens"],
        units=len(dataset["shards"]),
    )


def sample_share(config: RunConfig, limit_bytes: int | None) -> float:
    """Return the share of the source's documents that has about `limit_bytes`; archives count as large as they are."""
    if limit_bytes is None:
        return 1.0
    return min(1.0, limit_bytes / max(1, sum(unit.num_bytes for unit in ingest.list_units(config))))


def choose_vocab_size(text_bytes: int) -> int:
    """Return how many ids so much text can fill, 65,536 at most.

    Example:
        >>> choose_vocab_size(5_000_000), choose_vocab_size(330_000_000)
        (16384, 65536)
    """
    return next(vocab_size for least_bytes, vocab_size in VOCAB_SIZES if text_bytes >= least_bytes)


def documents_bytes(out: Path) -> int:
    """Return the bytes of the documents in an output folder."""
    columns = (pq.read_table(shard, columns=["num_bytes"])["num_bytes"] for shard in _shards(out))
    return sum(int(column.to_numpy().sum()) for column in columns)


def write_sample(out: Path, path: Path, *, sample_bytes: int = SAMPLE_BYTES) -> int:
    """Write documents that are valid UTF-8 to a Parquet file and return their bytes.

    Which ones is decided by their digests, so the sample is of the whole corpus and the same in every run.

    Args:
        out: Output folder with documents.
        path: The file to write; columns `project` and `content`.
        sample_bytes: About how much to take.

    Raises:
        ConfigError: If no document would do.
    """
    share = sample_bytes / documents_bytes(out)
    batches = [batch for batch in _sampled(out, share) if batch.num_rows]
    if not batches:
        raise ConfigError("CORPUS: no document of it is valid UTF-8 of 1 MB at most, so there is nothing to compare on")
    table = pa.Table.from_batches(batches)
    pq.write_table(table, path)
    return int(pc.binary_length(table["content"]).to_numpy().sum())


def _sampled(out: Path, share: float) -> Iterator[pa.RecordBatch]:
    for shard in _shards(out):
        with pq.ParquetFile(shard) as file:
            for batch in file.iter_batches(batch_size=1024, columns=["doc_id", "project", "content"]):
                ids: list[Any] = batch["doc_id"].to_pylist()
                chosen = [row for row, doc_id in enumerate(ids) if int(doc_id[:8], 16) < share * 2**32]
                contents = ((row, batch["content"][row].as_py()) for row in chosen)
                rows = [row for row, text in contents if len(text) <= MAX_SAMPLE_DOCUMENT_BYTES and is_utf8(text)]
                yield batch.select(["project", "content"]).take(pa.array(rows, pa.int64()))


def _shards(out: Path) -> list[Path]:
    return sorted((out / "documents").glob("part-*.parquet"))
