"""A Spark cluster on this machine: one master, some workers, and Beam's job server for it, on 127.0.0.1.

The job server's jar has Beam's runner and no Spark: Spark's own jars stand beside it on the class path.
Beam's job server listens on all interfaces, whatever it is told; everything else is on the loopback interface alone.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

from deploy.local.processes import Processes, answers, free_ports
from pipelines.engines.fetched import fetched

_HOST = "127.0.0.1"
_DAEMON_MEMORY = "384m"
_EXECUTOR_MEMORY = "768m"
# What Spark 3.5 reaches into on Java 17, for the one process that is not started by its own scripts.
_OPENED = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent")
_JAVA = ["java", "-Xmx512m", *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED)]
_JAVA += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("sun.nio.ch", "sun.nio.cs", "sun.security.action")]
_JAVA += ["--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED"]


class SparkCluster:
    """A running cluster with its job server; a context manager that stops them.

    Attributes:
        master_url: `spark://127.0.0.1:PORT`.
        job_server: The endpoint that `--job_endpoint` takes, `127.0.0.1:PORT`.
    """

    def __init__(self, directory: Path, *, workers: int = 2) -> None:
        """Start the cluster and its job server and wait for them.

        Args:
            directory: Logs and working files.
            workers: How many processes offer a core each, and start an executor for a job.

        Raises:
            ConfigError: If Spark has not been fetched, Java is missing, or the cluster does not come up.
        """
        self._processes = Processes(directory)
        self._home = fetched("spark-home")
        self._environment = {
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
            "SPARK_LOCAL_DIRS": str(self._processes.directory / "local"),
        }
        master_port, self._pages_port, job_port, artifact_port = free_ports(4)
        self.master_url = f"spark://{_HOST}:{master_port}"
        self.job_server = f"{_HOST}:{job_port}"
        try:
            self._start_class("master", "master.Master", "--port", master_port, "--webui-port", self._pages_port)
            for number in range(1, workers + 1):
                self._start_worker(f"worker-{number}")
            self._start_job_server(job_port, artifact_port)
            self._processes.wait_ready(lambda: self.workers == workers and answers(job_port), "Spark")
        except BaseException:
            self.stop()
            raise

    @property
    def workers(self) -> int:
        """How many workers the master knows; none while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{self._pages_port}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return 0

    def stop(self) -> None:
        """End the cluster and its job server, with the executors and workers that they started."""
        self._processes.stop()

    def __enter__(self) -> SparkCluster:
        """Return what runs."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    def _start_class(self, name: str, program: str, *arguments: str | int) -> None:
        command = [str(self._home / "bin/spark-class"), f"org.apache.spark.deploy.{program}", "--host", _HOST]
        self._processes.start(name, [*command, *map(str, arguments)], self._environment)

    def _start_worker(self, name: str) -> None:
        work = self._processes.directory / name
        resources = ("--cores", 1, "--memory", "1g", "--webui-port", 0, "--work-dir", str(work))
        self._start_class(name, "worker.Worker", *resources, self.master_url)

    def _start_job_server(self, job_port: int, artifact_port: int) -> None:
        class_path = f"{fetched('spark')}:{self._home}/jars/*"
        command = [*_JAVA, f"-Dspark.executor.memory={_EXECUTOR_MEMORY}", f"-Dspark.driver.host={_HOST}"]
        command += ["-Dspark.ui.enabled=false", "-cp", class_path]
        command += ["org.apache.beam.runners.spark.SparkJobServerDriver", f"--spark-master-url={self.master_url}"]
        command += [f"--job-host={_HOST}", f"--job-port={job_port}", f"--artifact-port={artifact_port}"]
        command += ["--expansion-port=0", f"--artifacts-dir={self._processes.directory / 'artifacts'}"]
        self._processes.start("job-server", command, self._environment)
