"""A plan reaches the workers whole, in at most 1,000 elements, and a changed plan is refused."""

import dataclasses

import pytest

from schemas.errors import IntegrityError
from schemas.units import Stage, Unit
from transforms.units.plan import MAX_RANGES, expand_plan_range, write_plan


def units(number):
    return [
        Unit(stage=Stage.SCAN, key=f"{i:064x}", num_bytes=i, label=f"u{i}", payload={"shard": f"s{i}"})
        for i in range(number)
    ]


@pytest.mark.parametrize("number", [0, 1, 999, 1000, 1001, 2500])
def test_a_plan_expands_to_its_units_in_order(out, number):
    ranges = write_plan(out, Stage.SCAN, units(number))
    assert len(ranges) <= MAX_RANGES
    assert [unit for plan_range in ranges for unit in expand_plan_range(plan_range)] == units(number)


def test_a_range_of_another_plan_is_refused(out):
    [plan_range] = write_plan(out, Stage.SCAN, units(1))
    with pytest.raises(IntegrityError, match="row group 0 has digest"):
        list(expand_plan_range(dataclasses.replace(plan_range, sha256="0" * 64)))
