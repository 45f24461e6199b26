"""An object store with the API of Google Cloud Storage: fake-gcs-server over a folder, on 127.0.0.1."""

from __future__ import annotations

import os
from pathlib import Path

from deploy.local.processes import Service, Started, answers, free_ports
from pipelines.engines.cache import engine_path

_NAME = "fake-gcs-server"
_NOWHERE = "127.0.0.1:1"
_ATTRIBUTES = "user.metadata"
_ATTRIBUTES_SUFFIX = ".metadata"
"""Of the file beside an object's, on a file system without extended attributes."""


class GoogleStore(Service):
    """A running store; a context manager that stops it.

    Attributes:
        scheme: That of the URLs of its objects.
        endpoint: Its URL.
        endpoint_variable: The variable of the environment in which clients find it.
        environment: What clients find it by, and what keeps them from asking for a machine of Google's.
    """

    scheme = "gs"
    endpoint_variable = "STORAGE_EMULATOR_HOST"

    def __init__(self, directory: Path) -> None:
        """Start the store and wait for it.

        Args:
            directory: The objects and the log.

        Raises:
            ConfigError: If fake-gcs-server has not been fetched, or does not come up.
        """
        super().__init__(directory)
        self._objects = self._processes.directory / "objects"
        self._objects.mkdir(exist_ok=True)
        [self._port] = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{self._port}"
        self.environment = {
            self.endpoint_variable: self.endpoint,
            "NO_GCE_CHECK": "true",
            "GCE_METADATA_HOST": _NOWHERE,
            "GCE_METADATA_IP": _NOWHERE,
            "GCE_METADATA_ROOT": _NOWHERE,
        }
        self._process = self._start()

    def create_bucket(self, name: str) -> None:
        """Make an empty bucket; a folder is one to this store."""
        (self._objects / name).mkdir()

    def kill(self) -> None:
        """End the store as a crash would, but between two writes; what was stored stays.

        Killed in the middle of one, it leaves a file without attributes, and then answers each listing of the bucket
        with 404. Google's store does not.
        """
        self._processes.freeze(self._process)
        while not all(_has_attributes(file) for file in self._objects.glob("*/**/*") if file.is_file()):
            self._processes.thaw(self._process)
            self._processes.freeze(self._process)
        self._processes.kill(self._process)

    def restart(self) -> None:
        """Start the store again at the same endpoint, over the same objects."""
        self._process = self._start()

    def _start(self) -> Started:
        host = f"127.0.0.1:{self._port}"
        command = [str(engine_path("gcs")), "-scheme", "http", "-host", "127.0.0.1", "-port", str(self._port)]
        command += ["-backend", "filesystem", "-filesystem-root", str(self._objects)]
        command += ["-external-url", self.endpoint, "-public-host", host, "-log-level", "warn"]
        try:
            process = self._processes.start(_NAME, command)
            self._processes.wait_ready(lambda: answers(self._port), "the object store")
        except BaseException:
            self._processes.stop()
            raise
        return process


def _has_attributes(file: Path) -> bool:
    """Whether a file of a bucket is an object that was written to its end."""
    if file.name.endswith(_ATTRIBUTES_SUFFIX) or file.with_name(file.name + _ATTRIBUTES_SUFFIX).exists():
        return True
    try:
        return bool(os.getxattr(file, _ATTRIBUTES))
    except OSError:
        return False
