"""What the programs of all stages have in common: the stages that they need, how they run, and how they are planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from configs.runs import RunConfig
from pipelines.console.progress import Reporter
from pipelines.stages.session import Session, open_session
from schemas.units import Stage, Unit, UnitReceipt

UP_TO_DATE = "up to date"
"""Why a unit that ran before is skipped."""


@dataclass(frozen=True)
class PlannedUnit:
    """A unit of the plan.

    Attributes:
        stage: The stage.
        unit: The unit's label.
        action: `run` or `skip`.
        reason: Why.
    """

    stage: str
    unit: str
    action: str
    reason: str

    @property
    def is_up_to_date(self) -> bool:
        """Whether it is skipped because it ran before."""
        return self.reason == UP_TO_DATE


@dataclass(frozen=True, kw_only=True)
class StagePlan:
    """What a run would do in a stage.

    Attributes:
        units: The units, in order.
        receipts: The receipts of the units that are up to date.
        blocked: Why nothing is known yet of the stages that follow; empty if something is.
    """

    units: Sequence[PlannedUnit]
    receipts: Sequence[UnitReceipt] = ()
    blocked: str = ""


@dataclass(frozen=True, kw_only=True)
class StageProgram:
    """The program of a stage.

    Attributes:
        stage: The stage.
        needs: The stages whose receipts it takes, in the order in which `work` and `plan` take them.
        work: Does what is new, and returns the receipts of all units of the stage.
        plan: Returns what `work` would do; writes nothing.
        check_alone: Checks, if the stage runs alone, what a stage before it looks at in a run.
    """

    stage: Stage
    needs: tuple[Stage, ...] = field(default=())
    work: Callable[..., Sequence[UnitReceipt]]
    plan: Callable[..., StagePlan]
    check_alone: Callable[[Session], None] = lambda _: None

    def run(self, config: RunConfig, reporter: Reporter) -> None:
        """Run the stage alone, on what the stages that it needs left in OUT.

        Args:
            config: The output folder and the options.
            reporter: Where progress goes.
        """
        with open_session(config, reporter) as session:
            found = list(map(session.current, self.needs))
            session.check_outputs(chain.from_iterable(found))
            self.check_alone(session)
            self.work(session, *found)


def plan_units(session: Session, units: Sequence[Unit]) -> StagePlan:
    """Return which units a run would do or skip."""
    planned, receipts = list[PlannedUnit](), list[UnitReceipt]()
    for unit in units:
        receipt = session.out.find_receipt(unit)
        if receipt is not None and receipt.is_final:
            planned.append(to_skip(unit.stage, unit.label, UP_TO_DATE))
            receipts.append(receipt)
        elif not session.out.exists(unit.receipt_path):
            planned.append(to_run(unit.stage, unit.label, "new or changed"))
        else:
            reason = "a file of it is missing or damaged, or an input changed while it ran"
            planned.append(to_run(unit.stage, unit.label, reason))
    return StagePlan(units=planned, receipts=receipts)


def to_skip(stage: str, unit: str, reason: str) -> PlannedUnit:
    """Return a unit that would not run."""
    return PlannedUnit(str(stage), unit, "skip", reason)


def to_run(stage: str, unit: str, reason: str) -> PlannedUnit:
    """Return a unit that would run."""
    return PlannedUnit(str(stage), unit, "run", reason)
