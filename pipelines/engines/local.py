"""This machine by the runner that Beam has built in, where the user gives options for Beam: worker processes.

Beam's own worker threads are not used, because with two of them and large batches, elements of a GroupByKey can arrive
cut in two.
"""

from __future__ import annotations

from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineRunner

from pipelines.engines.config import EngineConfig
from pipelines.engines.engine import Engine


class Local(Engine):
    """The runner that Beam has built in."""

    def __init__(self, config: EngineConfig) -> None:
        """Take one worker."""
        self.flags = ["--direct_num_workers=1", "--direct_running_mode=in_memory"]

    def runner(self) -> PipelineRunner:
        """Return a runner."""
        return FnApiRunner()
