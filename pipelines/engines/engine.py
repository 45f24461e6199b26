"""What all engines of Beam have: methods, and Beam's options made of their flags and the user's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineRunner

from pipelines.engines.config import EngineConfig
from schemas.errors import CppmillError


def make_options(config: EngineConfig, flags: Sequence[str] = ()) -> PipelineOptions:
    """Return Beam's options: an engine's flags, then the user's."""
    return PipelineOptions([*flags, *config.beam_options])


class Engine(ABC):
    """What is particular to an engine.

    Attributes:
        flags: The options of Beam that it sets; the user's win.
    """

    flags: list[str]

    def missing(self) -> Iterator[str]:
        """Yield a line for each problem that keeps a pipeline from being run, with what to do."""
        yield from ()

    @abstractmethod
    def runner(self) -> PipelineRunner:
        """Return the runner of one pipeline."""

    def explain(self, error: Exception) -> CppmillError | None:
        """Return what an error of the engine's client means to the user; None for an error of the pipeline's steps."""
        return None

    def cancel(self, job_name: str) -> None:  # noqa: B027 - most jobs end with what runs them
        """End a job that runs elsewhere, where that takes more than Beam does."""

    def stop(self) -> None:  # noqa: B027
        """Stop what was started here."""
