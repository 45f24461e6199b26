"""Progress on a terminal: a bar that is redrawn, and a line for every finished stage."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from pipelines.console.lines import done_line, progress_line
from pipelines.console.progress import Meter, Summary
from pipelines.console.terminal import escape_output, raw_stream
from schemas.printing import printable

_BAR, _SHORT_BAR = 24, 10
_WIDE_COLUMNS = 110
_BESIDE = 14
"""Columns of the spinner, the time and the spaces: what is left beside bar and text."""


class LiveReporter:
    """Draw the progress of the current stage on a terminal.

    Args:
        console: The terminal; the error stream by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        """Draw nothing yet."""
        self._console = console or Console(file=raw_stream(sys.stderr))
        self._bar = BarColumn()
        self._progress = Progress(
            SpinnerColumn(),
            self._bar,
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # a file that the output is sent to stays the place for it
        )
        self._meter = Meter("", 0, 0)
        self._task: TaskID | None = None

    def __enter__(self) -> LiveReporter:
        """Begin to draw; what others write to the standard streams then comes above the bar, and is escaped still."""
        self._progress.start()
        escape_output()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing and restore the terminal."""
        self._progress.stop()

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Draw an empty bar."""
        self._meter = Meter(stage, units, num_bytes, time.monotonic)
        self._remove_bar()
        if units:
            self._task = self._progress.add_task(self._line(), total=num_bytes or units)

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Move the bar."""
        meter = self._meter
        meter.done_units, meter.done_bytes = done_units, done_bytes
        if self._task is not None:
            done = done_bytes if meter.num_bytes else done_units
            self._progress.update(self._task, completed=done, description=self._line())

    def stage_done(self, stage: str, seconds: float, summary: Summary) -> None:
        """Replace the bar with a line."""
        self._remove_bar()
        self.note(done_line(self._meter, seconds, summary))

    def note(self, message: str) -> None:
        """Write the message above the bar."""
        self._console.print(Text(printable(message)), soft_wrap=True)

    def _line(self) -> str:
        """Return what is written beside the bar, as much of it as the terminal is wide; it may become wider."""
        columns = self._console.width
        self._bar.bar_width = _BAR if columns >= _WIDE_COLUMNS else _SHORT_BAR
        return progress_line(self._meter, columns - self._bar.bar_width - _BESIDE)

    def _remove_bar(self) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
