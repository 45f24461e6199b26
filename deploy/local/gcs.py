"""An object store with the API of Google Cloud Storage: fake-gcs-server over a folder, on 127.0.0.1."""

from __future__ import annotations

import os
from pathlib import Path

from deploy.local.processes import Started
from deploy.local.stores import LocalStore
from pipelines.engines.cache import engine_path

_NAME = "fake-gcs-server"
_NOWHERE = "127.0.0.1:1"
_ATTRIBUTES = "user.metadata"
_ATTRIBUTES_SUFFIX = ".metadata"
"""Of the file beside an object's, on a file system without extended attributes."""


class GoogleStore(LocalStore):
    """A running fake-gcs-server; a context manager that stops it. Clients are kept from asking for a Google machine."""

    scheme = "gs"
    endpoint_variable = "STORAGE_EMULATOR_HOST"

    def kill(self) -> None:
        """End the store as a crash would, but between two writes; what was stored stays.

        Killed in the middle of one, it leaves a file without attributes, and then answers each listing of the bucket
        with 404. Google's store does not.
        """
        self._processes.freeze(self._process)
        while not all(_has_attributes(file) for file in self.objects.glob("*/**/*") if file.is_file()):
            self._processes.thaw(self._process)
            self._processes.freeze(self._process)
        super().kill()

    def _clients_environment(self) -> dict[str, str]:
        return {
            "NO_GCE_CHECK": "true",
            "GCE_METADATA_HOST": _NOWHERE,
            "GCE_METADATA_IP": _NOWHERE,
            "GCE_METADATA_ROOT": _NOWHERE,
        }

    def _start_program(self) -> Started:
        command = [str(engine_path("gcs")), "-scheme", "http", "-host", "127.0.0.1", "-port", str(self._port)]
        command += ["-backend", "filesystem", "-filesystem-root", str(self.objects)]
        command += ["-external-url", self.endpoint, "-public-host", f"127.0.0.1:{self._port}", "-log-level", "warn"]
        return self._processes.start(_NAME, command)


def _has_attributes(file: Path) -> bool:
    """Whether a file of a bucket is an object that was written to its end."""
    if file.name.endswith(_ATTRIBUTES_SUFFIX) or file.with_name(file.name + _ATTRIBUTES_SUFFIX).exists():
        return True
    try:
        return bool(os.getxattr(file, _ATTRIBUTES))
    except OSError:
        return False
