"""The worker pool of the image: the container of a worker, as the service starts it, for an engine on this machine.

Beam's entry point (`boot --worker_pool`) waits for an engine to ask for workers, at a port that is its own choice. Each
worker is started by the same entry point: it asks the engine for the job's options and files, and becomes a harness.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.local.commands import run
from deploy.local.processes import Service, answers
from schemas.errors import ConfigError

_PORT = 50000
"""Written down in Beam's entry point."""
_HINT = "on Debian or Ubuntu: apt-get install buildah"


class WorkerPool(Service):
    """A running pool; a context manager that stops it. Only root can start one.

    Attributes:
        beam_options: What makes an engine use it.
        log: The file that the pool and its workers write to.
    """

    def __init__(
        self,
        directory: Path,
        image: str,
        *,
        read: Sequence[Path] = (),
        write: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the pool and wait for it.

        Args:
            directory: The log and the record of its process.
            image: The name of the image, in this machine's storage.
            read: Files and folders of this machine that workers read, at the same paths.
            write: Folders that they write to, too.
            environment: Variables that workers get.

        Raises:
            ConfigError: If the port is in use, the image is missing, or the pool does not come up.
        """
        if answers(_PORT):
            raise ConfigError(f"port {_PORT} is in use, which the pool of Beam's image needs; end that process first")
        super().__init__(directory)
        self.beam_options = ("--environment_type=EXTERNAL", f"--environment_config=localhost:{_PORT}")
        self.log = self._processes.directory / "pool.log"
        self._container = f"cppmill-pool-{uuid.uuid4().hex[:8]}"
        self._buildah("from", "--pull-never", "--name", self._container, image)
        volumes = [f"--volume={path}:{path}:{mode}" for mode, paths in (("ro", read), ("rw", write)) for path in paths]
        variables = [f"--env={name}={value}" for name, value in (environment or {}).items()]
        # A namespace of processes of its own: what buildah starts outlives it otherwise, and keeps the port.
        command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "buildah", "run"]
        command += ["--isolation", "chroot", *volumes, *variables, self._container]
        try:
            self._process = self._processes.start("pool", [*command, "/opt/apache/beam/boot", "--worker_pool"])
            self._processes.wait_ready(lambda: answers(_PORT), f"the worker pool of {image}")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the pool and its workers, and delete the container."""
        for process in self._processes.started:
            self._processes.kill(process)  # not asked first: the first process of a namespace takes no request
        super().stop()
        self._buildah("rm", self._container)

    def _buildah(self, action: str, *arguments: str) -> None:
        folder = self._processes.directory
        run(["buildah", action, *arguments], cwd=folder, log=folder / f"buildah-{action}.log", hint=_HINT)
