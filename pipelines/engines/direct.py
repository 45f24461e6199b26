"""This machine, without any engine: units go through a flow in this process, without Beam.

Units use the threads of the native core. Worker processes of Beam can be used as well:
`-- --direct_running_mode=multi_processing --direct_num_workers=2`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.units import Unit
from transforms.storage.folder import OutputFolder
from transforms.units.flow import Flow, run_flow


@dataclass(frozen=True)
class DirectEngine:
    """Runs flows in this process."""

    name: str = "local"

    def describe(self) -> str:
        """Return what flows run with, in a line."""
        return f"{self.name}: in this process"

    def run(self, flow: Flow, units: Sequence[Unit], *, out: OutputFolder, label: str) -> None:
        """Send units through a flow; a step that fails raises its error.

        Args:
            flow: The steps.
            units: What goes through them.
            out: The output folder; needs no plan in it.
            label: Names the job, where there is an engine to show it.
        """
        deque(run_flow(flow, units), maxlen=0)
