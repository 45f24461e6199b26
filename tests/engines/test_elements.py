"""What reaches a worker is whole, elements of the largest size too; and a worker that does not fit is named."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipelines.engines.beam_execution import BeamEngine, open_beam_engine
from pipelines.engines.config import EngineConfig
from pipelines.engines.flink import MAX_ELEMENT_BYTES
from pipelines.engines.worker_check import check_workers
from schemas.errors import ConfigError
from schemas.units import Stage, Unit
from transforms.storage.folder import OutputFolder
from transforms.units.flow import FlatMap, GroupByKey

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(300),
    # Beam leaves the output of the programs that it starts open.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Prism's workers are threads of this process: one that still reads when Prism ends does so with an error.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

ENGINES = ["prism", "flink", "spark"]
KEYS, BATCHES = 2, 3
UNIT = Unit(stage=Stage.SCAN, key="k", num_bytes=1, label="l", payload={})


def content(number: int) -> bytes:
    """Bytes that do not compress, almost as many as an element may have, the rest is for its frame."""
    return np.random.default_rng(number).bytes(MAX_ELEMENT_BYTES - 4096)


def make_batch(unit: Unit) -> Iterator[tuple[int, pa.RecordBatch]]:
    number = int(unit.label)
    yield number % KEYS, pa.record_batch({"content": pa.array([content(number)], pa.binary())})


def keep_digests(grouped: tuple[int, Iterable[pa.RecordBatch]], folder: Path) -> Iterator[int]:
    key, batches = grouped
    digests = sorted(hashlib.sha256(batch.column("content")[0].as_py()).hexdigest() for batch in batches)
    (folder / str(key)).write_text("\n".join(digests))
    yield key


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BeamEngine]:
    """Each engine, its job server started once."""
    folder = tmp_path_factory.mktemp(request.param)
    with open_beam_engine(request.param, EngineConfig(out=str(folder), log_folder=folder / "logs", cpus=2)) as opened:
        yield opened


def test_elements_of_the_largest_size_are_grouped_whole(engine: BeamEngine, tmp_path: Path) -> None:
    numbers = range(KEYS * BATCHES)
    folder = tmp_path / "digests"
    folder.mkdir()

    flow = (
        FlatMap(name="Make", function=make_batch, gives=tuple[int, pa.RecordBatch]),
        GroupByKey(name="Group"),
        FlatMap(name="Keep", function=partial(keep_digests, folder=folder), gives=int),
    )
    units = [replace(UNIT, key=str(number), label=str(number)) for number in numbers]
    engine.run(flow, units, out=OutputFolder(tmp_path / "out"), label="elements")
    expected = {
        str(key): sorted(hashlib.sha256(content(number)).hexdigest() for number in numbers[key::KEYS])
        for key in range(KEYS)
    }
    assert {path.name: path.read_text().split() for path in folder.iterdir()} == expected


def test_a_worker_of_another_version_fails_the_run_at_once(engine: BeamEngine, tmp_path: Path) -> None:
    with pytest.raises((RuntimeError, ConfigError)) as raised:
        engine.run(check_workers("9.9.9"), [UNIT], out=OutputFolder(tmp_path), label="check")
    assert "the launcher's has 9.9.9; install cppmill-core==9.9.9" in str(raised.value)
