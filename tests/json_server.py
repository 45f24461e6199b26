"""A server of JSON over HTTP, in a thread, for the tests that need a service's answers."""

import http.server
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

Answer = Callable[[str, str, Any], tuple[int, Any]]
"""Takes the method, the path and what was sent (None if nothing was), and returns the status and what is answered."""


class JsonServer:
    """The server, on a free port of 127.0.0.1; a context manager that stops it.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, answer: Answer) -> None:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer))
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(answer: Answer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        wbufsize = -1  # the whole answer is sent at once

        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, content = answer(self.command, self.path, json.loads(sent) if sent else None)
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # of a caller that has read the status alone
                self.wfile.write(body)
                self.wfile.flush()

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
