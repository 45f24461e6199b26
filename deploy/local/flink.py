"""A Flink cluster on this machine: one JobManager and some TaskManagers, each a process of its own, on 127.0.0.1.

The class path is only the job server's jar, which contains all of Flink. `_configuration` has the settings and their
reasons. A TaskManager that dies is not replaced, as on any standalone cluster; the slots of the others must suffice.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from deploy.local.processes import Service, free_ports
from pipelines.engines import flink_cluster
from pipelines.engines.cache import engine_path

_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
# They move little: what compiling well would gain comes too late.
_JVM = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
# What Flink 1.19 reaches into on Java 17, as in its own distribution's configuration.
_OPENED = ["lang", "lang.reflect", "io", "net", "nio", "text", "time", "util", "util.concurrent"]
_OPENED += ["util.concurrent.atomic", "util.concurrent.locks"]
_JAVA = ["java", *_JVM, *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED)]
_JAVA += ["--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-exports=java.base/sun.net.util=ALL-UNNAMED"]
_NOT_SENT = "gradle/wrapper/job-server.jar"
"""Where Beam takes its own jar for that of a build tool, which it does not send along with a job."""


class FlinkCluster(Service):
    """A running cluster; a context manager that stops it.

    Attributes:
        rest_address: What `--flink_master` takes, `127.0.0.1:PORT`.
        task_managers: Their process ids.
        job_server: A job server for this cluster, which has Beam on its class path: it does not send Beam, 157 MB, with
            each job.
    """

    def __init__(self, directory: Path, *, task_managers: int = 2, slots: int = 2) -> None:
        """Start the cluster and wait for all of its slots.

        Args:
            directory: Configuration, logs and temporary files.
            task_managers: How many processes do the work.
            slots: Of each; a job needs as many as its parallelism, also after a TaskManager has died.

        Raises:
            ConfigError: If Flink has not been fetched, Java is missing, or the cluster does not come up.
        """
        super().__init__(directory)
        rpc_port, rest_port = free_ports(2)
        self.rest_address = f"127.0.0.1:{rest_port}"
        folder = self._processes.directory
        configuration = _configuration(folder, rpc_port=rpc_port, rest_port=rest_port, slots=slots)
        (folder / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in configuration.items()))
        jar = engine_path("flink")
        self.job_server = _linked(jar, folder / _NOT_SENT)
        program = ["-cp", str(jar)]
        try:
            self._processes.start("jobmanager", [*_JAVA, *program, _JOB_MANAGER, "--configDir", str(folder)])
            self.task_managers = [
                self._processes.start(
                    f"taskmanager-{number}",
                    [*_JAVA, *program, _TASK_MANAGER, "--configDir", str(folder), *_named(number)],
                ).pid
                for number in range(1, task_managers + 1)
            ]
            self._processes.wait_ready(lambda: self.free_slots == task_managers * slots, "Flink")
        except BaseException:
            self.stop()
            raise

    @property
    def free_slots(self) -> int:
        """How many slots a job could have now; none while the cluster does not answer."""
        try:
            return flink_cluster.FlinkCluster(f"http://{self.rest_address}").overview().free_slots
        except flink_cluster.FlinkUnreachableError:
            return 0


def _linked(file: Path, name: Path) -> Path:
    """Give a file another name, which is no symbolic link: Beam would follow it; return the name."""
    name.parent.mkdir(parents=True, exist_ok=True)
    name.unlink(missing_ok=True)
    try:
        os.link(file, name)
    except OSError:  # another file system
        shutil.copyfile(file, name)
    return name


def _named(number: int) -> list[str]:
    return ["-D", f"taskmanager.resource-id=taskmanager-{number}"]


def _configuration(folder: Path, *, rpc_port: int, rest_port: int, slots: int) -> dict[str, str | int]:
    return {
        "jobmanager.rpc.address": "127.0.0.1",
        "jobmanager.rpc.port": rpc_port,
        "jobmanager.bind-host": "127.0.0.1",
        "rest.address": "127.0.0.1",
        "rest.bind-address": "127.0.0.1",
        "rest.port": rest_port,
        "taskmanager.host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "taskmanager.numberOfTaskSlots": slots,
        # Or the first TaskManager gets all units.
        "cluster.evenly-spread-out-slots": "true",
        # Memory by parts: a TaskManager that is started without Flink's scripts dies without them.
        "taskmanager.cpu.cores": slots,
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.task.heap.size": "384m",
        "taskmanager.memory.task.off-heap.size": "0m",
        "taskmanager.memory.network.min": "64m",
        "taskmanager.memory.network.max": "64m",
        # A slot sorts what is grouped in its share of this: 256 MB take elements of 20 MB.
        "taskmanager.memory.managed.size": f"{256 * slots}m",
        "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "128m",
        "taskmanager.memory.jvm-overhead.max": "128m",
        # What recovers a job; Beam's own options for it do nothing.
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 10,
        "restart-strategy.fixed-delay.delay": "1 s",
        # Beam is on the class path already; else each job loads and compiles its own copy of it.
        "classloader.resolve-order": "parent-first",
        # A dead or frozen TaskManager is missed within ten seconds, not fifty.
        "heartbeat.interval": 2000,
        "heartbeat.timeout": 10000,
        "io.tmp.dirs": str(folder / "tmp"),
        "blob.storage.directory": str(folder / "blobs"),
        "web.upload.dir": str(folder / "uploads"),
    }
