"""Opening an engine: this process itself, or one of Beam, which takes seconds to load and is loaded only then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from pipelines.engines.config import EngineConfig
from pipelines.engines.direct import DirectEngine
from schemas.units import Unit
from transforms.storage.folder import OutputFolder
from transforms.units.flow import Flow


class OpenEngine(Protocol):
    """An engine that is ready to run flows.

    Attributes:
        name: Its name.
    """

    @property
    def name(self) -> str:
        """Its name."""

    def describe(self) -> str:
        """Return the options that flows run with, in a line."""

    def run(self, flow: Flow, units: Sequence[Unit], *, out: OutputFolder, label: str) -> None:
        """Send units through a flow, and wait for the end.

        Args:
            flow: The steps.
            units: What goes through them.
            out: The output folder.
            label: Names the job.

        Raises:
            CppmillError: If the engine refuses the job or ends it for a reason of its own.
            Exception: What a step raised; from another process a RuntimeError with its text.
        """


@contextmanager
def open_engine(name: str, config: EngineConfig) -> Iterator[OpenEngine]:
    """Check that an engine can run flows, and stop what it started at the end of the block.

    Raises:
        ConfigError: For options that Beam does not know; with a line for everything that is missing.
    """
    if name == "local" and not config.beam_options:
        yield DirectEngine()
        return
    from pipelines.engines.beam_execution import open_beam_engine

    with open_beam_engine(name, config) as engine:
        yield engine
