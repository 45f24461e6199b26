"""What all engines have: methods, and a configuration that combines their flags and the user's to Beam's options."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineRunner

from schemas.errors import CppmillError


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """The configuration of an engine.

    Attributes:
        out: The output folder, as messages name it.
        log_folder: Where worker processes write their logs.
        cpus: How many CPUs of this machine may be used.
        beam_options: What the user gave for Beam; these win over what an engine sets.
    """

    out: str
    log_folder: Path
    cpus: int
    beam_options: tuple[str, ...] = ()

    def options(self, flags: Sequence[str] = ()) -> PipelineOptions:
        """Return Beam's options: an engine's flags, then the user's."""
        return PipelineOptions([*flags, *self.beam_options])

    def gives(self, option: str) -> bool:
        """Return whether the user gave an option.

        Example:
            >>> config = EngineConfig(out="o", log_folder=Path("l"), cpus=1, beam_options=("--parallelism=2",))
            >>> config.gives("--parallelism"), config.gives("--environment_type")
            (True, False)
        """
        return any(re.fullmatch(rf"{re.escape(option)}(=.*)?", given, re.S) for given in self.beam_options)


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
