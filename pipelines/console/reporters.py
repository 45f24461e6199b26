"""Reporters that write lines: plain text for people, JSON for programs; the one that redraws a terminal is in `bar`."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from pipelines.console.lines import done_line, progress_line, start_line
from pipelines.console.progress import Meter, Summary


class _LineReporter:
    """Writes lines; lines of progress at most once in an interval.

    Args:
        stream: Where to write; by default what `sys.stderr` is then, or `sys.stdout` for JSON.
        every_seconds: Minimum time between two lines of progress.
        clock: Monotonic seconds.
    """

    _every_seconds = 5.0

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        every_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without a stage."""
        self._stream = stream
        self._clock = clock
        self._interval = self._every_seconds if every_seconds is None else every_seconds
        self._last = float("-inf")
        self._lock = threading.Lock()
        self._meter = Meter("", 0, 0, clock)

    def _is_due(self, done_units: int, done_bytes: int) -> bool:
        """Take the progress to the meter; return whether the interval is over, and begin a new one if so."""
        self._meter.done_units, self._meter.done_bytes = done_units, done_bytes
        with self._lock:
            now = self._clock()
            is_due = now - self._last >= self._interval
            self._last = now if is_due else self._last
            return is_due


class PlainReporter(_LineReporter):
    """Write plain lines, one every few seconds while a stage runs."""

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Write how much there is to do, and begin an interval."""
        self._meter = Meter(stage, units, num_bytes, self._clock)
        with self._lock:
            self._last = self._clock()
        if units:
            self._write(start_line(self._meter))

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Write the progress, at most every few seconds."""
        if self._is_due(done_units, done_bytes):
            self._write(progress_line(self._meter))

    def stage_done(self, stage: str, seconds: float, summary: Summary) -> None:
        """Write what the stage made."""
        self._write(done_line(self._meter, seconds, summary))

    def note(self, message: str) -> None:
        """Write the message."""
        self._write(message)

    def _write(self, line: str) -> None:
        stream = self._stream or sys.stderr
        stream.write(line + "\n")
        stream.flush()


class JsonReporter(_LineReporter):
    """Write one JSON object per line, with `event` and its values; sizes in bytes, times in seconds."""

    _every_seconds = 1.0

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Write `stage_started`."""
        self._meter = Meter(stage, units, num_bytes, self._clock)
        self._write("stage_started", stage=stage, units=units, bytes=num_bytes)

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Write `progress`, at most every few seconds."""
        if self._is_due(done_units, done_bytes):
            meter, eta = self._meter, self._meter.eta_seconds
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

    def drifted(self, version: str, alerts: Sequence[Mapping[str, object]]) -> None:
        """Write `drift_alert`: where a version of a dataset goes beyond thresholds."""
        self._write("drift_alert", version=version, alerts=alerts)

    def error(self, message: str, exit_code: int) -> None:
        """Write `error`, the last object of a command that failed."""
        self._write("error", message=message, exit_code=exit_code)

    def _write(self, event: str, **values: object) -> None:
        stream = self._stream or sys.stdout
        stream.write(json.dumps({"event": event, **values}) + "\n")
        stream.flush()
