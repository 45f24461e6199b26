"""The engines of `deploy.local`: they come up, on the loopback interface alone, and go with all that they started."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

from deploy.local.flink import FlinkCluster
from deploy.local.gcs import GoogleStore
from deploy.local.processes import Processes
from deploy.local.s3 import ObjectStore
from deploy.local.spark import SparkCluster
from pipelines.engines.cache import engine_path
from pipelines.engines.spark_master import SparkMaster, driver_version
from transforms.storage.gcs import GcsObjects, _open_system

pytestmark = pytest.mark.engines


def listeners(pid: int) -> set[str]:
    """The addresses, as the kernel writes them, at which a process listens."""
    inodes = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found = re.fullmatch(r"socket:\[(\d+)\]", str(handle.readlink()))
            inodes |= {found[1]} if found else set()
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def is_loopback(address: str) -> bool:
    return address in {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def client(store: ObjectStore) -> S3FileSystem:
    return S3FileSystem(
        access_key=store.environment["AWS_ACCESS_KEY_ID"],
        secret_key=store.environment["AWS_SECRET_ACCESS_KEY"],
        region=store.environment["AWS_REGION"],
        endpoint_override=store.endpoint,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=1),
    )


def write(files: S3FileSystem, name: str, content: bytes) -> None:
    with files.open_output_stream(name) as stream:
        stream.write(content)


def all_on_loopback(directory: Path) -> bool:
    found = set().union(*(listeners(process.pid) for process in Processes(directory).started))
    return bool(found) and all(map(is_loopback, found))


def check_preflight(master: SparkMaster) -> None:
    version = driver_version(engine_path("spark-home"))
    assert version is not None
    assert list(master.missing(version=version)) == []
    [problem] = master.missing(version="2.4.8")
    assert f"it is Spark {version}, the driver is 2.4.8" in problem


def test_flink_offers_all_slots_on_loopback_alone_and_goes(tmp_path: Path) -> None:
    with FlinkCluster(tmp_path, task_managers=2, slots=2) as cluster:
        assert cluster.free_slots == 4
        assert len(set(cluster.task_managers)) == 2
        assert all_on_loopback(tmp_path)
        processes = Processes(tmp_path).started
    assert len(processes) == 3
    assert not any(process.runs for process in processes)
    assert cluster.free_slots == 0


def test_spark_has_its_workers_on_loopback_alone_and_goes(tmp_path: Path) -> None:
    with SparkCluster(tmp_path, workers=2) as cluster:
        assert cluster.workers == 2
        assert all_on_loopback(tmp_path)
        check_preflight(SparkMaster(cluster.master_url, cluster.master_page))
        processes = Processes(tmp_path).started
    assert not any(process.runs for process in processes)


def test_the_object_store_keeps_what_it_has_when_it_is_killed(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        store.create_bucket("bucket")
        files = client(store)
        write(files, "bucket/key", b"value")
        assert all_on_loopback(tmp_path)
        store.kill()
        with pytest.raises(OSError):
            write(client(store), "bucket/other", b"")
        store.restart()
        assert files.open_input_stream("bucket/key").read() == b"value"


def test_the_store_of_google_keeps_what_it_has_when_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GoogleStore(tmp_path) as store:
        store.create_bucket("bucket")
        monkeypatch.setenv(store.endpoint_variable, store.endpoint)
        _open_system.cache_clear()
        version = GcsObjects().write("bucket/key", b"value", expected=None)
        assert all_on_loopback(tmp_path)
        store.kill()
        store.restart()
        status = GcsObjects().status("bucket/key")
        assert status is not None
        assert status.version == version
        assert GcsObjects().system.cat_file("bucket/key") == b"value"
    _open_system.cache_clear()


def test_the_command_line_starts_and_stops(tmp_path: Path, repository: Path) -> None:
    def command(action: str) -> str:
        words = [sys.executable, "-m", "deploy.local", "s3", action, "--dir", str(tmp_path)]
        return subprocess.run(words, cwd=repository, check=True, capture_output=True, text=True, timeout=60).stdout

    said = command("start")
    [process] = Processes(tmp_path).started
    assert process.runs
    assert re.search(r"^export AWS_ENDPOINT_URL=http://127\.0\.0\.1:\d+$", said, re.MULTILINE)
    command("stop")
    assert not process.runs
    assert Processes(tmp_path).started == []
