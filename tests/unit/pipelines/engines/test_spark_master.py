"""What the page of a Spark master tells decides whether a pipeline is submitted."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pipelines.engines.spark_master import SparkMaster, driver_version


def worker(*, cores=1, memory=1024, state="ALIVE"):
    return {"host": "10.0.0.7", "coresfree": cores, "memoryfree": memory, "state": state}


@contextmanager
def serve(*workers, status="ALIVE", url=None, version="3.5.0"):
    """Answer as a master's page does, on the port that takes the connections of drivers too."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            found = {"url": url or master.url, "status": status, "workers": workers}
            page = f'<span class="version" style="margin-right: 15px;">{version}</span>'
            self.wfile.write((json.dumps(found) if self.path == "/json/" else page).encode())

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = f"127.0.0.1:{server.server_port}"
        master = SparkMaster(f"spark://{address}", f"http://{address}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield master
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("workers", "told", "message"),
    [
        ([], {}, "an executor needs a free core and 1024 MiB; no worker is there"),
        ([worker(cores=0), worker(memory=512)], {}, "10.0.0.7 has 0 and 1024 MiB, 10.0.0.7 has 1 and 512 MiB"),
        ([worker(state="DEAD")], {}, "no worker is there"),
        ([worker()], {"status": "STANDBY"}, "it is STANDBY, not ALIVE"),
        ([worker()], {"version": "3.4.1"}, "it is Spark 3.4.1, the driver is 3.5.0"),
        ([worker()], {"url": "spark://elsewhere:7077"}, "cannot be read (it belongs to spark://elsewhere:7077)"),
    ],
)
def test_everything_that_a_master_lacks_is_reported(workers, told, message):
    with serve(*workers, **told) as master:
        [problem] = master.missing(version="3.5.0")
    assert message in problem


@pytest.mark.parametrize("version", ["3.5.0", "3.5.3", None])
def test_one_worker_with_room_is_enough(version):
    with serve(worker(cores=0), worker()) as master:
        assert list(master.missing(version=version)) == []


def test_a_master_without_a_page_is_asked_for_a_connection_alone():
    with serve() as master:
        assert list(SparkMaster(master.url).missing(version="3.5.0")) == []


def test_a_page_that_is_named_must_be_there():
    with serve(worker()) as master:
        [problem] = SparkMaster(master.url, "http://127.0.0.1:1").missing(version="3.5.0")
    assert problem.startswith("--spark_master_page http://127.0.0.1:1: ")


def test_the_version_of_the_driver_is_in_the_name_of_its_jar(tmp_path):
    (tmp_path / "jars").mkdir()
    assert driver_version(tmp_path) is None
    for name in ("spark-sql_2.12-3.5.0.jar", "spark-core_2.12-3.5.0.jar"):
        (tmp_path / "jars" / name).touch()
    assert driver_version(tmp_path) == "3.5.0"
