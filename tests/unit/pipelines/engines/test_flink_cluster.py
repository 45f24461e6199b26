"""What a cluster tells of itself decides whether a job is submitted; a job is cancelled by its name."""

import json
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pipelines.engines.flink_cluster import FlinkCluster, FlinkUnreachableError, jar_version

MEBIBYTE = 1 << 20
NEEDS = {"parallelism": 2, "version": "1.19.3", "managed_bytes": 128 * MEBIBYTE, "heap_bytes": 128 * MEBIBYTE}


def answers(*, version="1.19.3", free=4, managed=512, heap=384, slots=2):
    manager = {"id": "tm-1", "slotsNumber": slots, "totalResource": {"managedMemory": managed, "taskHeapMemory": heap}}
    return {
        "/overview": {"flink-version": version, "taskmanagers": 1, "slots-total": 4, "slots-available": free},
        "/taskmanagers": {"taskmanagers": [manager]},
        "/jobs/overview": {
            "jobs": [
                {"jid": "1", "name": "ours", "state": "RUNNING"},
                {"jid": "2", "name": "ours", "state": "FINISHED"},
                {"jid": "3", "name": "theirs", "state": "RUNNING"},
            ]
        },
    }


@contextmanager
def serve(found):
    """Answer as a cluster does; yields the cluster and what it was asked to change."""
    changed = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(found.get(self.path))

        def do_PATCH(self):
            changed.append(self.path)
            self.answer({})

        def answer(self, value):
            self.send_response(200 if value is not None else 404)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield FlinkCluster(f"http://127.0.0.1:{server.server_port}"), changed
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"free": 1}, "--parallelism 2: 1 of 4 slots of"),
        ({"version": "1.20.1"}, "it is Flink 1.20.1, the job server is of 1.19.3"),
        ({"managed": 100}, "TaskManager tm-1 has 50 MiB of managedMemory a slot"),
        ({"heap": 128, "slots": 4}, "taskmanager.memory.task.heap.size to 512m"),
    ],
)
def test_what_a_cluster_lacks_is_named_with_what_to_change(told, message):
    with serve(answers(**told)) as (cluster, _):
        problems = list(cluster.missing(**NEEDS))
    assert len(problems) == 1
    assert message in problems[0]


def test_a_cluster_with_all_that_is_needed_is_taken():
    with serve(answers(version="1.19.0")) as (cluster, _):
        assert list(cluster.missing(**NEEDS)) == []
        assert cluster.is_here


def test_what_does_not_answer_as_flink_is_not_a_cluster():
    with serve({}) as (cluster, _):
        with pytest.raises(FlinkUnreachableError, match="no Flink answers there"):
            cluster.overview()
        assert [problem[:14] for problem in cluster.missing(**NEEDS)] == ["--flink_master"]
        cluster.cancel("ours")


def test_what_runs_under_the_name_is_cancelled_and_nothing_else():
    with serve(answers()) as (cluster, changed):
        cluster.cancel("ours")
    assert changed == ["/jobs/1?mode=cancel"]


def test_a_job_server_reports_its_version_of_flink(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as jar:
        jar.writestr(".flink-runtime.version.properties", "a=b\nproject.version=1.19.3\n")
    assert jar_version(str(tmp_path / "a.jar")) == "1.19.3"
    assert jar_version(str(tmp_path / "none.jar")) is None
