"""Units by number, their receipts, and settings of stages that do no work: for tests of how units are run."""

from dataclasses import dataclass, replace

from schemas.units import Stage, Unit, UnitReceipt
from transforms.storage.folder import OutputFolder


@dataclass(frozen=True)
class Settings:
    """Where units are published, and the label of the one that fails."""

    out: OutputFolder
    failing: str = ""


def unit(number):
    """A unit of an export, labelled by its number."""
    return Unit(stage=Stage.DRIFT, key=f"{number:064x}", num_bytes=1, label=str(number), payload={})


def done(unit):
    """The receipt of a unit that made nothing."""
    return UnitReceipt(stage=unit.stage, key=unit.key, outputs=(), totals={})


def fail(unit, settings):
    """Do a unit, unless it is the one that fails."""
    if unit.label == settings.failing:
        raise ValueError(f"unit {unit.label} failed")
    return done(unit)


def count(unit, settings):
    """The same, with a receipt that counts documents and tokens."""
    return replace(fail(unit, settings), totals={"documents": 2, "tokens": 5, "other": 1})
