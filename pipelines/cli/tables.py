"""What commands print about a plan, runs on engines, and differences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from schemas.errors import ExitCode
from schemas.printing import count, one_line

if TYPE_CHECKING:
    from pipelines.stages.equivalence import EngineRun
    from pipelines.stages.program import PlannedUnit

SHOWN_DIFFERENCES = 20


def print_plan(units: Sequence[PlannedUnit], *, as_json: bool, every_unit: bool) -> None:
    """Print a plan: a JSON object a line, or a table of the units that would run after a line for each stage.

    Args:
        units: The units, in the order in which they would run.
        as_json: JSON instead of a table.
        every_unit: Put the units that are up to date into the table too; others are always there.
    """
    if as_json:
        for unit in units:
            record = {"stage": unit.stage, "unit": unit.unit, "action": unit.action, "reason": unit.reason}
            typer.echo(json.dumps(record))
        return
    for line in plan_lines(units, every_unit=every_unit):
        typer.echo(line)


def plan_lines(units: Sequence[PlannedUnit], *, every_unit: bool) -> Iterable[str]:
    """Yield the lines of the table."""
    counts = Counter((str(unit.stage), str(unit.action)) for unit in units)
    for stage in dict.fromkeys(str(unit.stage) for unit in units):
        yield f"{stage:9} {counts[stage, 'run']:>8,} to run {counts[stage, 'skip']:>8,} to skip"
    shown = [unit for unit in units if every_unit or not unit.is_up_to_date]
    if all(unit.action == "skip" for unit in units):
        yield "nothing to do: every unit is up to date"
    if not shown:
        return
    names = [one_line(unit.unit) for unit in shown]
    width = max(map(len, names))
    yield ""
    yield f"{'stage':9} {'action':6} {'unit':{width}} reason"
    for unit, name in zip(shown, names, strict=True):
        yield f"{unit.stage:9} {unit.action:6} {name:{width}} {one_line(unit.reason)}"


def print_outcomes(outcomes: Sequence[EngineRun], *, as_json: bool) -> None:
    """Print what became of each way to run: a JSON object a line, or a table with the first digits of each digest."""
    if as_json:
        for outcome in outcomes:
            record = {"engine": outcome.way, "seconds": round(outcome.seconds, 3), **outcome.digests}
            typer.echo(json.dumps({**record, **({"reason": outcome.reason} if outcome.reason else {})}))
        return
    names = next((list(outcome.digests) for outcome in outcomes if outcome.digests), [])
    typer.echo(f"{'engine':10} {'seconds':>8}  " + "  ".join(f"{name:16}" for name in names))
    for outcome in outcomes:
        digests = "  ".join(digest[:16] for digest in outcome.digests.values())
        seconds = f"{outcome.seconds:.1f}" if outcome.digests else "-"
        typer.echo(f"{outcome.way:10} {seconds:>8}  {digests or outcome.reason}")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What `verify` looked at.

    Attributes:
        out: The folder.
        record: What differences are from: `receipt` or `manifest`.
        reencoded: The part of the documents that was encoded again, of an export of the files that were made again.
        run: The run of an export; None if it was not looked at.
        absent: Of a published copy, how many files of the run are not there, by folder; None for anything else.
    """

    out: str
    record: str
    reencoded: float
    run: str | None = None
    absent: dict[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; only the answer on an export has `run`, that on a published copy `absent`."""
        left_out = {"run"} if self.record != "manifest" else set[str]()
        left_out |= {"absent"} if self.absent is None else set()
        return {name: value for name, value in vars(self).items() if name not in left_out}


def print_differences(differences: Sequence[str], answer: Answer, *, as_json: bool) -> None:
    """Print what `verify` found: lines, or a JSON object.

    Args:
        differences: A line each.
        answer: What was looked at.
        as_json: JSON instead of lines.

    Raises:
        SystemExit: With exit code 1 if it found anything.
    """
    if as_json:
        typer.echo(json.dumps({**answer.to_json(), "is_true": not differences, "differences": list(differences)}))
    else:
        _print_lines(differences, answer)
    if differences:
        raise SystemExit(int(ExitCode.FAILED_CHECK))


def _print_lines(differences: Sequence[str], answer: Answer) -> None:
    out, record = answer.out, answer.record
    if not differences:
        what = "everything" if answer.absent is None else "every file that is there"
        typer.echo(f"{out}: {what} matches the {record}")
        if answer.absent:
            lacking = ", ".join(f"{number:,} of {folder}" for folder, number in answer.absent.items())
            typer.echo(f"{out}: not there, so not checked: {lacking}")
        if record == "manifest" and answer.run is None:
            typer.echo(f"{out}: it was not compared with its run; `cppmill verify {out} --run RUN` does this")
        return
    for line in differences[:SHOWN_DIFFERENCES]:
        typer.echo(line.replace("\n", "\n    "))  # the name of a file may have a line that looks like an answer
    if len(differences) > SHOWN_DIFFERENCES:
        typer.echo(f"… and {len(differences) - SHOWN_DIFFERENCES:,} more")
    typer.echo(f"{out}: verification failed: {count(len(differences), 'difference')}", err=True)
