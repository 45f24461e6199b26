"""What the record of a finished folder says of its files, for a command that goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schemas.errors import IntegrityError
from transforms.records import manifests, receipts
from transforms.records.record import MALFORMED, check_record
from transforms.storage.folder import OutputFolder

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
