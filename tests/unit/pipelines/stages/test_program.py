"""The stages of a run are declared once, in an order in which each finds what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from configs.runs import load_run_config
from pipelines.stages.run import PROGRAMS, programs_of
from schemas.units import RUN_STAGES, TOKENIZER_STAGES


def test_every_stage_of_a_run_has_a_program() -> None:
    assert PROGRAMS.keys() == set(RUN_STAGES)
    assert all(program.stage == stage for stage, program in PROGRAMS.items())


@pytest.mark.parametrize("tokenizer", [None, "tokenizer"])
def test_what_a_stage_needs_comes_before_it(tokenizer: str | None, tmp_path: Path) -> None:
    config = load_run_config(flags={"SOURCE": [str(tmp_path)], "--out": f"{tmp_path}-out"}, needs_sources=True)
    config = config.model_copy(update={"tokenizer": tokenizer})
    stages = [program.stage for program in programs_of(config)]
    assert stages == [stage for stage in RUN_STAGES if tokenizer is None or stage not in TOKENIZER_STAGES]
    for place, program in enumerate(programs_of(config)):
        assert set(program.needs) <= set(stages[:place])
