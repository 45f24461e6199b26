"""A stand-in for Google's Secret Manager: of its REST API, the one call that reads a version of a secret."""

from __future__ import annotations

import base64
import json

from google_crc32c import value as crc32c

from tests.json_server import JsonServer

NAME = "projects/p/secrets/s3"
REFUSED = "projects/p/secrets/refused"


class SecretService(JsonServer):
    """The service, with one secret that may be read and one that may not; a context manager that stops it.

    Attributes:
        environment: What leads Google's client to it, and what keeps it from asking for a machine of Google's.
        asked: The paths that were asked for.
    """

    def __init__(self, secret: dict[str, str]) -> None:
        self._payload = json.dumps(secret).encode()
        self.asked: list[str] = []
        super().__init__(self._answer)
        self.environment = {"CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"http://127.0.0.1:{self.port}/"}

    def _answer(self, _method: str, path: str, _sent: object) -> tuple[int, dict[str, object]]:
        self.asked.append(path)
        name, _, method = path.removeprefix("/v1/").partition(":")
        if name == f"{REFUSED}/versions/latest":
            return 403, _error(403, "PERMISSION_DENIED", "Permission 'secretmanager.versions.access' denied")
        if name != f"{NAME}/versions/latest" or method.partition("?")[0] != "access":
            return 404, _error(404, "NOT_FOUND", f"Secret [{name}] not found or has no versions.")
        data = {"data": base64.b64encode(self._payload).decode(), "dataCrc32c": str(crc32c(self._payload))}
        return 200, {"name": f"{NAME}/versions/1", "payload": data}


def _error(code: int, status: str, message: str) -> dict[str, object]:
    return {"error": {"code": code, "status": status, "message": message}}
