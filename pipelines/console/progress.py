"""Progress of a run: what stages report, and the ways of showing it.

People get progress on the error stream, live on a terminal and as plain lines elsewhere; programs get one JSON
object a line on the output stream. Every reporter may be called from several threads.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TextIO

MEGABYTE = 1_000_000

Summary = Mapping[str, int | float | str]
"""What a stage made, by name: numbers with their unit as the name (`documents`, `bytes`), or text."""


class Reporter(Protocol):
    """What a stage tells while it runs."""

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Begin a stage of so many units and input bytes, what is skipped left out."""

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Tell how many units and input bytes of the current stage are done, in all."""

    def stage_done(self, stage: str, seconds: float, summary: Summary) -> None:
        """End a stage, with what it made."""

    def note(self, message: str) -> None:
        """Tell the user something that is no error."""


@dataclass
class Meter:
    """Rate and time left of the current stage.

    Attributes:
        stage: The stage.
        units: Units to do.
        num_bytes: Input bytes to do.
        clock: Seconds that only grow.
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
        """Input bytes a second since the stage began."""
        return self.done_bytes / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta_seconds(self) -> float | None:
        """Seconds left at the rate so far, by bytes if there are any, else by units; None before the first is done."""
        done, total = (self.done_bytes, self.num_bytes) if self.num_bytes else (self.done_units, self.units)
        return self.seconds * max(0, total - done) / done if done else None

    def describe(self) -> str:
        """Return the progress in a line."""
        parts = [f"{self.done_units:,} of {self.units:,} units"]
        if self.num_bytes:
            parts += [
                f"{self.done_bytes / MEGABYTE:,.1f} of {self.num_bytes / MEGABYTE:,.1f} MB",
                f"{self.bytes_per_second / MEGABYTE:,.1f} MB/s",
            ]
        if self.eta_seconds is not None:
            parts.append(f"{format_seconds(self.eta_seconds)} left")
        return f"{self.stage}: {', '.join(parts)}"


def format_seconds(seconds: float) -> str:
    """Return a duration as people read it.

    Example:
        >>> format_seconds(3.21), format_seconds(75), format_seconds(7500)
        ('3.2 s', '1 min 15 s', '2 h 05 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60:02d} min"


def count_units(units: int) -> str:
    """Return a number of units in words."""
    return "1 unit" if units == 1 else f"{units:,} units"


def format_summary(summary: Summary) -> str:
    """Return a summary in words.

    Example:
        >>> format_summary({"documents": 5482, "bytes": 330_100_000, "tokenizer": "kept"})
        '5,482 documents, 330.1 MB, tokenizer kept'
    """
    return ", ".join(_format_entry(name.replace("_", " "), value) for name, value in summary.items())


def _format_entry(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return f"{name} {value}"
    if name == "bytes" or name.endswith(" bytes"):
        return f"{name.removesuffix('bytes')}{value / MEGABYTE:,.1f} MB"
    return f"{value:,} {name}" if isinstance(value, int) else f"{value:,.4g} {name}"


def describe_done(stage: str, units: int, seconds: float, num_bytes: int, summary: Summary) -> str:
    """Return the line that closes a stage."""
    if units == 0:
        head = f"{stage}: nothing to do, every unit is up to date"
    else:
        rate = f", {num_bytes / MEGABYTE / seconds:,.1f} MB/s" if num_bytes and seconds > 0 else ""
        head = f"{stage}: {count_units(units)} in {format_seconds(seconds)}{rate}"
    return f"{head} ({format_summary(summary)})" if summary else head


class QuietReporter:
    """Say nothing; errors still go to the error stream."""

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Say nothing."""

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Say nothing."""

    def stage_done(self, stage: str, seconds: float, summary: Summary) -> None:
        """Say nothing."""

    def note(self, message: str) -> None:
        """Say nothing."""


@dataclass
class _Throttle:
    """Lets an event through at most once in a while."""

    every_seconds: float
    clock: Callable[[], float]
    last: float = float("-inf")
    lock: threading.Lock = field(default_factory=threading.Lock)

    def passes(self) -> bool:
        """Tell whether it is time again."""
        with self.lock:
            now = self.clock()
            if now - self.last < self.every_seconds:
                return False
            self.last = now
            return True

    def reset(self) -> None:
        """Begin a new interval now."""
        with self.lock:
            self.last = self.clock()


class PlainReporter:
    """Write plain lines, one every few seconds while a stage runs.

    Args:
        stream: Where to; the error stream of the moment by default.
        every_seconds: Least time between two lines of progress.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        every_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without a stage."""
        self._stream = stream
        self._clock = clock
        self._throttle = _Throttle(every_seconds, clock)
        self._meter = Meter("", 0, 0, clock)

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Write how much there is to do."""
        self._meter = Meter(stage, units, num_bytes, self._clock)
        self._throttle.reset()
        if units:
            self._write(f"{stage}: {count_units(units)}, {num_bytes / MEGABYTE:,.1f} MB to do")

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Write how far the stage is, if it is time again."""
        self._meter.done_units, self._meter.done_bytes = done_units, done_bytes
        if self._throttle.passes():
            self._write(self._meter.describe())

    def stage_done(self, stage: str, seconds: float, summary: Summary) -> None:
        """Write what the stage made."""
        self._write(describe_done(stage, self._meter.units, seconds, self._meter.num_bytes, summary))

    def note(self, message: str) -> None:
        """Write the message."""
        self._write(message)

    def _write(self, line: str) -> None:
        stream = self._stream or sys.stderr
        stream.write(line + "\n")
        stream.flush()


class JsonReporter:
    """Write one JSON object a line, with `event` and what belongs to it; sizes in bytes, times in seconds.

    Args:
        stream: Where to; the output stream of the moment by default.
        every_seconds: Least time between two objects of progress.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        every_seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without a stage."""
        self._stream = stream
        self._clock = clock
        self._throttle = _Throttle(every_seconds, clock)
        self._meter = Meter("", 0, 0, clock)

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Write `stage_started`."""
        self._meter = Meter(stage, units, num_bytes, self._clock)
        self._write("stage_started", stage=stage, units=units, bytes=num_bytes)

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Write `progress`, if it is time again."""
        meter = self._meter
        meter.done_units, meter.done_bytes = done_units, done_bytes
        if self._throttle.passes():
            eta = meter.eta_seconds
            self._write(
                "progress",
                stage=meter.stage,
                done_units=done_units,
                units=meter.units,
                done_bytes=done_bytes,
                bytes=meter.num_bytes,
                bytes_per_second=round(meter.bytes_per_second),
                eta_seconds=None if eta is None else round(eta, 1),
            )

    def stage_done(self, stage: str, seconds: float, summary: Summary) -> None:
        """Write `stage_done`."""
        self._write("stage_done", stage=stage, seconds=round(seconds, 3), summary=dict(summary))

    def note(self, message: str) -> None:
        """Write `note`."""
        self._write("note", message=message)

    def error(self, message: str, exit_code: int) -> None:
        """Write `error`, the last object of a command that failed."""
        self._write("error", message=message, exit_code=exit_code)

    def _write(self, event: str, **values: object) -> None:
        stream = self._stream or sys.stdout
        stream.write(json.dumps({"event": event, **values}) + "\n")
        stream.flush()
