"""The event log of a run: everything that it reports, one JSON object per line, in `OUT/.cache/events`.

Another process can read it during the run (`cppmill status`). It is for people. It is in no digest, and no run needs
it.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from pipelines.console.failures import find_failure
from pipelines.console.progress import Summary
from pipelines.console.reporters import JsonReporter
from pipelines.console.signals import done_before_end, is_stopping
from schemas.digests import parse_json
from schemas.errors import BlockedError
from schemas.passwords import redacted
from transforms.storage.folder import CACHE, OutputFolder

EVENTS = f"{CACHE}/events"
"""The folder of the logs, relative to OUT; their names sort by start time."""

DONE, FAILED, STOPPED, BLOCKED = "done", "failed", "stopped", "blocked"
"""Outcomes; a command is blocked if it found another one at work."""

KEPT_LOGS = 20

EVERY_SECONDS = 2.0
"""Minimum time between two events of progress."""


class EventLog(JsonReporter):
    """Writes the events of `JsonReporter`, each with its `time` in UTC, to a log in OUT.

    Args:
        out: The output folder, locked.
        clock: Monotonic seconds.
    """

    def __init__(self, out: OutputFolder, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin a log, and remove the oldest ones."""
        super().__init__(every_seconds=EVERY_SECONDS, clock=clock)
        for name in log_names(out)[: -KEPT_LOGS + 1]:
            out.remove(name)
        self._log = out.store.open_log(f"{EVENTS}/{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{uuid.uuid4().hex[:8]}.jsonl")
        self._started = clock()

    def started(self, *, engine: str, threads: int) -> None:
        """Write `run_started`."""
        self._write(
            "run_started",
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("cppmill"),
            engine=engine,
            threads=threads,
        )

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Write `stage_started`, for others to read at once."""
        super().stage_started(stage, units, num_bytes)
        self.flush()

    def stage_done(self, stage: str, seconds: float, summary: Summary) -> None:
        """Write `stage_done`, for others to read at once."""
        super().stage_done(stage, seconds, summary)
        self.flush()

    def flush(self) -> None:
        """Make what was written readable for others."""
        self._log.flush()

    def ended(self, outcome: str, message: str = "") -> None:
        """Write `run_ended` with the outcome; nothing can be written after it."""
        seconds = round(self._clock() - self._started, 3)
        self._write("run_ended", outcome=outcome, seconds=seconds, **({"message": message} if message else {}))
        self._log.close()

    def _write(self, event: str, **values: object) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._log.write(redacted(json.dumps({"time": now, "event": event, **values})))


@contextmanager
def open_log(out: OutputFolder, *, engine: str, threads: int) -> Iterator[EventLog]:
    """Yield an event log whose last event is how the block ended.

    Args:
        out: The folder, locked.
        engine: Where the pipelines run.
        threads: How many threads this process may use.
    """
    log = EventLog(out)
    log.started(engine=engine, threads=threads)
    with done_before_end(lambda: log.ended(STOPPED)):
        try:
            yield log
        except BaseException as error:
            log.ended(*_find_outcome(error))
            raise
        log.ended(DONE)


def _find_outcome(error: BaseException) -> tuple[str, str]:
    """Return outcome and message of a run that an error ends; during a stop, errors are its consequences."""
    if is_stopping() or not isinstance(error, Exception):
        return STOPPED, ""
    return BLOCKED if isinstance(error, BlockedError) else FAILED, find_failure(error).message


def log_names(out: OutputFolder) -> list[str]:
    """Return the names of the event logs in OUT, oldest first."""
    return sorted(out.files(EVENTS))


def read_events(out: OutputFolder, name: str) -> list[dict[str, Any]]:
    """Return the events of a log."""
    return list(parse_events(out.read_bytes(name).splitlines()))


def parse_events(lines: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
    """Yield the events of a log; lines that are not events, such as a half-written last one, are skipped."""
    for line in lines:
        try:
            event = parse_json(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            yield event
