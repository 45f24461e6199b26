"""The receipt of a trial, and its verification: tokenizers, texts, options and work, and each file with its SHA-256."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from schemas.digests import canonical_json, parse_json, sha256_json
from schemas.errors import IntegrityError
from schemas.units import OutputFile
from transforms.records.receipts import RECEIPT
from transforms.records.record import MALFORMED, check_files, check_record, malformed, read_record
from transforms.storage.folder import OutputFolder

TRIAL_FORMAT = "cppmill-trial-1"


def make_trial_receipt(facts: Mapping[str, Any], files: Sequence[OutputFile]) -> dict[str, Any]:
    """Return the receipt of a trial as JSON values, with its own digest.

    Args:
        facts: What the figures were made from, JSON values.
        files: The files with the figures.
    """
    named = [asdict(file) for file in sorted(files, key=lambda file: file.path)]
    receipt = {"format": TRIAL_FORMAT, **facts, "files": named}
    return {**receipt, "digest": sha256_json(receipt)}


def publish_trial_receipt(out: OutputFolder, receipt: dict[str, Any]) -> None:
    """Publish the receipt of a trial, after its files."""
    out.publish_bytes(RECEIPT, canonical_json(receipt))


def is_trial(out: OutputFolder) -> bool:
    """Tell whether the receipt of a folder is that of a trial."""
    try:
        receipt = parse_json(out.read_bytes(RECEIPT))
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(receipt, dict) and receipt.get("format") == TRIAL_FORMAT


def verify_trial(out: OutputFolder) -> list[str]:
    """Return every difference between a trial and its receipt, by reading every byte."""
    try:
        receipt = (
            read_record(out, RECEIPT, kind="receipt", record_format=TRIAL_FORMAT, advice="run the trial again") or {}
        )
        files = {file["path"]: file["sha256"] for file in receipt["files"]}
        return [*check_record(out, RECEIPT, receipt), *check_files(out, RECEIPT, files, kind="receipt")]
    except IntegrityError as error:
        return [str(error)]
    except MALFORMED as error:
        return [malformed(out, RECEIPT, error, kind="receipt")]
