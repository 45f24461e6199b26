"""An object store that speaks S3, on this machine: versitygw over a folder, on 127.0.0.1."""

from __future__ import annotations

from deploy.local.processes import Started
from deploy.local.stores import LocalStore
from pipelines.engines.cache import engine_path

_REGION = "us-east-1"
_NAME = "versitygw"
_ACCESS_KEY, _SECRET_KEY = "cppmill", "cppmill-secret"


class ObjectStore(LocalStore):
    """A running versitygw; a context manager that stops it. Clients find it by endpoint, region and keys."""

    scheme = "s3"
    endpoint_variable = "AWS_ENDPOINT_URL"

    def _clients_environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": _ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET_KEY,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_REGION": _REGION,
        }

    def _start_program(self) -> Started:
        keys = {"ROOT_ACCESS_KEY": _ACCESS_KEY, "ROOT_SECRET_KEY": _SECRET_KEY}
        command = [str(engine_path("versitygw")), "--port", f"127.0.0.1:{self._port}", "--region", _REGION]
        command += ["--keep-alive", "--quiet"]  # S3 keeps connections, too; a log of requests is not read
        return self._processes.start(_NAME, [*command, "posix", str(self.objects)], keys)
