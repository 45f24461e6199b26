"""Job servers: programs that take a pipeline and let their engine run it.

One is started for a command, at its first pipeline, and serves all of them. Beam's own wrapper is not used: it starts a
server for each pipeline, and on Ctrl-C it stops the server before we could cancel the job.
"""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apache_beam.options.pipeline_options import JobServerOptions, PipelineOptions
from apache_beam.runners.portability import job_server
from apache_beam.runners.portability.portable_runner import PortableRunner

from pipelines.engines.cache import engine_path
from schemas.errors import ConfigError
from schemas.places import is_remote

SHORT_LIVED_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a JVM that lives as long as a command and moves little: without them it spends more time compiling itself."""


class HeldJobServer(job_server.JobServer):
    """A job server that is made and started once, when Beam first asks for it, and stopped once.

    Args:
        make: Makes one of Beam's.
    """

    def __init__(self, make: Callable[[], job_server.JobServer]) -> None:
        """Start nothing yet."""
        self._make = make
        self._server: job_server.JobServer | None = None
        self._service: Any = None

    def start(self) -> Any:  # noqa: ANN401 - the stub of a gRPC service
        """Return the job service, of the server that runs if there is one."""
        if self._server is None:
            server = self._make()
            with _interruptible_children():
                self._service = server.start()
            self._server = server
        return self._service

    def stop(self) -> None:
        """Stop the server if it runs."""
        if self._server is not None:
            server, self._server = self._server, None
            server.stop()


@contextmanager
def _interruptible_children() -> Iterator[None]:
    """Let SIGINT end what is started in here, even if this process ignores it, as under `nohup` or a shell's `&`.

    Beam stops a server by SIGINT. One that inherits that it is ignored takes five seconds longer, and must be killed.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def with_job_server(runner: PortableRunner, server: HeldJobServer) -> PortableRunner:
    """Return a runner that uses a job server of ours and not one of its own."""

    def held(options: PipelineOptions) -> HeldJobServer:
        return server

    runner.default_job_server = held  # type: ignore[method-assign]
    return runner


def jvm_flags(*properties: str) -> list[str]:
    """Return the flags that start a job server's JVM with properties."""
    return [f"--job_server_jvm_properties={name}" for name in (*SHORT_LIVED_JVM, *properties)]


def engine_flag(option: str, name: str) -> list[str]:
    """Return the flag that names a fetched engine; none if it is missing, which `missing_file` reports."""
    try:
        return [f"{option}={engine_path(name)}"]
    except ConfigError:
        return []


def missing_file(option: str, value: str | None, name: str) -> Iterator[str]:
    """Yield what is wrong with the file of an engine.

    Args:
        option: The option that may name another.
        value: The option's value; None if nothing was fetched and none was given.
        name: Its key in `cache.FILES`.
    """
    if value is None:
        try:
            engine_path(name)
        except ConfigError as error:
            yield f"{error}; or name another with -- {option}=FILE"
    elif not is_remote(value) and not Path(value).is_file():
        yield f"{option}={value}: there is no such file"


def missing_java(options: PipelineOptions) -> Iterator[str]:
    """Yield what is wrong with the Java that starts a job server."""
    launcher = options.view_as(JobServerOptions).job_server_java_launcher
    if shutil.which(launcher) is None:
        yield (
            f"{launcher}: no Java to start the job server with; install Java 17 (Debian: apt-get install "
            "openjdk-17-jre-headless), or name one with -- --job_server_java_launcher=FILE"
        )
