"""The console of a command: its reporter, its logging, and how it ends on an error.

What an error prints is in `failures`. Third-party warnings
that no user can act on are hidden; our own never are.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn, TextIO

from pipelines.console.failures import find_failure, is_reported, print_failure
from pipelines.console.progress import Reporter, Reporters
from pipelines.console.reporters import JsonReporter, PlainReporter
from pipelines.console.signals import (
    ENDING,
    RESUME_ADVICE,
    done_before_end,
    end_if_stopped,
    signal_name,
    stop_on_signals,
)
from pipelines.console.terminal import printable_output, silence
from schemas.errors import ConfigError, CppmillError, ExitCode, ResourceError
from schemas.logs import LOGGER
from schemas.printing import one_line
from schemas.resources import check_limits

NOISY_PACKAGES = ("apache_beam", "fsspec", "google", "grpc", "pyarrow")
"""Their Python warnings are for their own developers."""

WORKER_OPTIONS = "PIPELINE_OPTIONS_FILE"
"""The variable that names a JSON file of options for Beam's worker processes; if the user sets it, it is kept."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """How much a command shows, and in which form.

    Attributes:
        quiet: Nothing but errors.
        as_json: One JSON object per line on the output stream, and an error as JSON on the error stream.
        verbose: Third-party logs too, and all of ours.
        one_document: The output stream holds what the command prints, and no events; progress is for terminals alone.
    """

    quiet: bool = False
    as_json: bool = False
    verbose: bool = False
    one_document: bool = False


def _remove_scratch() -> None:
    """Remove this process's folder of temporary files, if anything has loaded what makes it."""
    scratch = sys.modules.get("transforms.storage.scratch")
    if scratch is not None:
        scratch.remove_scratch()


@contextmanager
def command_session(output: Output, *, advice: str = RESUME_ADVICE) -> Iterator[Reporter]:
    """Run the body of a command: logging, signals, errors and a reporter.

    Args:
        output: How much to show, and in which form.
        advice: What to tell a user who stops it.

    Raises:
        SystemExit: With the exit code of an error that the user can fix.
    """
    with exit_on_error(output):
        check_limits("cppmill")  # with less, a thread does not start, ours or Arrow's: it aborts, or waits for ever
        with (
            done_before_end(_remove_scratch),  # around the block that ends the process
            stop_on_signals(advice=advice),
            log_to_console(output),
            open_reporter(output) as reporter,
        ):
            yield reporter


@contextmanager
def open_reporter(output: Output) -> Iterator[Reporter]:
    """Yield the reporter for an output: JSON, none, live on a terminal, else plain lines.

    A command that prints one document has the live one or none.

    Raises:
        ConfigError: For quiet and JSON at once.
    """
    if output.quiet and output.as_json:
        raise ConfigError("--quiet and --json exclude each other")
    if output.quiet or output.one_document and (output.as_json or not is_live_terminal(sys.stderr)):
        yield Reporters()
    elif output.as_json:
        yield JsonReporter()
    elif is_live_terminal(sys.stderr):
        from pipelines.console.bar import LiveReporter

        with LiveReporter() as reporter:
            yield reporter
    else:
        yield PlainReporter()


def is_live_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which lines can be redrawn."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def exit_on_error(output: Output | None = None) -> Iterator[None]:
    """Turn an error of the block into a message and an exit code, with a traceback if it is unexpected.

    Everything that is printed in the block, and of its errors, is escaped.

    Raises:
        SystemExit: With the exit code.
    """
    with _interrupts_raise(), printable_output(), _errors_as_exits(output):
        yield


class _TerminatedError(KeyboardInterrupt):
    """SIGTERM or SIGHUP, its argument, outside of a session, which handles them itself."""


@contextmanager
def _interrupts_raise() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP raise in the block, so that temporary files are removed.

    Before a command begins (`cppmill.main`), and once it has ended, they end the process: it may still wait for a
    thread that a plug-in began.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled = [number for number in ENDING if signal.getsignal(number) == signal.SIG_DFL]
    for number in handled:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _raise_terminated)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _raise_terminated(number: int, _frame: FrameType | None) -> None:
    raise _TerminatedError(signal.Signals(number))


def exit_interrupted(interrupt: KeyboardInterrupt) -> NoReturn:
    """End a command that a signal stopped outside of a session, or just as one began or ended.

    Raises:
        SystemExit: With 128 + the number of the signal.
    """
    end_if_stopped()
    number = interrupt.args[0] if isinstance(interrupt, _TerminatedError) else signal.SIGINT
    with suppress(OSError):  # the terminal may be gone
        sys.stderr.write(f"stopped by {signal_name(number)}\n")
    raise SystemExit(128 + number) from None


@contextmanager
def _errors_as_exits(output: Output | None) -> Iterator[None]:
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
        raise SystemExit(ExitCode.FAILED_CHECK) from None
    except KeyboardInterrupt as interrupt:
        exit_interrupted(interrupt)
    except Exception as error:
        failure = find_failure(error)
        with suppress(OSError, ResourceError):  # a stream that leads nowhere does not change how the command ends
            print_failure(failure, as_json=output is not None and output.as_json)
        if output is not None and output.as_json and not output.one_document:
            with suppress(OSError, ResourceError):
                JsonReporter().error(failure.message, int(failure.exit_code))
        raise SystemExit(int(failure.exit_code)) from None


@contextmanager
def log_to_console(output: Output) -> Iterator[None]:
    """Log to the error stream within the block: our own from INFO, others from WARNING; everything if verbose."""
    handler = _ErrorStreamHandler()
    handler.setFormatter(_Formatter("%(levelname)s %(name)s: %(message)s" if output.verbose else "%(message)s"))
    if not output.verbose:
        handler.addFilter(worth_showing)
    levels = {LOGGER: _own_level(output), None: logging.INFO if output.verbose else logging.WARNING}
    root = logging.getLogger()
    previous = root.handlers, {name: logging.getLogger(name).level for name in levels}
    with warnings.catch_warnings():
        if not output.verbose:
            warnings.filterwarnings("ignore", module=rf"({'|'.join(NOISY_PACKAGES)})(\.|$)")
        root.handlers = [handler]
        _set_levels(levels)
        try:
            with _worker_log_levels(output):
                yield
        except BaseException:
            # Threads of an engine may log the same error once there is no handler any more.
            logging.lastResort = logging.NullHandler()
            raise
        finally:
            root.handlers = previous[0]
            _set_levels(previous[1])


@contextmanager
def _worker_log_levels(output: Output) -> Iterator[None]:
    """Give Beam's worker processes on this machine the same log levels, by an options file whose name they inherit."""
    levels = {
        "default_sdk_harness_log_level": "INFO" if output.verbose else "ERROR",
        "sdk_harness_log_level_overrides": {LOGGER: logging.getLevelName(_own_level(output))},
    }
    if WORKER_OPTIONS in os.environ:
        yield
        return
    # A file in memory, which ends with this process however that ends; its descriptor is a path for child processes.
    with os.fdopen(os.memfd_create("cppmill-worker"), "w") as file:
        json.dump(levels, file)
        file.flush()
        os.environ[WORKER_OPTIONS] = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        try:
            yield
        finally:
            del os.environ[WORKER_OPTIONS]


def _set_levels(levels: Mapping[str | None, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def _own_level(output: Output) -> int:
    if output.verbose:
        return logging.DEBUG
    return logging.WARNING if output.quiet else logging.INFO


def worth_showing(record: logging.LogRecord) -> bool:
    """Return whether a log record is for the user: no warning of Beam, and no error that is reported anyway."""
    if "apache_beam" not in f"{record.name} {record.pathname}":
        return True
    ours = record.exc_info is not None and isinstance(record.exc_info[1], CppmillError)
    return record.levelno >= logging.ERROR and not ours and not is_reported(record.getMessage())


class _Formatter(logging.Formatter):
    """Keeps a message of ours in one line: the name of a file in it may have a line that looks like a message."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        message = super().formatMessage(record)
        return one_line(message) if record.name.split(".")[0] == LOGGER else message


class _ErrorStreamHandler(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`, which a live display replaces to keep lines apart."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr
