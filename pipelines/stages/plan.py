"""The plan: which units a run would do or skip, and why. Nothing is written.

What is not known before something has run is said as such: the documents of inputs that are unread, the words of
documents that are unwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from configs.runs import RunConfig
from pipelines.console.progress import Reporters
from pipelines.engines.execution import open_engine
from pipelines.stages.program import PlannedUnit, to_run
from pipelines.stages.run import programs_of
from pipelines.stages.session import Session, engine_config
from schemas.units import Stage, UnitReceipt
from transforms.storage.folder import OutputFolder


def plan(config: RunConfig) -> list[PlannedUnit]:
    """Return every unit that a run would look at, in the order of the stages."""
    out = OutputFolder(config.out)
    out.load_digests()
    with open_engine("local", engine_config(config, out)) as engine:  # it is never asked to run anything
        return list(_plan(Session(config=config, out=out, reporter=Reporters(), engine=engine)))


def _plan(session: Session) -> Iterator[PlannedUnit]:
    receipts, blocked = dict[Stage, Sequence[UnitReceipt]](), ""
    for program in programs_of(session.config):
        if blocked:
            yield to_run(program.stage, "what follows", blocked)
            continue
        planned = program.plan(session, *(receipts[stage] for stage in program.needs))
        yield from planned.units
        receipts[program.stage], blocked = planned.receipts, planned.blocked
