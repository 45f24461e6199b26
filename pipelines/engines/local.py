"""This machine, without any engine: one worker in this process, whose units use the threads of the native core.

Beam's own worker threads are not used, because with two of them and large batches, elements of a GroupByKey can arrive
cut in two. Worker processes can be used: `-- --direct_running_mode=multi_processing --direct_num_workers=2`.
"""

from __future__ import annotations

from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineRunner

from pipelines.engines.config import Engine, EngineConfig


class Local(Engine):
    """The runner that Beam has built in."""

    def __init__(self, config: EngineConfig) -> None:
        """Take one worker."""
        self.flags = ["--direct_num_workers=1", "--direct_running_mode=in_memory"]

    def runner(self) -> PipelineRunner:
        """Return a runner."""
        return FnApiRunner()
