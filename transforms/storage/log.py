"""A log in OUT, written line by line during a run: for people, in no digest, and never a reason to fail.

A file is appended to. An object cannot be: it is uploaded again as a whole, every few seconds if there are new lines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from schemas.errors import CppmillError
from schemas.logs import module_logger

logger = module_logger(__name__)

PUT_SECONDS = 5.0


class Log(Protocol):
    """A log to write to, from several threads."""

    def write(self, line: str) -> None:
        """Add a line."""

    def flush(self) -> None:
        """Write what is not written yet."""

    def close(self) -> None:
        """Write what is not written yet; later lines are lost."""


class FileLog:
    """A log in a file."""

    def __init__(self, path: Path) -> None:
        """Open it; each line is written at once."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Append the line."""
        with self._lock:
            if not self._file.closed:
                self._written(lambda: self._file.write(line + "\n"))

    def flush(self) -> None:
        """Do nothing: each line is written at once."""

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._written(self._file.close)

    def _written(self, write: Callable[[], object]) -> None:
        """Write; a disk that refuses it ends the log, not the run."""
        try:
            write()
        except OSError as error:
            logger.warning("could not write the event log: %s", error)
            with suppress(OSError):
                self._file.close()  # what it could not write is lost


class ObjectLog:
    """A log in an object; `put` uploads the bytes of the whole log."""

    def __init__(self, put: Callable[[bytes], object]) -> None:
        """Start the thread that uploads it."""
        self._put, self._lines = put, list[bytes]()
        self._written, self._closed = 0, threading.Event()
        self._putting = threading.Lock()
        self._thread = threading.Thread(target=self._put_often, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Keep the line until the next upload."""
        self._lines.append(line.encode() + b"\n")

    def close(self) -> None:
        """Upload what is new; later lines are lost."""
        self._closed.set()
        self.flush()

    def _put_often(self) -> None:
        while not self._closed.wait(PUT_SECONDS):
            self.flush()

    def flush(self) -> None:
        """Upload the whole log, if there are new lines."""
        with self._putting:
            lines = self._lines[:]
            if len(lines) == self._written:
                return
            try:
                self._put(b"".join(lines))
                self._written = len(lines)
            except CppmillError as error:
                logger.warning("could not write the event log: %s", error)
