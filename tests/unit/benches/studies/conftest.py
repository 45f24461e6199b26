"""A scanned tree for the studies of vocabularies, made once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from benches.lib.trainers import LINE_PATTERN, PATTERN
from benches.studies.ablations import scanned
from pipelines.console.progress import Reporters

PARTS = ("array", "compute", "util")
"""Folders of pyarrow's headers with text enough for 13,000 ids."""


def make_scan(folder: Path) -> None:
    """Copy the headers, then ingest and scan them."""
    for part in PARTS:
        shutil.copytree(Path(pa.get_include()) / "arrow" / part, folder / "sources" / part)
    scanned(folder / "sources", folder, (PATTERN, LINE_PATTERN), 1, Reporters())


@pytest.fixture(scope="session")
def scanned_run(prepared: Callable[..., Path]) -> Path:
    """The output folder of a scan of pyarrow's headers, with words and lines counted."""
    return prepared("scanned-arrow", make_scan) / "run"
