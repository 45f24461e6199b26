"""The page of `cppmill status --serve`: the status of a run in a browser of this machine, renewed by itself.

The server listens on the loopback address alone and answers two names: the page, and the JSON of `status --json` that
the page asks for. It writes nothing. A page of another site cannot read it: the name of the host must be one of this
machine's own (a name that was pointed here is refused), and nothing allows other origins.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pipelines.console.failures import find_failure
from pipelines.console.status import read_any_status
from pipelines.pages import render_page
from schemas.errors import ConfigError, CppmillError
from schemas.passwords import redacted

LOOPBACK = "127.0.0.1"
HOSTS = frozenset({LOOPBACK, "localhost"})

EVENTS = 20
"""How many of the last events the page shows."""

HTML, JSON = "text/html; charset=utf-8", "application/json"


class StatusServer(ThreadingHTTPServer):
    """Serves the status of a run or a store.

    Args:
        place: Its folder or URL.
        port: Where to listen; 0 for a free one.

    Raises:
        ConfigError: If the port cannot be listened on.
    """

    daemon_threads = True

    def __init__(self, place: str, *, port: int = 0) -> None:
        """Begin to listen."""
        self.place = place
        self.page = render_page("live.html.j2", title=redacted(place)).encode("utf-8", "backslashreplace")
        self.policy = content_policy(self.page.decode())
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            advice = "name another, or leave it out for a free one"
            raise ConfigError(f"--port {port}: {error.strerror}; {advice}") from error

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that went away, or sent nothing for too long; else what the library says."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # as it came

    def answer(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        """Return status, type and content for a path."""
        if path == "/":
            return HTTPStatus.OK, HTML, self.page
        if path != "/status.json":
            return HTTPStatus.NOT_FOUND, JSON, b"{}"
        try:
            found, status = read_any_status(self.place, events=EVENTS).to_json(), HTTPStatus.OK
        except CppmillError as error:
            found, status = find_failure(error).to_json(), HTTPStatus.SERVICE_UNAVAILABLE
        return status, JSON, redacted(json.dumps(found)).encode()


class _Handler(BaseHTTPRequestHandler):
    """Answers a request."""

    server: StatusServer
    server_version, sys_version = "cppmill", ""
    timeout = 30  # seconds for a request, so that one that never ends holds no thread

    def do_GET(self) -> None:
        """Answer, unless the request is for a host that is not this machine."""
        if self.headers.get("Host", "").partition(":")[0] not in HOSTS:  # browsers leave the port 80 out
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        status, kind, content = self.server.answer(self.path)
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": self.server.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - the library's signature
        """Say nothing about requests."""


def content_policy(page: str) -> str:
    """Return a policy under which a page runs its own script and style and asks its server for data, and nothing else.

    Example:
        >>> content_policy("<style>p { }</style>").partition(";")[0]
        "default-src 'none'"
    """
    allowed = {f"{tag}-src": _digests(page, tag) for tag in ("style", "script")}
    rules = {"default-src": "'none'", **allowed, "connect-src": "'self'", "img-src": "data:"}
    rules |= dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "'none'")
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _digests(page: str, tag: str) -> str:
    """Return what allows the contents of a page's elements, and no other."""
    contents = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in contents]
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
