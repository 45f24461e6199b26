"""The same bytes wherever a run is carried out: counts, tokenizer, dataset and receipt."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.local.flink import FlinkCluster
from deploy.local.spark import SparkCluster
from tests.processes import COMMAND_LINE, ProcessServer

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

DIGESTS = ["counts", "tokenizer", "dataset", "receipt"]
UNIT_BYTES = 1 << 17
WORKER = "from pipelines.engines.worker import main; main()"
COMMAND = """
import sys
from pipelines.stages import equivalence
equivalence.UNIT_BYTES, sys.executable = {unit_bytes!r}, {python!r}
"""
"""The command line, with units so small that there are several, and the programs of workers beside `python`."""


@pytest.fixture
def equivalence(processes: ProcessServer, sources: Path, tmp_path: Path) -> Callable[..., list[dict[str, str]]]:
    """Compare ways to run, the local one with them; return what the command says of each.

    Every process of Python is forked: workers that the engines start themselves are in the other tests.
    """
    python = processes.write_program(tmp_path / "python", "")
    processes.write_program(tmp_path / "cppmill-worker", WORKER)
    code = COMMAND.format(unit_bytes=str(UNIT_BYTES), python=str(python)) + COMMAND_LINE

    def compare(*arguments: str) -> list[dict[str, str]]:
        command = ["equivalence", "--json", "--out", str(tmp_path / "runs"), *arguments, str(sources)]
        with processes.start(code, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            said, errors = process.communicate()
        assert process.returncode == 0, said + errors
        return [event for event in map(json.loads, said.splitlines()) if "engine" in event]

    return compare


def digests(found: list[dict[str, str]]) -> set[tuple[str, ...]]:
    return {tuple(event[name] for name in DIGESTS) for event in found}


def test_every_way_to_run_gives_the_same_digests(
    equivalence: Callable[..., list[dict[str, str]]], tmp_path: Path
) -> None:
    with FlinkCluster(tmp_path / "flink", task_managers=2, slots=1) as flink:
        outside = equivalence("--engines", "local,processes,flink,prism", "--flink-master", flink.rest_address)
    with SparkCluster(tmp_path / "spark", workers=2) as spark:
        master = ("--spark-master", spark.master_url, "--spark-master-page", spark.master_page)
        outside += equivalence("--engines", "spark", *master)
    inside = equivalence("--engines", "flink,spark")
    assert [event["engine"] for event in outside] == ["local", "processes", "flink", "prism", "spark"]
    assert [event["engine"] for event in inside] == ["flink", "spark"]
    assert len(digests(outside + inside)) == 1
