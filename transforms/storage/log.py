"""A log in OUT, written line by line while a run goes on: for people, in no digest, and never a reason to fail.

A file is appended to. An object cannot be: it is put again as a whole, every few seconds while there is something new.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from schemas.errors import CppmillError

logger = logging.getLogger(__name__)

PUT_SECONDS = 5.0


class Log(Protocol):
    """A log that is written; from several threads."""

    def write(self, line: str) -> None:
        """Add a line."""

    def flush(self) -> None:
        """Write what is not written yet."""

    def close(self) -> None:
        """Write what is not written yet; lines that come later are lost."""


class FileLog:
    """A log in a file.

    Args:
        path: The file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        """Open it; each line is handed to the system at once."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Append the line."""
        with self._lock:
            if not self._file.closed:
                self._file.write(line + "\n")

    def flush(self) -> None:
        """Do nothing: each line is written at once."""

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


class ObjectLog:
    """A log in an object.

    Args:
        put: Puts the bytes of the whole log.
    """

    def __init__(self, put: Callable[[bytes], object]) -> None:
        """Start the thread that puts it."""
        self._put, self._lines = put, list[bytes]()
        self._written, self._closed = 0, threading.Event()
        self._putting = threading.Lock()
        self._thread = threading.Thread(target=self._put_often, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Keep the line until the next put."""
        self._lines.append(line.encode() + b"\n")

    def close(self) -> None:
        """Put what is new, and no more after that."""
        self._closed.set()
        self.flush()

    def _put_often(self) -> None:
        while not self._closed.wait(PUT_SECONDS):
            self.flush()

    def flush(self) -> None:
        """Put the whole log, if there is something new."""
        with self._putting:
            lines = self._lines[:]
            if len(lines) == self._written:
                return
            try:
                self._put(b"".join(lines))
                self._written = len(lines)
            except CppmillError as error:
                logger.warning("the log of events is not written: %s", error)
