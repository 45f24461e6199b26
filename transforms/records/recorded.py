"""What the record of a finished folder says of its files, for a command that goes on from there, and what it proves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from hashlib import sha256
from typing import Any

from schemas.errors import IntegrityError
from schemas.units import RECEIPT_FOLDERS, OutputFile, Stage, UnitReceipt, is_unit_receipt
from transforms.records import manifests, receipts
from transforms.records.record import MALFORMED, check_record
from transforms.storage.folder import SET_ASIDE, OutputFolder

_RECORDS: dict[str, tuple[Callable[[OutputFolder], dict[str, Any] | None], Callable[[dict[str, Any]], dict[str, str]]]]
_RECORDS = {
    receipts.RECEIPT: (receipts.find_receipt, receipts.named_files),
    manifests.MANIFEST: (manifests.read_manifest, manifests.named_files),
}
"""How the record of a run and that of an export are read, and the files that they name."""


def recorded_files(out: OutputFolder) -> dict[str, str]:
    """Return the SHA-256 of every file that the record of OUT names, by path.

    Empty without a record, and for one that was changed: it vouches for nothing.
    """
    for name, (read, files) in _RECORDS.items():
        try:
            record = read(out)
            if record is not None and not any(check_record(out, name, record)):
                return files(record)
        except (IntegrityError, *MALFORMED):
            continue  # `verify` says what is wrong with it
    return {}


def find_whole_receipt(out: OutputFolder) -> dict[str, Any] | None:
    """Return the receipt of the run in OUT; None without one, and for one that was changed: it vouches for nothing."""
    try:
        receipt = receipts.find_receipt(out)
        return None if receipt is None or any(check_record(out, receipts.RECEIPT, receipt)) else receipt
    except (IntegrityError, *MALFORMED):
        return None  # `verify` says what is wrong with it


def set_aside_receipt(out: OutputFolder) -> str | None:
    """Set the receipt of the run aside if it is damaged, so that a run makes it again; only for the holder of the lock.

    Returns:
        What is wrong with it, in a line; None if nothing is, or if there is none.
    """
    advice = f"it was set aside in {SET_ASIDE}, and a run makes it again"
    try:
        receipt = receipts.find_receipt(out, advice=advice)
        problem = next(check_record(out, receipts.RECEIPT, receipt), None) if receipt is not None else None
        line = problem and f"{problem}; {advice}"
    except IntegrityError as error:
        line = str(error)
    if line is not None:
        out.set_aside(receipts.RECEIPT)
    return line


def restore_build_receipt(
    out: OutputFolder, recorded: Mapping[str, str], *, beside: Collection[str] = ()
) -> str | None:
    """Make the receipt of the build again if it is damaged or gone, and the record proves that it is the same.

    A build is not run again for it, because ids may move. Only for the holder of the lock.

    Args:
        out: The run's folder.
        recorded: SHA-256 by path of the files that the record of the run names.
        beside: Files of the tokenizer's folder that a build does not count as its own.

    Returns:
        What was done, in a line; None if nothing was, or nothing could be.
    """
    name = next((name for name in recorded if is_unit_receipt(name, Stage.BUILD)), None)
    if name is None or out.digest(name) == recorded[name]:
        return None
    folder, parts = RECEIPT_FOLDERS[Stage.BUILD], RECEIPT_FOLDERS[Stage.SCAN]
    made = sorted(path for path in recorded if path.startswith(f"{folder}/") and path not in (name, *beside))
    if not all(map(out.exists, made)):
        return None
    receipt = UnitReceipt(
        stage=Stage.BUILD,
        key=name.removeprefix(f"{folder}/_unit-").removesuffix(".json"),
        outputs=tuple(_describe(out, path, recorded[path]) for path in made),
        totals={},
        inputs={path: sha for path, sha in recorded.items() if path.startswith("counts/") and parts not in path},
    )
    data = receipt.to_bytes()
    if sha256(data).hexdigest() != recorded[name]:
        return None
    if out.exists(name):
        out.publish_bytes(f"{SET_ASIDE}/{name}", out.read_bytes(name))
    out.publish_bytes(name, data)
    return f"{out.where(name)}: damaged or gone; made again from the record of the run, which proves it"


def _describe(out: OutputFolder, path: str, sha: str) -> OutputFile:
    return OutputFile(path=path, sha256=sha, num_bytes=out.describe(path).num_bytes, rows=0)
