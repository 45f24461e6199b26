"""The verify program: a finished run or a trial against its receipt, an export against its manifest."""

from __future__ import annotations

import os
from typing import Literal

from schemas.units import EXPORT_FOLDERS
from transforms.records.manifests import MANIFEST, verify_export
from transforms.records.receipts import RECEIPT
from transforms.records.trials import is_trial, verify_trial
from transforms.records.verification import verify_run
from transforms.storage.folder import OutputFolder


def verify(out: str) -> list[str]:
    """Return every difference between OUT, a path or a URL, and its receipt or manifest; empty if there is none."""
    folder = OutputFolder(out)
    if record(out) == "manifest":
        return verify_export(folder)
    return verify_trial(folder) if is_trial(folder) else verify_run(folder, threads=os.cpu_count() or 1)


def record(out: str) -> Literal["receipt", "manifest"]:
    """Return the record of a folder: the manifest of an export, finished or not, else the receipt."""
    folder = OutputFolder(out)
    unfinished = not folder.exists(RECEIPT) and any(any(folder.files(name)) for name in EXPORT_FOLDERS)
    return "manifest" if unfinished or folder.exists(MANIFEST) else "receipt"
