"""The whole run, and the plan of it: the programs of all stages, in the order of `RUN_STAGES`.

The plan says which units a run would do or skip, and why; nothing is written. It names what cannot be known yet: the
documents of unread inputs, and the words of unwritten documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from configs.runs import RunConfig
from pipelines.console.progress import Reporter, Reporters
from pipelines.engines.execution import open_engine
from pipelines.stages import build, ingest, scan, tokenize, validate
from pipelines.stages.peers import run_as_peer
from pipelines.stages.program import PlannedUnit, StageProgram, to_run, to_skip
from pipelines.stages.session import Session, engine_config, open_session
from pipelines.stages.standing import KEPT, check_standing, keeps_any
from pipelines.stages.vocabulary import check_vocabulary
from schemas.units import RUN_STAGES, TOKENIZER_STAGES, Stage, UnitReceipt
from transforms.records.receipts import RECEIPT
from transforms.records.recorded import recorded_files
from transforms.storage.folder import OutputFolder

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
    if config.peer is not None:
        run_as_peer(config, config.peer, reporter, run_stages)
        return
    with open_session(config, reporter) as session:
        run_stages(session)


def run_stages(session: Session) -> None:
    """Run every stage in a session.

    Raises:
        ConfigError: If an option disagrees with the tokenizer in OUT, before anything is done.
        NothingKeptError: If no document is kept.
        VocabularyConfigError: The same if the vocabulary cannot be built from with these options.
    """
    _check(session)
    validate.check_others(session.out, list(session.out.files()))
    before = _receipt_bytes(session.out)
    receipts = dict[Stage, Sequence[UnitReceipt]]()
    for program in programs_of(session.config):
        receipts[program.stage] = program.work(session, *(receipts[stage] for stage in program.needs))
        pa.default_memory_pool().release_unused()
    if receipts.get(Stage.BUILD) == [] and _receipt_bytes(session.out) != before:
        from pipelines.stages.gain import describe_gain

        for line in describe_gain(session, receipts[Stage.INGEST], receipts[Stage.TOKENIZE]):
            session.reporter.note(line)


def _check(session: Session) -> None:
    """Check what stands in OUT and what the vocabulary holds against the options, or the tokenizer that is given."""
    if session.config.tokenizer is not None:
        build.check_given(session.config)
        return
    check_standing(session)
    check_vocabulary(session.vocabulary, session.config.options)


def _receipt_bytes(out: OutputFolder) -> bytes:
    return out.read_bytes(RECEIPT) if out.exists(RECEIPT) else b""


def plan(config: RunConfig) -> list[PlannedUnit]:
    """Return every unit that a run would look at, in the order of the stages.

    Raises:
        ConfigError, VocabularyConfigError: As a run would be refused.
    """
    out = OutputFolder(config.out)
    out.load_digests()
    out.hold_receipts(recorded_files(out))
    with open_engine("local", engine_config(config, out)) as engine:  # it is never asked to run anything
        return list(_plan(Session(config=config, out=out, reporter=Reporters(), engine=engine)))


def _plan(session: Session) -> Iterator[PlannedUnit]:
    _check(session)
    receipts, blocked = dict[Stage, Sequence[UnitReceipt]](), ""
    for program in programs_of(session.config):
        if blocked and program.stage in TOKENIZER_STAGES and keeps_any(session):
            yield to_skip(program.stage, "all units", KEPT)
            continue
        if blocked:
            yield to_run(program.stage, "units not known yet", blocked)
            continue
        planned = program.plan(session, *(receipts[stage] for stage in program.needs))
        yield from planned.units
        receipts[program.stage], blocked = planned.receipts, planned.blocked
