"""The same bytes wherever a run is carried out: counts, tokenizer, dataset and receipt."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.flink import FlinkCluster
from deploy.local.spark import SparkCluster

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

WAYS = ["local", "processes", "flink", "prism", "spark"]
DIGESTS = ["counts", "tokenizer", "dataset", "receipt"]


def equivalence(repository: Path, out: Path, *arguments: str) -> list[dict[str, str]]:
    """Run the command and return what it tells of each way; fail if it does."""
    command = [sys.executable, "-m", "pipelines.cli", "equivalence", "--json", "--out", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=repository)
    assert done.returncode == 0, done.stdout + done.stderr
    events = map(json.loads, done.stdout.splitlines())
    return [event for event in events if "engine" in event]


def test_every_way_to_run_gives_the_same_digests(repository: Path, tmp_path: Path) -> None:
    with FlinkCluster(tmp_path / "flink", task_managers=2, slots=1) as flink:
        found = equivalence(
            repository, tmp_path / "out", "--engines", ",".join(WAYS), "--flink-master", flink.rest_address
        )
    assert [event["engine"] for event in found] == WAYS
    assert len({tuple(event[name] for name in DIGESTS) for event in found}) == 1


def test_clusters_inside_and_outside_the_job_server_give_the_same_digests(repository: Path, tmp_path: Path) -> None:
    with SparkCluster(tmp_path / "spark", workers=2) as spark:
        master = ("--spark-master", spark.master_url, "--spark-master-page", spark.master_page)
        outside = equivalence(repository, tmp_path / "outside", "--engines", "spark", *master)
    inside = equivalence(repository, tmp_path / "inside", "--engines", "flink")
    assert [outside[0][name] for name in DIGESTS] == [inside[0][name] for name in DIGESTS]
