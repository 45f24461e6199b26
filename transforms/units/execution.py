"""Running each unit once: reuse what an earlier attempt published, or note the attempt, do the work and publish it.

Every stage runs its units by `run_once`. `RunUnits` is the whole transform of a stage whose function turns a unit into
a receipt. It has two units in flight per worker, so that one is computed while the other is written.

Each start of a unit is noted in the cache, so that a run can report which units ran more than once: an engine that lost
a worker runs units again; their outputs are the same, and their receipts count once.
"""

from __future__ import annotations

import json
import os
import platform
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Generic, Protocol, TypeVar

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from schemas.units import Unit, UnitReceipt
from transforms.storage.folder import CACHE, OutputFolder

ATTEMPTS = f"{CACHE}/attempts"
"""The folder of the notes, relative to OUT: `KEY-UUID.json`."""

AT_ONCE = 2
"""Units in flight: what one leaves idle, another uses; more would only take more memory."""

_COUNTED = ("documents", "tokens")
"""Totals of unit receipts that are counted."""

Result = TypeVar("Result")


def note_attempt(unit: Unit, out: OutputFolder) -> None:
    """Note that this process starts a unit."""
    note = {
        "stage": str(unit.stage),
        "label": unit.label,
        "host": platform.node(),
        "pid": os.getpid(),
        "start": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    out.publish_bytes(f"{ATTEMPTS}/{unit.key}-{uuid.uuid4().hex}.json", json.dumps(note).encode())


def count_repeated(units: Sequence[Unit], out: OutputFolder) -> int:
    """Return how many units were started more than once since the notes were cleared."""
    started = Counter(name.removeprefix(f"{ATTEMPTS}/").partition("-")[0] for name in out.files(ATTEMPTS))
    return sum(started[unit.key] > 1 for unit in units)


def clear_attempts(out: OutputFolder) -> None:
    """Remove the notes of earlier runs; only for the holder of the lock."""
    out.remove_folder(ATTEMPTS)


class WorkSettings(Protocol):
    """What the settings of all stages have in common: where units are published."""

    @property
    def out(self) -> OutputFolder:
        """The output folder."""


@dataclass(frozen=True)
class FinishedUnit(Generic[Result]):
    """A unit, what its run returned or an earlier attempt had published, and how long that took."""

    unit: Unit
    result: Result
    milliseconds: int


def run_once(
    unit: Unit, out: OutputFolder, *, find: Callable[[Unit], Result | None], make: Callable[[Unit], Result]
) -> FinishedUnit[Result]:
    """Return what an earlier attempt finished, or note this attempt and make it; callable in any thread.

    Args:
        unit: The unit.
        out: Where the attempt is noted.
        find: Returns the result if it is published already: an engine may run a bundle again.
        make: Does the work, publishes it and returns the result.
    """
    started = time.monotonic()
    result = find(unit)
    if result is None:
        note_attempt(unit, out)
        result = make(unit)
    return FinishedUnit(unit, result, round(1000 * (time.monotonic() - started)))


def run_unit(unit: Unit, out: OutputFolder, work: Callable[[Unit], UnitReceipt]) -> FinishedUnit[UnitReceipt]:
    """Run a unit once that ends in a receipt, and publish the receipt."""

    def find(unit: Unit) -> UnitReceipt | None:
        receipt = out.find_receipt(unit)
        return receipt if receipt is not None and receipt.is_final else None

    def make(unit: Unit) -> UnitReceipt:
        receipt = work(unit)
        out.publish_receipt(receipt)
        return receipt

    return run_once(unit, out, find=find, make=make)


def count_unit(finished: FinishedUnit[Result], stage: str = "") -> Result:
    """Add a unit to Beam's metrics, for an engine's own console, and return its result.

    Has no effect but in the thread that Beam calls. A unit that was run again counts again: no program of ours reads
    these metrics.

    Args:
        finished: What `run_once` returned.
        stage: Names the metrics; the unit's stage if empty.
    """
    namespace = f"cppmill.{stage or finished.unit.stage}"
    Metrics.counter(namespace, "units").inc()
    Metrics.counter(namespace, "input-bytes").inc(finished.unit.num_bytes)
    Metrics.distribution(namespace, "unit-milliseconds").update(finished.milliseconds)
    totals = finished.result.totals if isinstance(finished.result, UnitReceipt) else {}
    for name in _COUNTED:
        if isinstance(number := totals.get(name), int):
            Metrics.counter(namespace, name).inc(number)
    return finished.result


# Beam does not resolve annotations that are strings: types that choose a coder are given outright.
@beam.typehints.with_input_types(Unit)
@beam.typehints.with_output_types(UnitReceipt)
class RunUnitsFn(beam.DoFn):
    """Call a stage's function with each unit, `AT_ONCE` units at a time; yield receipts as units are done.

    Args:
        work: Called in threads as `work(unit, settings=settings)`; publishes a unit's outputs and returns its receipt.
        settings: The stage's settings; has the output folder as `out`.
    """

    def __init__(self, work: Callable[..., UnitReceipt], settings: WorkSettings) -> None:
        """Keep what each unit is called with."""
        self._work, self._settings = work, settings

    def setup(self) -> None:
        """Start the threads."""
        self._threads = ThreadPoolExecutor(AT_ONCE)

    def start_bundle(self) -> None:
        """Begin with nothing in flight."""
        self._in_flight: set[Future[FinishedUnit[UnitReceipt]]] = set()

    def process(self, unit: Unit) -> Iterator[UnitReceipt]:
        """Start a unit; if that leaves no room for another, yield what is done first."""
        work = partial(self._work, settings=self._settings)
        self._in_flight.add(self._threads.submit(run_unit, unit, self._settings.out, work))
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
            yield count_unit(future.result())

    def teardown(self) -> None:
        """End the threads; what is in flight is finished first."""
        self._threads.shutdown()


@dataclass(kw_only=True)
class RunUnits(beam.PTransform[beam.PCollection[Unit], beam.PCollection[UnitReceipt]]):
    """Run planned units: PCollection[Unit] to PCollection[UnitReceipt].

    Attributes:
        work: The stage's function, of a module's top level: called as `work(unit, settings=settings)`, it publishes a
            unit's outputs and returns its receipt.
        settings: The stage's settings.
    """

    work: Callable[..., UnitReceipt]
    settings: WorkSettings

    def expand(self, units: beam.PCollection[Unit]) -> beam.PCollection[UnitReceipt]:
        """Run each unit."""
        receipts: beam.PCollection[UnitReceipt] = units | "Run" >> beam.ParDo(RunUnitsFn(self.work, self.settings))
        return receipts
