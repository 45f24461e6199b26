"""The verify program: a finished run against its receipt."""

from __future__ import annotations

import os

from transforms.storage import OutputFolder
from transforms.verification import verify_run


def verify(out: str) -> list[str]:
    """Return every difference between OUT, a path or a URL, and its receipt; empty if there is none."""
    return verify_run(OutputFolder(out), threads=os.cpu_count() or 1)
