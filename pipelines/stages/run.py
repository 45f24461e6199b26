"""The whole run: the programs of all stages, in the order of `RUN_STAGES`."""

from __future__ import annotations

from collections.abc import Sequence

from configs.runs import RunConfig
from pipelines.console.progress import Reporter
from pipelines.stages import build, ingest, scan, tokenize, validate
from pipelines.stages.program import StageProgram
from pipelines.stages.session import open_session
from schemas.units import RUN_STAGES, TOKENIZER_STAGES, Stage, UnitReceipt

PROGRAMS: dict[Stage, StageProgram] = {
    stages.PROGRAM.stage: stages.PROGRAM for stages in (ingest, scan, build, tokenize, validate)
}


def programs_of(config: RunConfig) -> list[StageProgram]:
    """Return the programs of a run, in order; with a tokenizer given, those that make one are left out."""
    left_out = () if config.tokenizer is None else TOKENIZER_STAGES
    return [PROGRAMS[stage] for stage in RUN_STAGES if stage not in left_out]


def run(config: RunConfig, reporter: Reporter) -> None:
    """Run every stage on the sources.

    Args:
        config: Sources, output folder and options.
        reporter: Where progress goes.
    """
    receipts = dict[Stage, Sequence[UnitReceipt]]()
    with open_session(config, reporter) as session:
        for program in programs_of(config):
            receipts[program.stage] = program.work(session, *(receipts[stage] for stage in program.needs))
