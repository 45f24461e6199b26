"""The configuration of an engine, and how its own flags and the user's become Beam's options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions


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
        """Tell whether the user gave an option.

        Example:
            >>> config = EngineConfig(out="o", log_folder=Path("l"), cpus=1, beam_options=("--parallelism=2",))
            >>> config.gives("--parallelism"), config.gives("--environment_type")
            (True, False)
        """
        return any(re.fullmatch(rf"{re.escape(option)}(=.*)?", given, re.S) for given in self.beam_options)


def show_flags(flags: Sequence[str]) -> str:
    """Return flags as they could be typed in a shell.

    Example:
        >>> show_flags(["--parallelism=2", "--environment_config={}"])
        "--parallelism=2 '--environment_config={}'"
    """
    return shlex.join(flags)
