"""From packed documents to a validated receipt: the stages that encode, beside datatrove's tokenization.

Datatrove reads the same documents from Parquet files of text and encodes them with the same tokenizer.json in worker
processes; it writes flat ids and an index, without digests, and validates nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from benches.lib.harness import BenchmarkError, Candidate, Comparison, RunResult, compare
from benches.lib.peers import OURS
from benches.lib.references import is_utf8
from benches.lib.stages import Ready, hash_receipts, prepare_stage, run_stage
from pipelines.console.console import Output, log_to_console
from pipelines.console.progress import MEGABYTE, Reporters
from schemas.units import Stage, receipt_folder
from tokenizer_build.compare.candidates import set_rayon_threads

if TYPE_CHECKING:
    from configs.runs import RunConfig

DATATROVE = "datatrove"
DATATROVE_BYTES = 100 * MEGABYTE
"""About so much of the documents is encoded by datatrove."""

DOCUMENTS_AT_ONCE = 1000
"""Documents of a batch of datatrove's: with its default, 10,000, a worker takes gigabytes."""


@dataclass(frozen=True)
class Documents:
    """Documents as datatrove reads them: a folder of Parquet files with a column of text, and their bytes."""

    folder: Path
    num_bytes: int


def measure_tokenizing(config: RunConfig, num_bytes: int, work: Path, *, rounds: int) -> Iterator[Comparison]:
    """Measure tokenize beside datatrove, validate, and both, in MB of source per second.

    Args:
        config: A run that is done, all files in `config.out_folder`.
        num_bytes: Bytes of its documents.
        work: A folder for datatrove's files.
        rounds: Runs of each.
    """
    config = config.model_copy(update={"tokenizer": config.out_folder / "tokenizer"})
    amounts = {"MB": num_bytes / MEGABYTE}
    documents = write_texts(config.out_folder, work / "texts")

    def ours(stage: Stage, run: Callable[[Ready], RunResult]) -> Candidate[Any]:
        return Candidate(name=OURS, prepare=partial(prepare_stage, config, stage), run=run, threads=config.threads)

    theirs: Candidate[Any] = Candidate(
        name=DATATROVE,
        prepare=partial(prepare_datatrove, work / "datatrove"),
        run=partial(run_datatrove, documents, config.out_folder / "tokenizer/tokenizer.json", config.threads),
        threads=config.threads,
        expected="done",
        input_bytes=documents.num_bytes,
    )
    yield compare(
        "tokenize",
        [ours(Stage.TOKENIZE, partial(run_stage, Stage.TOKENIZE, amounts)), theirs],
        input_bytes=num_bytes,
        rounds=rounds,
    )
    validate = ours(Stage.VALIDATE, partial(run_stage, Stage.VALIDATE, amounts))
    yield compare("validate", [validate], input_bytes=num_bytes, rounds=rounds)
    both = ours(Stage.TOKENIZE, partial(run_both, amounts))
    yield compare("tokenize and validate", [both], input_bytes=num_bytes, rounds=rounds)


def run_both(amounts: dict[str, float], ready: Ready) -> RunResult:
    """Tokenize and validate, up to the receipt of the run."""
    run_stage(Stage.TOKENIZE, {}, ready)
    with log_to_console(Output(quiet=True)):
        import_module(f"pipelines.stages.{Stage.VALIDATE}").run(ready.config, Reporters())
    return RunResult(amounts, partial(hash_receipts, ready.config.out_folder / receipt_folder(Stage.VALIDATE)))


def write_texts(out: Path, folder: Path) -> Documents:
    """Write documents of a run that are UTF-8 as text, one file per row group, until there are `DATATROVE_BYTES`."""
    folder.mkdir(parents=True)
    num_bytes = 0
    for number, batch in enumerate(_row_groups(out)):
        contents: list[Any] = batch["content"].to_pylist()
        texts = [content.decode() for content in contents if is_utf8(content)]
        ids = [str(row) for row in range(len(texts))]
        pq.write_table(pa.table({"id": ids, "text": texts}), folder / f"{number:05}.parquet")
        num_bytes += sum(len(text.encode()) for text in texts)
        if num_bytes >= DATATROVE_BYTES:
            break
    return Documents(folder, num_bytes)


def prepare_datatrove(folder: Path) -> Path:
    """Import datatrove, send its log away and clear its output; a worker encodes with one thread."""
    set_rayon_threads(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    import_module("datatrove.pipeline.tokens")
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def run_datatrove(documents: Documents, tokenizer_json: Path, workers: int, folder: Path) -> RunResult:
    """Encode the documents with datatrove's DocumentTokenizer, one task per worker, EOS after each.

    Raises:
        BenchmarkError: If it leaves no tokens.
    """
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.readers.parquet import ParquetReader
    from datatrove.pipeline.tokens.tokenizer import DocumentTokenizer

    steps: list[Any] = [
        ParquetReader(str(documents.folder)),
        DocumentTokenizer(
            str(folder / "tokens"),
            tokenizer_name_or_path=str(tokenizer_json),
            eos_token="<EOS>",
            batch_size=DOCUMENTS_AT_ONCE,
            shuffle_documents=False,
        ),
    ]
    executor: Any = LocalPipelineExecutor(steps, tasks=workers, workers=workers, logging_dir=str(folder / "logs"))
    executor.run()
    if not any(path.stat().st_size for path in (folder / "tokens").glob("*.ds")):
        raise BenchmarkError(f"{folder}: datatrove left no tokens there")
    return RunResult({"MB": documents.num_bytes / MEGABYTE}, "done")


def _row_groups(out: Path) -> Iterator[pa.RecordBatch]:
    for shard in sorted((out / "documents").glob("part-*.parquet")):
        with pq.ParquetFile(shard) as file:
            for number in range(file.num_row_groups):
                yield from file.read_row_group(number, columns=["content"]).to_batches()
