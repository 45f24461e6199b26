"""The transforms of `cppmill.beam` on engines: the same documents, ids, platforms and counts as those of a run."""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cppmill.beam import CountTokens, DetectPlatforms, Encode, ReadCpp, WriteTokens
from pipelines.engines.beam_execution import BeamEngine, open_beam_engine
from pipelines.engines.config import EngineConfig
from pipelines.engines.engine import make_options

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(300),
    # Beam leaves the output of the programs that it starts open.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Prism's workers are threads of this process: one that still reads when Prism ends does so with an error.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


@pytest.fixture(scope="module", params=["local", "prism", "flink"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BeamEngine]:
    folder = tmp_path_factory.mktemp(request.param)
    with open_beam_engine(request.param, EngineConfig(out=str(folder), log_folder=folder / "logs", cpus=2)) as opened:
        yield opened
    gc.collect()  # here, and not at the end of the session, what Beam has left open may be


def keep(counts: pa.RecordBatch, folder: str) -> None:
    pq.write_table(pa.Table.from_batches([counts]), f"{folder}/{uuid.uuid4()}.parquet")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("part-*"))


def rows(place: Path, *by: str) -> pa.Table:
    return pq.read_table(place).sort_by([(name, "ascending") for name in by])


def test_a_pipeline_of_transforms_gives_what_a_run_gives(run: Any, engine: BeamEngine, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    counted.mkdir()
    tokenizer, unit_bytes = run.out / "tokenizer", {"unit_bytes": 1 << 17}
    options = make_options(engine.config, [*engine.engine.flags, f"--job_name=beam-{engine.name}"])
    with beam.Pipeline(runner=engine.engine.runner(), options=options) as pipeline:
        documents = pipeline | ReadCpp(sources=run.sources, ingest=unit_bytes) | DetectPlatforms()
        _ = documents | Encode(tokenizer=tokenizer) | WriteTokens(out=tmp_path / "tokens", shards=3)
        _ = documents | CountTokens() | beam.Map(keep, folder=str(counted))
        table = pipeline | beam.io.ReadFromParquet(f"{run.out}/documents/part-*.parquet")
        encoded = table | "EncodeRows" >> Encode(tokenizer=tokenizer)
        _ = encoded | "WriteRows" >> WriteTokens(out=tmp_path / "again", shards=3)
    assert rows(tmp_path / "tokens", "path").equals(rows(run.out / "tokens", "path"))
    assert rows(counted, "word").equals(rows(run.out / "counts" / "words", "word"))
    assert names(tmp_path / "again") == names(tmp_path / "tokens") != []
