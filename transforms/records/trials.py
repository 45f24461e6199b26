"""The receipt of a trial, and its verification: tokenizers, texts, options and work, and each file with its SHA-256."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from schemas.digests import canonical_json, parse_json, same_json, with_digest
from schemas.errors import IntegrityError
from schemas.units import OutputFile
from transforms.records.receipts import RECEIPT
from transforms.records.record import MALFORMED, check_files, check_record, malformed, read_record
from transforms.storage.folder import OutputFolder

TRIAL_FORMAT = "cppmill-trial-1"

RESULT = "trial.json"
"""The file of the figures."""

_FIGURES = {"flops", "tokenizers", "cells"}
_KEYS = {"format", "text", "held_out", "tokenizers", "options", "flops", "device", "threads", "code", "files", "digest"}


def make_trial_receipt(facts: Mapping[str, Any], files: Sequence[OutputFile]) -> dict[str, Any]:
    """Return the receipt of a trial as JSON values, with its own digest.

    Args:
        facts: What the figures were made from, JSON values.
        files: The files with the figures.
    """
    named = [asdict(file) for file in sorted(files, key=lambda file: file.path)]
    receipt = {"format": TRIAL_FORMAT, **facts, "files": named}
    return with_digest(receipt)


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
        differences = [*check_record(out, RECEIPT, receipt), *check_files(out, RECEIPT, files, kind="receipt")]
        return differences or [*_check_facts(out, receipt), *_check_figures(out, receipt)]
    except IntegrityError as error:
        return [str(error)]
    except MALFORMED as error:
        return [malformed(out, RECEIPT, error, kind="receipt")]


def _check_facts(out: OutputFolder, receipt: Mapping[str, Any]) -> Iterator[str]:
    """Check that a receipt has the keys that a trial writes, and says of each file what it is."""
    if receipt.keys() != _KEYS:
        yield f"{out.where(RECEIPT)}: its keys are {', '.join(sorted(receipt))}"
    said = [OutputFile(**file) for file in receipt["files"]]
    found = [out.describe(file.path, rows=0) for file in said]
    if said != found or [file.path for file in said] != sorted({file.path for file in said}):
        yield f"{out.where(RECEIPT)}: its files have other sizes than it says, or it does not name each once"


def _check_figures(out: OutputFolder, receipt: Mapping[str, Any]) -> Iterator[str]:
    """Check that the figures are laid out as a trial writes them, and are of the tokenizers and work of the receipt."""
    where, data = out.where(RESULT), out.read_bytes(RESULT)
    figures = parse_json(data)
    if figures.keys() != _FIGURES or data != canonical_json(figures):
        yield f"{where}: it is not canonical JSON with the keys {', '.join(sorted(_FIGURES))}"
        return
    if not same_json(figures["flops"], receipt["flops"]):
        yield f"{where}: its flops are {figures['flops']}, the receipt says {receipt['flops']}"
    rows, names = figures["tokenizers"], [one["name"] for one in receipt["tokenizers"]]
    found = [{key: row.get(key) for key in one} for row, one in zip(rows, receipt["tokenizers"], strict=False)]
    if len(rows) != len(names) or not same_json(found, receipt["tokenizers"]):
        yield f"{where}: its tokenizers are not those of the receipt"
    cells = [(cell["seed"], names.index(cell["tokenizer"])) for cell in figures["cells"]]
    if cells != [(seed, number) for seed in range(len(cells) // len(names)) for number in range(len(names))]:
        yield f"{where}: its cells are not one for each seed and tokenizer"
