"""A timed stage starts with what it needs and with nothing of what it makes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from benches.lib.harness import BenchmarkError
from benches.lib.stages import NEEDS, hash_receipts, prepare_stage
from configs.runs import RunConfig
from schemas.units import RUN_STAGES, Stage

FILES = {
    Stage.INGEST: "documents/part-0.parquet",
    Stage.SCAN: "units/counts/parts/_unit-0.json",
    Stage.BUILD: "tokenizer/manifest.json",
    Stage.TOKENIZE: "tokens/part-0.parquet",
    Stage.VALIDATE: "proofs/_unit-0.json",
}


@pytest.fixture
def base(tmp_path: Path) -> RunConfig:
    out = tmp_path / "run"
    indexes = [f".cache/stages/{stage}.json" for stage in RUN_STAGES]
    for name in [*FILES.values(), *indexes, "receipt.json", ".cache/digests.json", ".cache/fingerprints/0.parquet"]:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("{}")
    return RunConfig(sources=("src",), out=out)


@pytest.mark.parametrize("stage", RUN_STAGES)
def test_a_stage_starts_with_what_it_needs_alone(stage: Stage, base: RunConfig) -> None:
    for _ in range(2):  # what an earlier round left is gone
        ready = prepare_stage(base, stage)
        out = ready.config.out
        found = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
        needed = {name for other in NEEDS[stage] for name in (FILES[other], f".cache/stages/{other}.json")}
        assert found == needed | ({".cache/digests.json"} if needed else set())
        (out / FILES[stage]).parent.mkdir(parents=True, exist_ok=True)
        (out / FILES[stage]).write_text("made by the stage")
    assert ready.program == import_module(f"pipelines.stages.{stage}").run
    assert (ready.config.sources, ready.config.options) == (base.sources, base.options)


def test_a_stage_that_left_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="left no unit receipt"):
        hash_receipts(tmp_path)


def test_the_digest_of_a_stage_is_that_of_its_receipts(tmp_path: Path) -> None:
    (tmp_path / "_unit-1.json").write_text("{}")
    first = hash_receipts(tmp_path)
    (tmp_path / "part-1.parquet").write_text("not named by a receipt")
    assert hash_receipts(tmp_path) == first
    (tmp_path / "_unit-1.json").write_text("[]")
    assert hash_receipts(tmp_path) != first
