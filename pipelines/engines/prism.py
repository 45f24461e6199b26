"""Prism, Beam's small engine in one process, with one worker in this one.

It is for trying a pipeline on another engine: it listens on all interfaces and keeps what it shuffles in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from apache_beam.options.pipeline_options import PrismRunnerOptions
from apache_beam.runners.portability.prism_runner import PrismJobServer, PrismRunner
from apache_beam.runners.runner import PipelineRunner

from pipelines.engines.config import EngineConfig
from pipelines.engines.engine import Engine, make_options
from pipelines.engines.job_server import HeldJobServer, engine_flag, missing_file, with_job_server


class Prism(Engine):
    """Prism, started for a command."""

    def __init__(self, config: EngineConfig) -> None:
        """Take the fetched program: without it Beam would download one."""
        self.flags = [*engine_flag("--prism_location", "prism"), "--environment_type=LOOPBACK"]
        self._options = make_options(config, self.flags)
        self._location = self._options.view_as(PrismRunnerOptions).prism_location
        self._server = HeldJobServer(lambda: PrismJobServer(self._options))

    def missing(self) -> Iterator[str]:
        """Yield what keeps it from running."""
        yield from missing_file("--prism_location", self._location, "prism")

    def runner(self) -> PipelineRunner:
        """Return a runner on the one Prism of this command."""
        return with_job_server(PrismRunner(), self._server)

    def stop(self) -> None:
        """Stop Prism."""
        self._server.stop()
