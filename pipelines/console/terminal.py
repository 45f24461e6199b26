"""The one place where what a command prints is escaped: project names, paths and licences come from other people.

Within `printable_output` the standard streams escape whatever a terminal would obey, whether they lead to a terminal or
not, because a log may be shown on one later. What draws on purpose, a live display or coloured tokens, does so through
`rich`, which writes to the stream below (`rich_proxied_file`), and escapes the texts that it draws.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, Any, TextIO, cast

from schemas.errors import ResourceError
from schemas.passwords import redacted
from schemas.printing import is_aside, printable
from schemas.resources import explain_refusal

_NAMES = {"<stdout>": "the output stream", "<stderr>": "the error stream"}


class PrintableStream:
    """A text stream that escapes what is written to it; all else is that of the stream below.

    Args:
        stream: The stream below.

    Attributes:
        buffer: None: `typer.echo` would write to the bytes below, past the escaping, whenever the stream below is of
            ASCII or is that of a live display.
    """

    buffer = None

    def __init__(self, stream: TextIO) -> None:
        """Keep the stream, under the name by which rich finds it."""
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write a text, escaped and without the passwords of URLs."""
        if is_aside() and self is sys.stdout:
            return sys.stderr.write(text)
        shown = redacted(printable(text))
        if shown:  # `typer.echo` tries to write nothing first, and ignores that it fails
            with naming_stream(self.rich_proxied_file):
                self.rich_proxied_file.write(shown)
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        with naming_stream(self.rich_proxied_file):
            self.rich_proxied_file.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        """Return an attribute of the stream below."""
        return getattr(self.rich_proxied_file, name)


@contextmanager
def naming_stream(stream: IO[str]) -> Iterator[None]:
    """Name a stream in an error of writing to it, which has no file name.

    Raises:
        ResourceError: If there is no space where the stream leads.
    """
    try:
        yield
    except OSError as error:
        reason = explain_refusal(error)
        if reason is None:
            raise
        name = getattr(stream, "name", "")
        if name in _NAMES:
            silence(stream)
        raise ResourceError(f"{_NAMES.get(name, 'a stream')}: {reason}") from error


@contextmanager
def printable_output() -> Iterator[None]:
    """Escape what is written to the standard streams within the block."""
    streams = sys.stdout, sys.stderr
    for stream in map(raw_stream, streams):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")  # what the encoding lacks ends no command
    escape_output()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def escape_output() -> None:
    """Put the escaping before the standard streams, or before what has replaced them since."""
    sys.stdout, sys.stderr = (escaped(stream) for stream in (sys.stdout, sys.stderr))


def escaped(stream: TextIO) -> TextIO:
    """Return a stream that escapes what is written to it; the same one if it does."""
    return stream if isinstance(stream, PrintableStream) else cast("TextIO", PrintableStream(stream))


def silence(stream: IO[str]) -> None:
    """Let a standard stream that refuses what is written lead nowhere, or the interpreter's last flush fails again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def raw_stream(stream: TextIO) -> TextIO:
    """Return the stream below the escaping."""
    return stream.rich_proxied_file if isinstance(stream, PrintableStream) else stream
