"""A flow in this process: every element goes through every step; two units are in flight at once, no more."""

import threading
from collections import Counter

import pytest

from tests.units import Settings, done, fail, unit
from transforms.storage.folder import OutputFolder
from transforms.units.execution import ATTEMPTS
from transforms.units.flow import AT_ONCE, Batch, FlatMap, GroupByKey, RunUnits, run_flow


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


@pytest.mark.parametrize("number", [0, 1, 2, 7])
def test_every_receipt_comes_out(number, tmp_path):
    units = [unit(index) for index in range(number)]
    receipts = run_flow((RunUnits(work=fail, settings=Settings(OutputFolder(tmp_path))),), units)
    assert sorted(receipt.key for receipt in receipts) == [unit.key for unit in units]


def test_two_units_are_at_work_at_once_and_never_more(tmp_path):
    units = [unit(number) for number in range(9)]
    found = run_flow((RunUnits(work=meet, settings=Settings(OutputFolder(tmp_path))),), units)
    assert sorted(receipt.key for receipt in found) == [unit.key for unit in units]
    assert Meeting.most == AT_ONCE


@pytest.mark.parametrize("failing", ["0", "3", "6"])
def test_an_error_is_that_of_its_unit_and_ends_the_flow(failing, tmp_path):
    out, units = OutputFolder(tmp_path), [unit(number) for number in range(100)]
    with pytest.raises(ValueError, match=f"unit {failing} failed"):
        list(run_flow((RunUnits(work=fail, settings=Settings(out, failing)),), units))
    assert len(list(out.files(ATTEMPTS))) < len(units)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


def count_down(number):
    yield from range(number)


def pair(number):
    yield number % 3, number


def make_adder():
    made = iter([10])
    added = next(made)

    def add(number):
        yield number + added

    return add


def test_an_element_becomes_any_number_of_others():
    flow = (FlatMap(name="Down", function=count_down, gives=int), FlatMap(name="Pair", function=pair, gives=tuple))
    assert list(run_flow(flow, [0, 2, 1])) == [(0, 0), (1, 1), (0, 0)]


def test_a_function_that_is_made_is_made_once():
    assert list(run_flow((FlatMap(name="Add", function=make_adder, gives=int, makes=True),), [1, 2])) == [11, 12]


def test_values_are_grouped_by_key():
    flow = (FlatMap(name="Pair", function=pair, gives=tuple), GroupByKey(name="Group"))
    groups = {key: Counter(values) for key, values in run_flow(flow, range(7))}
    assert groups == {0: Counter([0, 3, 6]), 1: Counter([1, 4]), 2: Counter([2, 5])}


def test_batches_are_full_but_for_the_last():
    assert list(run_flow((Batch(name="Batch", size=3),), range(7))) == [[0, 1, 2], [3, 4, 5], [6]]
