"""The configuration of an engine: where it works, and what the user gave for Beam."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


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

    def gives(self, option: str) -> bool:
        """Return whether the user gave an option.

        Example:
            >>> config = EngineConfig(out="o", log_folder=Path("l"), cpus=1, beam_options=("--parallelism=2",))
            >>> config.gives("--parallelism"), config.gives("--environment_type")
            (True, False)
        """
        return any(re.fullmatch(rf"{re.escape(option)}(=.*)?", given, re.S) for given in self.beam_options)
