"""Two units at a time in a worker: while one is finished, its file written and flushed, the next is at work already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Protocol, TypeVar

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from schemas.units import Unit, UnitReceipt
from transforms.storage.folder import OutputFolder
from transforms.units.attempts import note_attempt
from transforms.units.metrics import Timed, count_unit, time_unit

AT_ONCE = 2
"""Units in flight: what one leaves idle, another uses; more would only take more memory."""


class WorkSettings(Protocol):
    """What a stage's settings have in common: where units are published."""

    @property
    def out(self) -> OutputFolder:
        """The output folder."""


Settings = TypeVar("Settings", bound=WorkSettings)


def run_once(run: Callable[[Unit, Settings], UnitReceipt], unit: Unit, settings: Settings) -> UnitReceipt:
    """Run a unit and return its receipt, unless an earlier attempt finished it: an engine may run a bundle again."""
    standing = settings.out.find_receipt(unit)
    if standing is not None:
        return standing
    note_attempt(unit, settings.out)
    return run(unit, settings)


class RunUnits(beam.DoFn):
    """Call a function with each unit and with settings, `AT_ONCE` units at a time; receipts come as units are done.

    Args:
        run: Makes a unit's receipt; called in threads.
        settings: Its second argument.
    """

    def __init__(self, run: Callable[[Unit, Settings], UnitReceipt], settings: Settings) -> None:
        """Keep what each unit is called with."""
        self._run, self._settings = run, settings

    def setup(self) -> None:
        """Start the threads."""
        self._threads = ThreadPoolExecutor(AT_ONCE)

    def start_bundle(self) -> None:
        """Begin with nothing in flight."""
        self._in_flight: set[Future[Timed[UnitReceipt]]] = set()

    def process(self, unit: Unit) -> Iterator[UnitReceipt]:
        """Start a unit; if that leaves no room for another, yield what is done first."""
        run = partial(run_once, self._run, settings=self._settings)
        self._in_flight.add(self._threads.submit(time_unit, run, unit))
        if len(self._in_flight) >= AT_ONCE:
            yield from self._done()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the last receipts."""
        while self._in_flight:
            for receipt in self._done():
                yield GlobalWindows.windowed_value(receipt)

    def _done(self) -> Iterator[UnitReceipt]:
        """Wait for a unit and yield the receipts of all that are done."""
        done, self._in_flight = wait(self._in_flight, return_when=FIRST_COMPLETED)
        for future in done:
            timed = future.result()
            yield count_unit(timed.unit.stage, timed)

    def teardown(self) -> None:
        """End the threads; what is in flight is finished first."""
        self._threads.shutdown()
