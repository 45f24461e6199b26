"""A Spark cluster on this machine: one master and some workers, each a process of its own, on 127.0.0.1.

Beam's job server, which is Spark's driver, is started by the command that runs a pipeline.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

from deploy.local.processes import Service, free_ports
from pipelines.engines.cache import engine_path

_HOST = "127.0.0.1"
_DAEMON_MEMORY = "384m"
# Of executors too, which the workers start: compiling well and collecting in parallel would gain nothing.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class SparkCluster(Service):
    """A running cluster; a context manager that stops it.

    Attributes:
        master_url: `spark://127.0.0.1:PORT`.
        master_page: Address of the master's web page.
    """

    def __init__(self, directory: Path, *, workers: int = 2) -> None:
        """Start the cluster and wait for its workers.

        Args:
            directory: Logs and working files.
            workers: How many processes offer a core each, and start an executor for a job.

        Raises:
            ConfigError: If Spark has not been fetched, Java is missing, or the cluster does not come up.
        """
        super().__init__(directory)
        self._home = engine_path("spark-home")
        self._environment = {
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
            "JDK_JAVA_OPTIONS": _QUICK,
            "SPARK_LOCAL_DIRS": str(self._processes.directory / "local"),
        }
        master_port, page_port = free_ports(2)
        self.master_url = f"spark://{_HOST}:{master_port}"
        self.master_page = f"http://{_HOST}:{page_port}"
        try:
            self._start_class("master", "master.Master", "--port", master_port, "--webui-port", page_port)
            for number in range(1, workers + 1):
                self._start_worker(f"worker-{number}")
            self._processes.wait_ready(lambda: self.workers == workers, "Spark")
        except BaseException:
            self.stop()
            raise

    @property
    def workers(self) -> int:
        """How many workers the master knows; none while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.master_page}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return 0

    def _start_class(self, name: str, program: str, *arguments: str | int) -> None:
        command = [str(self._home / "bin/spark-class"), f"org.apache.spark.deploy.{program}", "--host", _HOST]
        self._processes.start(name, [*command, *map(str, arguments)], self._environment)

    def _start_worker(self, name: str) -> None:
        work = self._processes.directory / name
        resources = ("--cores", 1, "--memory", "1g", "--webui-port", 0, "--work-dir", str(work))
        self._start_class(name, "worker.Worker", *resources, self.master_url)
