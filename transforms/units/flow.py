"""Flows: the steps of a stage, described once, for this process and for every engine of Beam.

A flow is a tuple of steps, through which elements go one after the other. `run_flow` is what they mean; an engine of
Beam gets the same steps as a graph. What a step calls is sent to workers: a function of a module's top level, or a
`partial` of one. Nothing may depend on the order in which elements come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from schemas.units import Unit, UnitReceipt
from transforms.units.execution import FinishedUnit, WorkSettings, count_unit, run_unit

AT_ONCE = 2
"""Units in flight: what one leaves idle, another uses; more would only take more memory."""


@dataclass(frozen=True, kw_only=True)
class FlatMap:
    """Each element becomes any number of others.

    Attributes:
        name: Names the step in a graph; another one for each step of a flow.
        function: Called with an element, gives what it becomes. If `makes`, it is called once a worker without an
            argument, and returns the function.
        gives: The type of what comes out, which chooses its coder.
        makes: Whether `function` makes the function.
    """

    name: str
    function: Callable[..., Any]
    gives: Any
    makes: bool = False

    def run(self, elements: Iterator[Any]) -> Iterator[Any]:
        """Yield what each element becomes."""
        function = self.function() if self.makes else self.function
        for element in elements:
            yield from function(element)


@dataclass(frozen=True, kw_only=True)
class GroupByKey:
    """Pairs (key, value) become pairs (key, all its values).

    Attributes:
        name: Names the step in a graph.
    """

    name: str

    def run(self, elements: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the groups, once all elements have come; holds them in memory."""
        groups = defaultdict[Any, list[Any]](list)
        for key, value in elements:
            groups[key].append(value)
        while groups:
            yield groups.popitem()


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Elements become lists of elements.

    Attributes:
        name: Names the step in a graph.
        size: How many are in each list but the last ones.
    """

    name: str
    size: int

    def run(self, elements: Iterator[Any]) -> Iterator[list[Any]]:
        """Yield lists of elements."""
        while batch := list(islice(elements, self.size)):
            yield batch


@dataclass(frozen=True, kw_only=True)
class RunUnits:
    """Planned units become their receipts, `AT_ONCE` units at a time.

    Attributes:
        work: The stage's function, of a module's top level: called in threads as `work(unit, settings=settings)`, it
            publishes a unit's outputs and returns its receipt.
        settings: The stage's settings.
        name: Names the step in a graph.
    """

    work: Callable[..., UnitReceipt]
    settings: WorkSettings
    name: str = "Run"

    def run(self, elements: Iterator[Unit]) -> Iterator[UnitReceipt]:
        """Yield receipts as units are done."""
        with UnitsInFlight(self.work, self.settings) as units:
            for unit in elements:
                yield from units.start(unit)
            yield from units.finish()


Step = FlatMap | GroupByKey | Batch | RunUnits

Flow = tuple[Step, ...]


def run_flow(flow: Flow, elements: Iterable[Any]) -> Iterator[Any]:
    """Run the steps of a flow in this process, and yield what comes out of the last one."""
    flowing = iter(elements)
    for step in flow:
        flowing = step.run(flowing)
    return flowing


class UnitsInFlight:
    """Runs units in threads, `AT_ONCE` at a time; a context manager.

    An error ends the block once the units in flight are done. A signal ends it at once, as the process is about to end.

    Args:
        work: As of `RunUnits`.
        settings: The stage's settings.
    """

    def __init__(self, work: Callable[..., UnitReceipt], settings: WorkSettings) -> None:
        """Start with nothing in flight."""
        self._run = partial(run_unit, out=settings.out, work=partial(work, settings=settings))
        self._threads = ThreadPoolExecutor(AT_ONCE)
        self._in_flight = set[Future[FinishedUnit[UnitReceipt]]]()

    def forget(self) -> None:
        """Forget what is in flight: its receipts are nobody's."""
        self._in_flight = set()

    def start(self, unit: Unit) -> Iterator[UnitReceipt]:
        """Start a unit; if that leaves no room for another, wait for one and yield what is done."""
        self._in_flight.add(self._threads.submit(self._run, unit))
        if len(self._in_flight) >= AT_ONCE:
            yield from self._done()

    def finish(self) -> Iterator[UnitReceipt]:
        """Yield the receipts of the last units."""
        while self._in_flight:
            yield from self._done()

    def close(self, *, at_once: bool = False) -> None:
        """End the threads, what is in flight first unless `at_once`."""
        self._threads.shutdown(wait=not at_once, cancel_futures=True)

    def _done(self) -> Iterator[UnitReceipt]:
        done, self._in_flight = wait(self._in_flight, return_when=FIRST_COMPLETED)
        for future in done:
            yield count_unit(future.result())

    def __enter__(self) -> UnitsInFlight:
        """Return it."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the threads."""
        self.close(at_once=kind is not None and issubclass(kind, KeyboardInterrupt))
