"""Flink: a cluster that is named, else one inside the job server on this machine.

The worker processes are ours (`pipelines.engines.worker`), one per subtask: each bundle has its own process, with one
thread of the native core by default. Beam's own defaults are overridden: a parallelism of 1, workers in a container of
Beam's, and a downloaded job server.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from apache_beam.options.pipeline_options import FlinkRunnerOptions
from apache_beam.runners.portability.flink_runner import MAGIC_HOST_NAMES, FlinkJarJobServer, FlinkRunner
from apache_beam.runners.runner import PipelineRunner

from pipelines.engines.config import EngineConfig
from pipelines.engines.engine import Engine, make_options
from pipelines.engines.environment import missing_worker, process_environment
from pipelines.engines.flink_cluster import FlinkCluster, FlinkUnreachableError, jar_version
from pipelines.engines.job_server import (
    HeldJobServer,
    engine_flag,
    jvm_flags,
    missing_file,
    missing_java,
    with_job_server,
)

MAX_ELEMENT_BYTES = 16 << 20
"""The largest element that cppmill lets an engine shuffle."""

MIN_MANAGED_BYTES = 8 * MAX_ELEMENT_BYTES
"""Managed memory a slot: sorting elements of 20 MB passed with 256 MB at one slot, elements of 100 MB needed 512 MB."""

MIN_HEAP_BYTES = 8 * MAX_ELEMENT_BYTES
"""Task heap per slot: it holds an element several times while it is read, sorted and sent to a worker."""

_EMBEDDED_HEAP = "-Xmx1g"
_CLUSTER_HEAP = "-Xmx512m"
_JVM = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED")


class Flink(Engine):
    """A Flink cluster, and the job server in front of it."""

    def __init__(self, config: EngineConfig) -> None:
        """Ask the cluster, if one is named, how many slots are free."""
        given = make_options(config).view_as(FlinkRunnerOptions)
        embedded = given.flink_master in MAGIC_HOST_NAMES
        self.cluster = None if embedded else FlinkCluster(FlinkRunner.add_http_scheme(given.flink_master))
        self.flags = [
            *(["--flink_master=[local]"] if embedded else []),
            *engine_flag("--flink_job_server_jar", "flink"),
            *jvm_flags(_EMBEDDED_HEAP if embedded else _CLUSTER_HEAP, *_JVM),
            *process_environment(config),
        ]
        slots, task_managers = self._free_slots(config.cpus)
        parallelism = given.parallelism if config.gives("--parallelism") else slots
        self.flags += [
            f"--parallelism={parallelism}",
            f"--sdk_worker_parallelism={math.ceil(parallelism / task_managers)}",
        ]
        self._options = make_options(config, self.flags)
        self._server = HeldJobServer(lambda: FlinkJarJobServer(self._options))

    def missing(self) -> Iterator[str]:
        """Yield what keeps a pipeline from being run."""
        options = self._options.view_as(FlinkRunnerOptions)
        yield from missing_file("--flink_job_server_jar", options.flink_job_server_jar, "flink")
        yield from missing_java(self._options)
        if self.cluster is None or self.cluster.is_here:
            yield from missing_worker(self._options)
        if self.cluster is not None:
            yield from self.cluster.missing(
                parallelism=options.parallelism,
                version=jar_version(options.flink_job_server_jar),
                managed_bytes=MIN_MANAGED_BYTES,
                heap_bytes=MIN_HEAP_BYTES,
            )

    def runner(self) -> PipelineRunner:
        """Return a runner on the one job server of this command."""
        return with_job_server(FlinkRunner(), self._server)

    def cancel(self, job_name: str) -> None:
        """Cancel a job on the cluster; an embedded one ends with its job server."""
        if self.cluster is not None:
            self.cluster.cancel(job_name)

    def stop(self) -> None:
        """Stop the job server."""
        self._server.stop()

    def _free_slots(self, cpus: int) -> tuple[int, int]:
        """Return how many slots are free, a CPU each here, and on how many TaskManagers; one at least of both."""
        if self.cluster is None:
            return cpus, 1
        try:
            overview = self.cluster.overview()
        except FlinkUnreachableError:
            return 1, 1  # `missing` reports it
        return max(1, overview.free_slots), max(1, overview.task_managers)
