"""Ctrl-C, SIGTERM and SIGHUP: a clean stop, and an end within seconds whatever the process is doing.

The first signal raises KeyboardInterrupt in the main thread, which removes temporary files and releases the lock; the
process then ends with 128 + the number of the signal. Native calls cannot be interrupted, and Beam's worker threads do
not end by themselves. So a watching thread, woken by the signal itself, ends the process after a grace period, and at
once on a second signal. It ends by `os._exit`, which runs no exit handler and waits for no thread; what must not be
left behind, such as a lock in an object store, is released just before (`done_before_end`). That is safe because files
are published by renaming; the next run redoes what was unfinished.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, TextIO, cast

GRACE_SECONDS = 1.5

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a command: Ctrl-C, a system or scheduler, and a terminal that goes away."""

RESUME_ADVICE = "finished units are kept; run the same command again to continue"

_SHOW_CURSOR = "\x1b[?25h"
_STEP_SECONDS = 1.0

_last_steps: list[Callable[[], object]] = []
_stops: list[_Stop] = []


@contextmanager
def done_before_end(step: Callable[[], object]) -> Iterator[None]:
    """Do a step if a signal ends the process within the block, as no exit handler runs then.

    Args:
        step: Called in a separate thread while others may still run; it gets at most a second.
    """
    _last_steps.append(step)
    try:
        yield
    finally:
        _last_steps.remove(step)


def is_stopping() -> bool:
    """Return whether a signal is stopping this process; errors from then on are consequences of the stop."""
    return any(stop.first is not None for stop in _stops)


@contextmanager
def stop_on_signals(*, advice: str = RESUME_ADVICE, grace_seconds: float = GRACE_SECONDS) -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP within the block into a clean stop and exit code 130, 143 or 129.

    Signals that the process ignores from its start (`nohup`, a shell's background job) stay ignored. Outside the main
    thread, where Python cannot handle signals, nothing changes.

    Args:
        advice: What to tell the user after the command was stopped.
        grace_seconds: How long the main thread may take to stop.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stop = _Stop(advice=advice, grace_seconds=grace_seconds)
    _stops.append(stop)
    try:
        with stop.installed():
            yield
    finally:
        if stop.first is not None:  # even if something caught the KeyboardInterrupt
            stop.end(stop.first)
        _stops.remove(stop)


def end_if_stopped() -> None:
    """End the process if a signal came where no block saw it: as one began or ended, in the code of `with` itself."""
    for stop in _stops:
        if stop.first is not None:
            stop.end(stop.first)


class _Stop:
    """The received signals, the thread that watches for them, and the end of the process."""

    def __init__(self, *, advice: str, grace_seconds: float) -> None:
        self.advice = advice
        self.grace_seconds = grace_seconds
        self.first: signal.Signals | None = None
        self._active = False
        self._previous: dict[signal.Signals, Any] = {}
        self._ending = threading.Lock()
        self._announced = threading.Event()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals within the block; restore the previous handlers afterwards."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        previous_wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        handled = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
        self._previous = {number: signal.signal(number, self._raise) for number in handled}
        self._active = True
        os.register_at_fork(after_in_child=self._forget)
        watcher = threading.Thread(target=self._watch, args=(reading,), name="signals", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            if self.first is None:
                self._forget(previous_wakeup)
                os.write(writing, b"\0")
                watcher.join()
                os.close(reading)
                os.close(writing)

    def _forget(self, wakeup: int = -1) -> None:
        """Restore the handlers, in this process or in a forked child, whose signals are its own."""
        if self._active:
            self._active = False
            signal.set_wakeup_fd(wakeup)
            for number, handler in self._previous.items():
                signal.signal(number, handler)

    def _raise(self, number: int, _frame: FrameType | None) -> None:
        """Stop the main thread on the first signal; the watcher handles any other."""
        if self.first is None:
            logging.disable()  # errors elsewhere are consequences of the stop
            threading.excepthook = lambda _: None
            sys.unraisablehook = lambda _: None
            if sys.stderr is not None:
                sys.stderr = cast("TextIO", _OfMainThread(sys.stderr))
            self.first = signal.Signals(number)
            raise KeyboardInterrupt

    def _watch(self, reading: int) -> None:
        """Wait for a signal; end the process if it has not ended after the grace period or on a second signal."""
        while (received := os.read(reading, 1)[0]) not in ENDING:
            if received == 0:
                return
        number = signal.Signals(received)
        _write_error(f"\n{signal_name(number)}: stopping (once more to end at once)\n")
        self._announced.set()
        select.select([reading], [], [], self.grace_seconds)
        self.end(number, forced=True)

    def end(self, number: signal.Signals, *, forced: bool = False) -> NoReturn:
        """Tell the user how to resume, and end the worker processes and this one.

        Args:
            number: The signal.
            forced: Whether the main thread still runs: buffers that it may have locked are not flushed then.
        """
        self._announced.wait(self.grace_seconds)  # the watcher's line comes first
        self._ending.acquire()  # never released: the other thread must not end the process too early
        if not forced:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
        cursor = _SHOW_CURSOR if os.isatty(2) else ""
        _write_error(f"{cursor}stopped by {signal_name(number)}: {self.advice}\n")
        for child in descendants(os.getpid()):
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
        for step in reversed(_last_steps):
            last = threading.Thread(target=step, daemon=True)
            last.start()
            last.join(_STEP_SECONDS)
        os._exit(128 + number)


class _OfMainThread:
    """An error stream without what other threads write, such as a traceback that Beam prints."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - anything that a stream has
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        is_main = threading.current_thread() is threading.main_thread()
        return self._stream.write(text) if is_main else len(text)


def signal_name(number: signal.Signals) -> str:
    """Return what a message calls a signal."""
    return "Ctrl-C" if number == signal.SIGINT else number.name


def _write_error(text: str) -> None:
    """Write to the error stream, bypassing Python's buffers and their locks."""
    with suppress(OSError):
        os.write(2, text.encode())


def descendants(process: int) -> list[int]:
    """Return the ids of all processes below a process; none if it has ended."""
    import psutil  # only a run that is stopped needs it

    try:
        return [child.pid for child in psutil.Process(process).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
