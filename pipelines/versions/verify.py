"""The verify program: a finished run or a trial against its receipt, an export against its manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal

from pipelines.stages.vocabulary import recorded_digest, travelled_revision
from schemas.units import EXPORT_FOLDERS
from tokenizer_build.lock import RELEASES_NAME
from tokenizer_build.vocabulary import VOCABULARY_JSON
from transforms.records.manifests import MANIFEST, verify_export
from transforms.records.receipts import RECEIPT, read_receipt
from transforms.records.trials import is_trial, verify_trial
from transforms.records.verification import verify_run
from transforms.storage.folder import OutputFolder


def verify(out: str) -> list[str]:
    """Return every difference between OUT, a path or a URL, and its receipt or manifest; empty if there is none."""
    folder = OutputFolder(out)
    if record(out) == "manifest":
        return verify_export(folder)
    if is_trial(folder):
        return verify_trial(folder)
    return verify_run(folder, threads=os.cpu_count() or 1) or list(_check_vocabulary(folder))


def _check_vocabulary(out: OutputFolder) -> Iterator[str]:
    """Compare what an intact receipt says of the tokenizer's vocabulary and release with the files that say so."""
    facts = read_receipt(out)["tokenizer"]
    recorded = recorded_digest(out)
    found = {recorded, facts.get("vocabulary"), out.digest(f"tokenizer/{VOCABULARY_JSON}") or recorded}
    if len(found) > 1:
        shown = ", ".join(sorted(str(digest) for digest in found))
        yield f"{out.where('tokenizer')}: receipt, manifest and {VOCABULARY_JSON} differ on the vocabulary: {shown}"
    if out.exists(f"tokenizer/{RELEASES_NAME}"):
        revision = travelled_revision(out, facts["digest"])
        if revision != facts["revision"]:
            where = out.where(f"tokenizer/{RELEASES_NAME}")
            yield f"{where}: it says revision {revision}, the receipt says {facts['revision']}"


def record(out: str) -> Literal["receipt", "manifest"]:
    """Return the record of a folder: the manifest of an export, finished or not, else the receipt."""
    folder = OutputFolder(out)
    unfinished = not folder.exists(RECEIPT) and any(any(folder.files(name)) for name in EXPORT_FOLDERS)
    return "manifest" if unfinished or folder.exists(MANIFEST) else "receipt"
