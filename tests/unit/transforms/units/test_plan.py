"""A plan reaches the workers whole, in at most 1,000 elements, and a changed plan is refused."""

import dataclasses
from pathlib import Path

import pytest

from schemas.errors import IntegrityError
from schemas.units import Stage, Unit
from transforms.storage.folder import OutputFolder
from transforms.units import plan
from transforms.units.plan import expand_plan_range, write_plan


def units(number):
    return [
        Unit(stage=Stage.SCAN, key=f"{i:064x}", num_bytes=i, label=f"u{i}", payload={"shard": f"s{i}"})
        for i in range(number)
    ]


def expand(ranges):
    return [unit for plan_range in ranges for unit in expand_plan_range(plan_range)]


@pytest.mark.parametrize("number", [0, 1, 9, 10, 11, 25])
def test_a_plan_expands_to_its_units_in_order(out, monkeypatch, number):
    monkeypatch.setattr(plan, "MAX_RANGES", 10)
    ranges = write_plan(out, Stage.SCAN, units(number))
    assert len(ranges) == {11: 6, 25: 9}.get(number, number)
    assert expand(ranges) == units(number)


def test_a_pipeline_is_created_with_a_thousand_ranges_at_most(tmp_path: Path):
    ranges = write_plan(OutputFolder(tmp_path), Stage.SCAN, units(2500))
    assert len(ranges) == 834  # of three units each
    assert expand(ranges) == units(2500)


def test_a_range_of_another_plan_is_refused(out):
    [plan_range] = write_plan(out, Stage.SCAN, units(1))
    with pytest.raises(IntegrityError, match="row group 0 has digest"):
        list(expand_plan_range(dataclasses.replace(plan_range, sha256="0" * 64)))
