"""A unit is run once: what is published is kept, each attempt is noted, and a receipt follows its unit."""

from functools import partial

import pytest

from schemas.units import Stage, UnitReceipt
from tests.units import Settings, count, done, fail, unit
from transforms.storage.folder import OutputFolder
from transforms.units.execution import ATTEMPTS, run_unit


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
        stage=Stage.DRIFT, key=unit(1).key, outputs=(), totals={}, ledger={"documents": {"dead": {"changed": 1}}}
    )
    settings.out.publish_receipt(changed)
    settings.out.withdraw([unit(1)])
    assert run_unit(unit(1), settings.out, partial(fail, settings=settings)).result == done(unit(1))
    assert len(list(settings.out.files(ATTEMPTS))) == 1
