"""A stand-in for Google's Secret Manager: of its REST API, the one call that reads a version of a secret."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from typing import Self

from google_crc32c import value as crc32c

NAME = "projects/p/secrets/s3"
REFUSED = "projects/p/secrets/refused"


class SecretService:
    """The service, with one secret that may be read and one that may not; a context manager that stops it.

    Attributes:
        environment: What leads Google's client to it, and what keeps it from asking for a machine of Google's.
        asked: The paths that were asked for.
    """

    def __init__(self, secret: dict[str, str]) -> None:
        self._payload = json.dumps(secret).encode()
        self.asked: list[str] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        endpoint = f"http://127.0.0.1:{self._server.server_address[1]}/"
        self.environment = {"CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": endpoint}
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[int, dict[str, object]]:
        """Return the status and the body for a path."""
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


def _handler(service: SecretService) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = service.answer(self.path)
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
