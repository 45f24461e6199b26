"""The same bytes wherever a run is carried out: counts, tokenizer, dataset and receipt.

The clusters of `deploy.local` that it needs listen on the loopback interface alone, and go with all that they started.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.local.flink import FlinkCluster
from deploy.local.processes import Processes
from deploy.local.spark import SparkCluster
from pipelines.engines.cache import engine_path
from pipelines.engines.spark_master import SparkMaster, driver_version
from tests.loopback import all_on_loopback
from tests.processes import COMMAND_LINE, ProcessServer

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

DIGESTS = ["counts", "tokenizer", "dataset", "receipt"]
UNIT_BYTES = 1 << 17
WORKER = "from pipelines.engines.worker import main; main()"
COMMAND = """
import sys
from dataclasses import replace
from pipelines.stages import equivalence
equivalence.UNIT_BYTES, sys.executable = {unit_bytes!r}, {python!r}
all_ways = equivalence.all_ways

def with_more(**named):
    return [replace(way, beam_options=(*way.beam_options, *{more!r}.get(way.name, ()))) for way in all_ways(**named)]

equivalence.all_ways = with_more
"""
"""The command line, with units so small that there are several, the programs of workers beside `python`, and more
options of Beam."""
ONE_APPLICATION = "--job_server_jvm_properties=-Dbeam.spark.test.reuseSparkContext=true"
"""All jobs of a command get the same executors; else each job would start a JVM on every worker."""


@pytest.fixture
def equivalence(processes: ProcessServer, sources: Path, tmp_path: Path) -> Callable[..., list[dict[str, str]]]:
    """Compare ways to run, the local one with them; return what the command says of each.

    Every process of Python is forked: workers that the engines start themselves are in the other tests.
    """
    python = processes.write_program(tmp_path / "python", "")
    processes.write_program(tmp_path / "cppmill-worker", WORKER)

    def compare(*arguments: str, **more: str) -> list[dict[str, str]]:
        fields = {"unit_bytes": str(UNIT_BYTES), "python": str(python)}
        code = COMMAND.format(**fields, more={name: (option,) for name, option in more.items()}) + COMMAND_LINE
        command = ["equivalence", "--json", "--out", str(tmp_path / "runs"), *arguments, str(sources)]
        with processes.start(code, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            said, errors = process.communicate()
        assert process.returncode == 0, said + errors
        return [event for event in map(json.loads, said.splitlines()) if "engine" in event]

    return compare


def digests(found: list[dict[str, str]]) -> set[tuple[str, ...]]:
    return {tuple(event[name] for name in DIGESTS) for event in found}


@contextmanager
def flink_cluster(folder: Path) -> Iterator[FlinkCluster]:
    with FlinkCluster(folder, task_managers=2, slots=1) as cluster:
        assert cluster.free_slots == 2
        assert len(set(cluster.task_managers)) == 2
        assert all_on_loopback(folder)
        processes = Processes(folder).started
        yield cluster
    assert len(processes) == 3
    assert not any(process.runs for process in processes)
    assert cluster.free_slots == 0


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    with SparkCluster(folder, workers=2) as cluster:
        assert cluster.workers == 2
        assert all_on_loopback(folder)
        check_preflight(SparkMaster(cluster.master_url, cluster.master_page))
        processes = Processes(folder).started
        yield cluster
    assert len(processes) == 3
    assert not any(process.runs for process in processes)


def check_preflight(master: SparkMaster) -> None:
    version = driver_version(engine_path("spark-home"))
    assert version is not None
    assert list(master.missing(version=version)) == []
    [problem] = master.missing(version="2.4.8")
    assert f"it is Spark {version}, the driver is 2.4.8" in problem


def test_every_way_to_run_gives_the_same_digests(
    equivalence: Callable[..., list[dict[str, str]]], tmp_path: Path
) -> None:
    with flink_cluster(tmp_path / "flink") as flink:
        server = f"--flink_job_server_jar={flink.job_server}"
        ways = "local,processes,flink,prism"
        outside = equivalence("--engines", ways, "--flink-master", flink.rest_address, flink=server)
    with spark_cluster(tmp_path / "spark") as spark:
        master = ("--spark-master", spark.master_url, "--spark-master-page", spark.master_page)
        outside += equivalence("--engines", "spark", *master, spark=ONE_APPLICATION)
    inside = equivalence("--engines", "flink,spark")
    assert [event["engine"] for event in outside] == ["local", "processes", "flink", "prism", "spark"]
    assert [event["engine"] for event in inside] == ["flink", "spark"]
    assert len(digests(outside + inside)) == 1
