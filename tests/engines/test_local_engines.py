"""The stores of `deploy.local`: they come up, on the loopback interface alone, and go with all that they started.

Clusters of Flink and Spark do in `test_equivalence.py`, which has them anyway.
"""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

from deploy.local.gcs import GoogleStore
from deploy.local.processes import Processes
from deploy.local.s3 import ObjectStore
from tests.loopback import all_on_loopback
from transforms.storage.gcs import GcsObjects, _open_system

pytestmark = pytest.mark.engines


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


def test_the_store_of_google_is_killed_between_two_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with GoogleStore(tmp_path) as store:
        store.create_bucket("bucket")
        half = tmp_path / "objects/bucket/half"
        half.write_bytes(b"")  # as the store makes one, before it sets the attributes
        [process] = [psutil.Process(started.pid) for started in Processes(tmp_path).started]

        def unlink_when_frozen() -> None:
            with suppress(psutil.NoSuchProcess):
                while process.status() != psutil.STATUS_STOPPED:
                    pass
                half.unlink()

        with ThreadPoolExecutor() as pool:
            done = pool.submit(unlink_when_frozen)
            store.kill()
            done.result()
        store.restart()
        monkeypatch.setenv(store.endpoint_variable, store.endpoint)
        _open_system.cache_clear()
        assert not half.exists()
        assert GcsObjects().system.find("bucket") == []
    _open_system.cache_clear()
