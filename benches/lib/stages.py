"""The stages of the product, each by itself: its program in a process of its own, from files to files.

The clock measures what a user waits for once Python and Beam are imported: planning, the pipeline, digests, flushing to
disk. Before each run the output folder is made anew with what the stage needs, so none of its output is there. Programs
are imported where they run, outside the clock, because Beam logs much that is of no use here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benches.lib.harness import BenchmarkError, Candidate, Comparison, RunResult, compare
from pipelines.console.console import Output, log_to_console
from pipelines.console.progress import MEGABYTE, Reporter, Reporters
from schemas.units import RECEIPT_FOLDERS, RUN_STAGES, TOKENIZER_STAGES, Stage, receipt_folder
from transforms.storage.folder import CACHE

if TYPE_CHECKING:
    from benches.lib.corpus import Corpus
    from configs.runs import RunConfig

NEEDS: dict[Stage, tuple[Stage, ...]] = {
    Stage.INGEST: (),
    Stage.SCAN: (Stage.INGEST,),
    Stage.BUILD: (Stage.SCAN,),
    Stage.TOKENIZE: (Stage.INGEST, Stage.BUILD),
    Stage.VALIDATE: (Stage.INGEST, Stage.SCAN, Stage.BUILD, Stage.TOKENIZE),
}
"""The stages whose files each stage reads."""


@dataclass(frozen=True)
class Ready:
    """A stage about to start: its program, and a configuration whose output folder has what it needs."""

    program: Callable[[RunConfig, Reporter], None]
    config: RunConfig


def measure_stages(corpus: Corpus, *, rounds: int) -> Iterator[Comparison]:
    """Measure every stage, one bench each, in MB of source per second, and tokenize in tokens per second too.

    Args:
        corpus: The tree and its run.
        rounds: Runs of each stage.
    """
    for stage in RUN_STAGES:
        amounts = {"MB": corpus.num_bytes / MEGABYTE}
        if stage is Stage.TOKENIZE:
            amounts["tokens"] = corpus.tokens
        candidate = Candidate(
            name="cppmill",
            prepare=partial(prepare_stage, corpus.config, stage),
            run=partial(run_stage, stage, amounts),
            threads=corpus.config.threads,
        )
        yield compare(str(stage), [candidate], input_bytes=corpus.num_bytes, rounds=rounds)


def prepare_stage(base: RunConfig, stage: Stage) -> Ready:
    """Import a stage's program and make an output folder, beside the folder of `base`, with what the stage needs.

    Files are hard links: stages publish by renaming and never write into a published file.
    """
    out = base.out_folder.with_name("timed")
    shutil.rmtree(out, ignore_errors=True)
    index = out / CACHE / "stages"
    index.mkdir(parents=True)
    for needed in needs(base, stage):
        for folder in {Path(RECEIPT_FOLDERS[needed]).parts[0], receipt_folder(needed)}:
            if (base.out_folder / folder).is_dir():
                shutil.copytree(base.out_folder / folder, out / folder, copy_function=os.link)
        shutil.copyfile(base.out_folder / CACHE / "stages" / f"{needed}.json", index / f"{needed}.json")
    if base.tokenizer is not None:
        ignore = shutil.ignore_patterns("_unit-*")  # a tokenizer that was given was not built there
        shutil.copytree(base.out_folder / "tokenizer", out / "tokenizer", copy_function=os.link, ignore=ignore)
    if NEEDS[stage]:  # what the stages before remembered, as in a whole run
        shutil.copyfile(base.out_folder / CACHE / "digests.json", out / CACHE / "digests.json")
    with log_to_console(Output(quiet=True)):
        program = import_module(f"pipelines.stages.{stage}").run
    return Ready(program, base.model_copy(update={"out": out}))


def needs(config: RunConfig, stage: Stage) -> list[Stage]:
    """Return the stages whose files a stage reads; a tokenizer that was given has no scan and no build."""
    left_out = () if config.tokenizer is None else TOKENIZER_STAGES
    return [needed for needed in NEEDS[stage] if needed not in left_out]


def run_stage(stage: Stage, amounts: dict[str, float], ready: Ready) -> RunResult:
    """Run a stage's program; its output is compared by its unit receipts, which hold the digests of all its files."""
    with log_to_console(Output(quiet=True)):
        ready.program(ready.config, Reporters())
    return RunResult(amounts, partial(hash_receipts, ready.config.out_folder / receipt_folder(stage)))


def hash_receipts(folder: Path) -> str:
    """Return the SHA-256 of all unit receipts in a folder.

    Raises:
        BenchmarkError: If there are none.
    """
    receipts = sorted(folder.glob("_unit-*.json"))
    if not receipts:
        raise BenchmarkError(f"{folder}: the stage left no unit receipt there")
    return hashlib.sha256(b"".join(receipt.read_bytes() for receipt in receipts)).hexdigest()
