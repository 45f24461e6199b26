"""The progress of a run: what stages report, and the meter that reporters keep of the current stage.

The lines that people read are made in `lines`; the reporters that show them are in `reporters` and `bar`. Every
reporter may be called from several threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

MEGABYTE = 1_000_000

Summary = Mapping[str, int | float | str]
"""What a stage made, by name: numbers with their unit as the name (`documents`, `bytes`), or text."""


class Reporter(Protocol):
    """What a stage reports while it runs."""

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Begin a stage with the units and input bytes that it has to do; reused units do not count."""

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Report how many units and input bytes of the current stage are done in all."""

    def stage_done(self, stage: str, seconds: float, summary: Summary) -> None:
        """End a stage, with what it made."""

    def note(self, message: str) -> None:
        """Report something to the user that is not an error."""


@dataclass
class Meter:
    """Rate and time left of the current stage.

    Attributes:
        stage: The stage.
        units: Units to do.
        num_bytes: Input bytes to do.
        clock: Monotonic seconds.
    """

    stage: str
    units: int
    num_bytes: int
    clock: Callable[[], float] = time.monotonic
    done_units: int = 0
    done_bytes: int = 0
    started: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self.started = self.clock()

    @property
    def seconds(self) -> float:
        """Seconds since the stage began."""
        return self.clock() - self.started

    @property
    def bytes_per_second(self) -> float:
        """Input bytes per second since the stage began."""
        return self.done_bytes / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta_seconds(self) -> float | None:
        """Seconds left at the rate so far, by bytes if there are any, else by units; None before the first is done."""
        done, total = (self.done_bytes, self.num_bytes) if self.num_bytes else (self.done_units, self.units)
        return self.seconds * max(0, total - done) / done if done else None


class Reporters:
    """Pass every call on to several reporters; to none, it shows nothing, and errors still go to the error stream."""

    def __init__(self, *reporters: Reporter) -> None:
        """Keep the reporters."""
        self._reporters = reporters

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Pass it on."""
        for reporter in self._reporters:
            reporter.stage_started(stage, units, num_bytes)

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Pass it on."""
        for reporter in self._reporters:
            reporter.progress(done_units, done_bytes)

    def stage_done(self, stage: str, seconds: float, summary: Summary) -> None:
        """Pass it on."""
        for reporter in self._reporters:
            reporter.stage_done(stage, seconds, summary)

    def note(self, message: str) -> None:
        """Pass it on."""
        for reporter in self._reporters:
            reporter.note(message)
