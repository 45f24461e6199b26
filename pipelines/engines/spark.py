"""Spark: a master that is named, else one inside the job server on this machine.

The worker processes are ours, as on Flink. The job server runs on the class path of the fetched Spark; only its own jar
is staged, because otherwise each job would stage that whole class path. Workers stay for some seconds, because Spark
does not use them between two stages of a job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from apache_beam.options.pipeline_options import SparkRunnerOptions
from apache_beam.runners.portability.spark_runner import LOCAL_MASTER_PATTERN, SparkJarJobServer, SparkRunner
from apache_beam.runners.runner import PipelineRunner

from pipelines.engines.cache import engine_path
from pipelines.engines.config import EngineConfig
from pipelines.engines.engine import Engine, make_options
from pipelines.engines.environment import missing_worker, process_environment
from pipelines.engines.job_server import (
    HeldJobServer,
    engine_flag,
    jvm_flags,
    missing_file,
    missing_java,
    with_job_server,
)
from pipelines.engines.spark_master import SparkMaster, SparkMasterOptions, driver_version
from schemas.errors import ConfigError

DRIVER = "org.apache.beam.runners.spark.SparkJobServerDriver"

_HERE = ("localhost", "127.0.0.1", "::1")


class Spark(Engine):
    """A Spark master, and the job server, Spark's driver, in front of it."""

    def __init__(self, config: EngineConfig) -> None:
        """Take a thread a CPU, and so a worker, if no master is named."""
        jar = engine_flag("--spark_job_server_jar", "spark")
        self.flags = [
            f"--spark_master_url=local[{config.cpus}]",
            *jar,
            *jvm_flags("-Xmx1g", "-Dspark.ui.enabled=false"),
            *(flag.replace("--spark_job_server_jar", "--files_to_stage") for flag in jar),
            *process_environment(config),
            "--environment_cache_millis=10000",
        ]
        self._options = make_options(config, self.flags)
        self._master: str = self._options.view_as(SparkRunnerOptions).spark_master_url
        workers = re.match(r"local\[(\d+)\]", self._master)
        self.flags.append(f"--sdk_worker_parallelism={workers.group(1) if workers else config.cpus}")
        self._options = make_options(config, self.flags)
        self._server = HeldJobServer(lambda: _with_class_path(SparkJarJobServer(self._options)))

    def missing(self) -> Iterator[str]:
        """Yield what keeps a pipeline from being run."""
        yield from missing_file(
            "--spark_job_server_jar", self._options.view_as(SparkRunnerOptions).spark_job_server_jar, "spark"
        )
        try:
            version = driver_version(engine_path("spark-home"))
        except ConfigError as error:
            yield str(error)
            version = None
        yield from missing_java(self._options)
        embedded = re.match(LOCAL_MASTER_PATTERN, self._master) is not None
        if embedded or urlsplit(self._master).hostname in _HERE:
            yield from missing_worker(self._options)
        if not embedded:
            page = self._options.view_as(SparkMasterOptions).spark_master_page
            yield from SparkMaster(self._master, page).missing(version=version)

    def runner(self) -> PipelineRunner:
        """Return a runner on the one job server of this command."""
        return with_job_server(SparkRunner(), self._server)

    def stop(self) -> None:
        """Stop the job server."""
        self._server.stop()


def _with_class_path(server: SparkJarJobServer) -> SparkJarJobServer:
    """Return a job server on the class path of the fetched Spark, which its jar leaves out."""
    jar_command: Callable[[], tuple[list[str], str]] = server.subprocess_cmd_and_endpoint

    def class_path_command() -> tuple[list[str], str]:
        command, endpoint = jar_command()
        at = command.index("-jar")
        path = f"{command[at + 1]}:{engine_path('spark-home') / 'jars' / '*'}"
        return [*command[:at], "-cp", path, DRIVER, *command[at + 2 :]], endpoint

    server.subprocess_cmd_and_endpoint = class_path_command  # type: ignore[method-assign]
    return server
