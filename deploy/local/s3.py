"""An object store that speaks S3, on this machine: versitygw over a folder, on 127.0.0.1."""

from __future__ import annotations

from pathlib import Path

from deploy.local.processes import Service, Started, answers, free_ports
from pipelines.engines.cache import engine_path

_REGION = "us-east-1"
_NAME = "versitygw"
_ACCESS_KEY, _SECRET_KEY = "cppmill", "cppmill-secret"


class ObjectStore(Service):
    """A running object store; a context manager that stops it.

    Attributes:
        scheme: That of the URLs of its objects.
        endpoint: Its URL.
        endpoint_variable: The variable of the environment in which clients find it.
        environment: What clients find it by: the endpoint, the region and the keys.
    """

    scheme = "s3"
    endpoint_variable = "AWS_ENDPOINT_URL"

    def __init__(self, directory: Path) -> None:
        """Start the store and wait for it.

        Args:
            directory: The objects and the log.

        Raises:
            ConfigError: If versitygw has not been fetched, or does not come up.
        """
        super().__init__(directory)
        self._objects = self._processes.directory / "objects"
        self._objects.mkdir(exist_ok=True)
        [self._port] = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{self._port}"
        self.environment = {
            self.endpoint_variable: self.endpoint,
            "AWS_ACCESS_KEY_ID": _ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET_KEY,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_REGION": _REGION,
        }
        self._process = self._start()

    def create_bucket(self, name: str) -> None:
        """Make an empty bucket; a folder is one to this store."""
        (self._objects / name).mkdir()

    def kill(self) -> None:
        """End the store as a crash would; what was stored stays."""
        self._processes.kill(self._process)

    def restart(self) -> None:
        """Start the store again at the same endpoint, over the same objects."""
        self._process = self._start()

    def _start(self) -> Started:
        keys = {"ROOT_ACCESS_KEY": _ACCESS_KEY, "ROOT_SECRET_KEY": _SECRET_KEY}
        command = [str(engine_path("versitygw")), "--port", f"127.0.0.1:{self._port}", "--region", _REGION]
        command += ["--keep-alive", "--quiet"]  # S3 keeps connections, too; a log of requests is not read
        try:
            process = self._processes.start(_NAME, [*command, "posix", str(self._objects)], keys)
            self._processes.wait_ready(lambda: answers(self._port), "the object store")
        except BaseException:
            self._processes.stop()
            raise
        return process
