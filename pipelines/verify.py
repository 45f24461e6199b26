"""The verify program: a finished run against its receipt."""

from __future__ import annotations

import os
from pathlib import Path

from transforms.storage import OutputFolder
from transforms.verification import verify_run


def verify(out: Path) -> list[str]:
    """Return every difference between OUT and its receipt; empty if there is none."""
    return verify_run(OutputFolder(out.absolute()), threads=os.cpu_count() or 1)
