"""Runs that write to an object store which fails: errors, lost connections, cut bodies, listings of the past.

The store is a real one on this machine, versitygw. Commands reach it through a proxy, which counts requests in peace
and makes one of them fail, or some, when it is asked to. A request may fail before the store sees it, or after it has
done what was asked. Needs what `make engines` fetches; without it there are no such rounds.
"""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

from deploy.local.s3 import ObjectStore
from pipelines.engines.cache import engine_path
from schemas.errors import ConfigError
from tests.chaos.corpus import write_corpus
from tests.chaos.jobs import ANYTHING, difference, tree
from tests.processes import ProcessServer

BUCKET = "chaos"
FAULTS = ("503", "500 after it", "connection lost", "connection lost after it", "body cut", "403 from then on", "stale")
MAX_IN_A_ROW = 3
"""Requests that fail one after the other: more would only take longer, as the client waits before it tries again."""


@dataclass(frozen=True)
class StoreFault:
    """What happens to the requests of a kind, from the n-th on, so many times."""

    name: str
    kind: str
    place: int
    times: int

    def __str__(self) -> str:
        """Return it for people."""
        times = "until the end" if self.times > MAX_IN_A_ROW else f"{self.times} times"
        return f"{self.name} at {self.kind} {self.place}, {times}"


def choose_store_fault(random: Random, requests: Counter[str]) -> StoreFault:
    """Return a fault that meets a command which makes these requests; rare ones as often as frequent ones."""
    name = random.choice([name for name in FAULTS if name != "stale" or requests["LIST"]])
    kinds = {"stale": ["LIST"], "body cut": ["GET"] if requests["GET"] else sorted(requests)}
    kind = random.choice(kinds.get(name, sorted(requests)))
    lasting = name in ("stale", "403 from then on")
    return StoreFault(
        name, kind, random.randint(1, requests[kind]), 1 << 30 if lasting else random.randint(1, MAX_IN_A_ROW)
    )


@dataclass
class Proxy:
    """Passes requests on to a store, and makes some fail.

    Attributes:
        port: That of the store.
        fault: What fails; nothing in peace.
        requests: How many requests of each kind there were since the fault was set.
    """

    port: int
    fault: StoreFault | None = None
    requests: Counter[str] = field(default_factory=Counter)
    _listings: dict[str, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def set(self, fault: StoreFault | None) -> None:
        """Begin to count anew, with a fault or in peace."""
        with self._lock:
            self.fault, self.requests, self._listings = fault, Counter(), {}

    def meets(self, kind: str) -> str:
        """Count a request and return the name of the fault that it meets, empty if none."""
        with self._lock:
            self.requests[kind] += 1
            fault = self.fault
            if fault is None:
                return ""
            if fault.name == "403 from then on" and self.requests[fault.kind] >= fault.place:
                return fault.name
            after = self.requests[kind] - fault.place
            return fault.name if kind == fault.kind and 0 <= after < fault.times else ""

    def listing(self, target: str, answer: Any, *, is_stale: bool) -> Any:
        """Return an answer to a listing: the first one that there was for it, if it is stale."""
        with self._lock:
            first = self._listings.setdefault(target, answer)
            return first if is_stale else answer

    def serve(self) -> ThreadingHTTPServer:
        """Start to serve in threads, and return the server."""
        handler = type("Handler", (_Handler,), {"proxy": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    proxy: Proxy
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _pass_on(self) -> None:
        kind = "LIST" if self.command == "GET" and "list-type=2" in self.path else self.command
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        met = self.proxy.meets(kind)
        if met == "connection lost":
            self._end()
            return
        if met in ("503", "403 from then on"):
            self._answer((int(met[:3]), [], _error("SlowDown" if met == "503" else "AccessDenied")))
            return
        answer = self._forward(body)
        if kind == "LIST":
            answer = self.proxy.listing(self.path, answer, is_stale=met == "stale")
        if met == "connection lost after it":
            self._end()
            return
        self._answer((500, [], _error("InternalError")) if met == "500 after it" else answer, cut=met == "body cut")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection("127.0.0.1", self.proxy.port, timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():  # the host too: it is signed
            if name.lower() not in ("connection", "expect"):
                connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        answer = response.status, response.getheaders(), response.read()
        connection.close()
        return answer

    def _answer(self, answer: tuple[int, list[tuple[str, str]], bytes], *, cut: bool = False) -> None:
        status, headers, body = answer
        is_head = self.command == "HEAD"
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection") and (
                is_head or name.lower() != "content-length"
            ):
                self.send_header(name, value)
        if not is_head:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not is_head:
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self._end()

    def _end(self) -> None:
        """Close the connection."""
        self.close_connection = True


def _error(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>chaos</Message></Error>".encode()


class StoreRounds:
    """Rounds on an object store; a context manager that stops it."""

    def __init__(self, folder: Path, processes: ProcessServer, environment: dict[str, str], seconds: float) -> None:
        """Start the store and the proxy.

        Args:
            folder: Where the store keeps its objects.
            processes: Starts commands.
            environment: Theirs.
            seconds: How long a command may take.
        """
        self._stack = ExitStack()
        store = self._stack.enter_context(ObjectStore(folder))
        store.create_bucket(BUCKET)
        self._bucket = folder / "objects" / BUCKET
        self._proxy = Proxy(int(store.endpoint.rpartition(":")[2]))
        server = self._proxy.serve()
        self._stack.callback(server.shutdown)
        endpoint = f"http://127.0.0.1:{server.server_port}"
        self._environment = {**environment, **store.environment, store.endpoint_variable: endpoint}
        self._processes, self._seconds = processes, seconds

    def __enter__(self) -> StoreRounds:
        """Return the rounds."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the store."""
        self._stack.close()

    def round(self, random: Random, folder: Path, texts: list[bytes], tokenizer: Path) -> tuple[str, Iterator[str]]:
        """Return what a round does, and yield what is wrong."""
        write_corpus(folder / "corpus", random, texts)
        unit_bytes = str(random.choice((1 << 16, 1 << 18, 1 << 20)))
        words = ("run", str(folder / "corpus"), "--tokenizer", str(tokenizer), *ANYTHING, "--threads", "2")
        words += ("--unit-bytes", unit_bytes)
        code, err = self._command(*words, "--out", self._place(folder, "peace"), fault=None)
        if code:
            return "store", iter([f"in peace: exit {code}\n{err}"])
        fault = choose_store_fault(random, self._proxy.requests)
        return f"store: {fault}", self._compare(words, folder, fault)

    def _compare(self, words: tuple[str, ...], folder: Path, fault: StoreFault) -> Iterator[str]:
        """Carry out the run with a fault and again without; yield what is wrong."""
        expected, place = tree(self._bucket / folder.name / "peace"), self._place(folder, "chaos")
        chaos = self._bucket / folder.name / "chaos"
        code, err = self._command(*words, "--out", place, fault=fault)
        if code == 0 and tree(chaos) != expected:
            yield f"it said that it was done: {difference(expected, tree(chaos))}\n{err}"
        if "Traceback" in err:
            yield f"it ended in a traceback:\n{err}"
        if code:
            (chaos / "out" / ".lock").unlink(
                missing_ok=True
            )  # the lease of a command that could not release it is over
        code, err = self._command(*words, "--out", place, fault=None)
        if code:
            yield f"run again: exit {code}\n{err}"
        if tree(chaos) != expected:
            yield f"run again: {difference(expected, tree(chaos))}"
        code, err = self._command("verify", place, fault=None)
        if code:
            yield f"verify: exit {code}\n{err}"

    def _place(self, folder: Path, name: str) -> str:
        return f"s3://{BUCKET}/{folder.name}/{name}/out"

    def _command(self, *words: str, fault: StoreFault | None) -> tuple[int, str]:
        """Carry out a command; return its exit code and error output."""
        self._proxy.set(fault)
        pipe = subprocess.PIPE
        process = self._processes.command(*words, env=self._environment, stdout=pipe, stderr=pipe)
        try:
            _, err = process.communicate(self._seconds)
        finally:
            process.kill()
        return process.returncode, err


def has_store() -> bool:
    """Return whether the store is here."""
    try:
        return engine_path("versitygw").exists()
    except ConfigError:
        return False
