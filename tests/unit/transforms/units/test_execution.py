"""Two units are in flight at once, no more; every receipt comes out; an error is that of its unit."""

import threading
from dataclasses import dataclass
from functools import partial

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

from schemas.units import Stage, Unit, UnitReceipt
from transforms.storage.folder import OutputFolder
from transforms.units.execution import AT_ONCE, ATTEMPTS, RunUnits, RunUnitsFn, run_unit


def unit(number):
    return Unit(stage=Stage.TOKENIZE, key=f"{number:064x}", num_bytes=1, label=str(number), payload={})


def done(unit):
    return UnitReceipt(stage=unit.stage, key=unit.key, outputs=(), totals={})


@dataclass(frozen=True)
class Settings:
    out: OutputFolder
    failing: str = ""


class Meeting:
    """Counts who is there at once; the first two wait for each other."""

    lock = threading.Lock()
    barrier = threading.Barrier(2)
    there = most = 0


def meet(unit, settings):
    with Meeting.lock:
        Meeting.there += 1
        Meeting.most = max(Meeting.most, Meeting.there)
    if int(unit.label) < 2:
        Meeting.barrier.wait(timeout=60)
    with Meeting.lock:
        Meeting.there -= 1
    return done(unit)


def fail(unit, settings):
    if unit.label == settings.failing:
        raise ValueError(f"unit {unit.label} failed")
    return done(unit)


def count(unit, settings):
    return UnitReceipt(stage=unit.stage, key=unit.key, outputs=(), totals={"documents": 2, "tokens": 5, "other": 1})


@pytest.mark.parametrize("number", [1, 2, 7])
def test_every_receipt_comes_out_of_a_pipeline(number, tmp_path):
    units = [unit(index) for index in range(number)]
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        receipts = pipeline | beam.Create(units) | RunUnits(work=fail, settings=Settings(OutputFolder(tmp_path)))
        assert_that(receipts | beam.Map(lambda receipt: receipt.key), equal_to([unit.key for unit in units]))


def test_two_units_are_at_work_at_once_and_never_more(tmp_path):
    run = RunUnitsFn(meet, Settings(OutputFolder(tmp_path)))
    run.setup()
    run.start_bundle()
    found = [receipt.key for number in range(9) for receipt in run.process(unit(number))]
    found += [value.value.key for value in run.finish_bundle()]
    run.teardown()
    assert sorted(found) == [unit(number).key for number in range(9)]
    assert Meeting.most == AT_ONCE


@pytest.mark.parametrize("failing", ["0", "3", "6"])
def test_an_error_is_reported(failing, tmp_path):
    units = [unit(number) for number in range(7)]
    with pytest.raises(ValueError, match=f"unit {failing} failed"), beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | beam.Create(units) | RunUnits(work=fail, settings=Settings(OutputFolder(tmp_path), failing))


def test_a_unit_that_an_earlier_attempt_finished_is_not_run_again(tmp_path):
    settings = Settings(OutputFolder(tmp_path), failing="1")
    settings.out.publish_receipt(done(unit(1)))
    assert run_unit(unit(1), settings.out, partial(fail, settings=settings)).result == done(unit(1))
    assert list(settings.out.files(ATTEMPTS)) == []


def test_an_attempt_is_noted_before_the_unit_runs(tmp_path):
    settings = Settings(OutputFolder(tmp_path), failing="1")
    with pytest.raises(ValueError, match="unit 1 failed"):
        run_unit(unit(1), settings.out, partial(fail, settings=settings))
    assert len(list(settings.out.files(ATTEMPTS))) == 1


def test_a_receipt_is_published_when_its_unit_is_done(tmp_path):
    settings = Settings(OutputFolder(tmp_path))
    finished = run_unit(unit(1), settings.out, partial(count, settings=settings))
    assert settings.out.find_receipt(unit(1)) == finished.result == count(unit(1), settings)


def test_a_unit_whose_input_changed_meanwhile_is_run_again(tmp_path):
    settings = Settings(OutputFolder(tmp_path))
    changed = UnitReceipt(
        stage=Stage.TOKENIZE, key=unit(1).key, outputs=(), totals={}, ledger={"documents": {"dead": {"changed": 1}}}
    )
    settings.out.publish_receipt(changed)
    settings.out.withdraw([unit(1)])
    assert run_unit(unit(1), settings.out, partial(fail, settings=settings)).result == done(unit(1))
    assert len(list(settings.out.files(ATTEMPTS))) == 1


def test_units_bytes_and_times_are_metrics_of_the_pipeline(tmp_path):
    units = [unit(number) for number in range(7)]
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | beam.Create(units) | RunUnits(work=count, settings=Settings(OutputFolder(tmp_path)))
    found = pipeline.run().metrics().query()
    counted = {(found.key.metric.namespace, found.key.metric.name): found.committed for found in found["counters"]}
    own = {name: number for (namespace, name), number in counted.items() if namespace == "cppmill.tokenize"}
    assert own == {"units": 7, "input-bytes": 7, "documents": 14, "tokens": 35}
    times = [found.committed.count for found in found["distributions"] if found.key.metric.name == "unit-milliseconds"]
    assert times == [7]
