"""Flows as graphs of Beam: planned units are read, and each step becomes a transform.

Beam does not resolve annotations that are strings: types that choose a coder are given outright.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from schemas.units import Unit, UnitReceipt
from transforms.units.flow import Batch, FlatMap, Flow, GroupByKey, RunUnits, Step, UnitsInFlight
from transforms.units.plan import PlanRange, expand_plan_range


@dataclass(kw_only=True)
class ReadUnits(beam.PTransform[beam.Pipeline, beam.PCollection[Unit]]):
    """Read planned units into a PCollection[Unit], spread over the workers."""

    ranges: Sequence[PlanRange]

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[Unit]:
        """Create the ranges, expand them, reshuffle the units."""
        units: beam.PCollection[Unit] = (
            pipeline
            | "Ranges" >> beam.Create(self.ranges, reshuffle=False)
            | "Expand" >> beam.FlatMap(expand_plan_range).with_output_types(Unit)
            | "Spread" >> beam.Reshuffle()
        )
        return units


@dataclass
class RunFlow(beam.PTransform[beam.PCollection[Any], beam.PCollection[Any]]):
    """Send a PCollection through a flow: PCollection to PCollection of what the flow ends in."""

    flow: Flow

    def expand(self, elements: beam.PCollection[Any]) -> beam.PCollection[Any]:
        """Apply one step after the other."""
        for step in self.flow:
            elements = elements | step.name >> _transform(step)
        return elements


@singledispatch
def _transform(step: Step) -> beam.PTransform[Any, Any]:
    """Return what a step is for Beam."""
    raise TypeError(f"no transform for {step!r}")


@_transform.register
def _(step: FlatMap) -> beam.PTransform[Any, Any]:
    made: beam.PTransform[Any, Any] = beam.ParDo(_MadeFn(step.function)) if step.makes else beam.FlatMap(step.function)
    made.with_output_types(step.gives)
    return made


@_transform.register
def _(step: GroupByKey) -> beam.PTransform[Any, Any]:
    return beam.GroupByKey()


@_transform.register
def _(step: Batch) -> beam.PTransform[Any, Any]:
    return beam.BatchElements(min_batch_size=step.size, max_batch_size=step.size)


@_transform.register
def _(step: RunUnits) -> beam.PTransform[Any, Any]:
    run: beam.PTransform[Any, Any] = beam.ParDo(_RunUnitsFn(step))
    run.with_output_types(UnitReceipt)
    return run


class _MadeFn(beam.DoFn):
    """Calls a function that is made once a worker."""

    def __init__(self, make: Callable[[], Callable[[Any], Iterable[Any]]]) -> None:
        self._make = make

    def setup(self) -> None:
        """Make the function."""
        self._function = self._make()

    def process(self, element: object) -> Iterator[Any]:
        """Yield what an element becomes."""
        yield from self._function(element)


class _RunUnitsFn(beam.DoFn):
    """Runs units in threads; yields receipts as units are done, the last ones at the end of a bundle."""

    def __init__(self, step: RunUnits) -> None:
        self._step = step

    def setup(self) -> None:
        """Start the threads."""
        self._units = UnitsInFlight(self._step.work, self._step.settings)

    def start_bundle(self) -> None:
        """Begin with nothing in flight, whatever a bundle that failed has left."""
        self._units.forget()

    def process(self, unit: Unit) -> Iterator[UnitReceipt]:
        """Start a unit, and yield what is done."""
        yield from self._units.start(unit)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the last receipts."""
        yield from map(GlobalWindows.windowed_value, self._units.finish())

    def teardown(self) -> None:
        """End the threads; what is in flight is finished first."""
        self._units.close()
