"""What the object stores of this folder share: a program over a folder of objects, on 127.0.0.1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from deploy.local.processes import Service, Started, answers, free_ports


class LocalStore(Service, ABC):
    """A running object store; a context manager that stops it.

    Attributes:
        scheme: That of the URLs of its objects.
        endpoint: Its URL.
        endpoint_variable: The variable of the environment in which clients find it.
        environment: What clients find it by.
        objects: The folder of its buckets.
    """

    scheme: str
    endpoint_variable: str

    def __init__(self, directory: Path) -> None:
        """Start the store and wait for it.

        Args:
            directory: The objects and the log.

        Raises:
            ConfigError: If its program has not been fetched, or does not come up.
        """
        super().__init__(directory)
        self.objects = self._processes.directory / "objects"
        self.objects.mkdir(exist_ok=True)
        [self._port] = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{self._port}"
        self.environment = {self.endpoint_variable: self.endpoint, **self._clients_environment()}
        self._process = self._start()

    def create_bucket(self, name: str) -> None:
        """Make an empty bucket; a folder is one to this store."""
        (self.objects / name).mkdir()

    def kill(self) -> None:
        """End the store as a crash would; what was stored stays."""
        self._processes.kill(self._process)

    def restart(self) -> None:
        """Start the store again at the same endpoint, over the same objects."""
        self._process = self._start()

    @abstractmethod
    def _clients_environment(self) -> dict[str, str]:
        """Return what clients need beside the endpoint."""

    @abstractmethod
    def _start_program(self) -> Started:
        """Start the program; it need not answer yet."""

    def _start(self) -> Started:
        try:
            process = self._start_program()
            self._processes.wait_ready(lambda: answers(self._port), "the object store")
        except BaseException:
            self._processes.stop()
            raise
        return process
