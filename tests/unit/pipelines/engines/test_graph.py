"""A flow as a graph of Beam gives what it gives in this process."""

from collections import Counter

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from pipelines.engines.graph import ReadUnits, RunFlow
from schemas.units import Stage
from tests.units import Settings, count, unit
from transforms.storage.folder import OutputFolder
from transforms.units.flow import Batch, FlatMap, GroupByKey, RunUnits, run_flow
from transforms.units.plan import write_plan


def key_last_digit(receipt):
    yield receipt.key[-1], int(receipt.key, 16)


def sum_values(grouped):
    key, values = grouped
    yield key, sum(values)


def make_numbering():
    def number(batch):
        yield from (f"{key}:{total}" for key, total in batch)

    return number


def flow_of(settings):
    return (
        RunUnits(work=count, settings=settings),
        FlatMap(name="Key", function=key_last_digit, gives=tuple[str, int]),
        GroupByKey(name="Group"),
        FlatMap(name="Sum", function=sum_values, gives=tuple[str, int]),
        Batch(name="Batch", size=4),
        FlatMap(name="Number", function=make_numbering, gives=str, makes=True),
    )


def test_every_kind_of_step_gives_the_same(tmp_path, run_transform):
    units, settings = [unit(number) for number in range(50)], Settings(OutputFolder(tmp_path))
    here = list(run_flow(flow_of(settings), units))
    assert len(here) == 16
    assert Counter(run_transform(RunFlow(flow_of(settings)), units)) == Counter(here)


@pytest.mark.parametrize("failing", ["0", "6"])
def test_an_error_is_that_of_its_unit(failing, tmp_path, run_transform):
    settings = Settings(OutputFolder(tmp_path), failing)
    with pytest.raises(ValueError, match=f"unit {failing} failed"):
        run_transform(RunFlow(flow_of(settings)), [unit(number) for number in range(7)])


def test_units_arrive_in_a_pipeline(tmp_path, run_transform):
    units = [unit(number) for number in range(25)]
    ranges = write_plan(OutputFolder(tmp_path), Stage.SCAN, units)
    assert sorted(run_transform(ReadUnits(ranges=ranges)), key=lambda unit: unit.key) == units


def test_units_bytes_and_times_are_metrics_of_the_pipeline(tmp_path):
    run = RunUnits(work=count, settings=Settings(OutputFolder(tmp_path)))
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | beam.Create([unit(number) for number in range(7)]) | RunFlow((run,))
    found = pipeline.run().metrics().query()
    counted = {(found.key.metric.namespace, found.key.metric.name): found.committed for found in found["counters"]}
    own = {name: number for (namespace, name), number in counted.items() if namespace == "cppmill.drift"}
    assert own == {"units": 7, "input-bytes": 7, "documents": 14, "tokens": 35}
    times = [found.committed.count for found in found["distributions"] if found.key.metric.name == "unit-milliseconds"]
    assert times == [7]
