"""The receipts of a scan: of documents shards, and of the merged counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.errors import IntegrityError
from schemas.units import UnitReceipt
from transforms.scan.kinds import PARTS


@dataclass(frozen=True, kw_only=True)
class ScanReceipts:
    """The receipts of a scan.

    Attributes:
        shards: One for each documents shard; each commits partial counts.
        merged: Commits the merged counts, from which the tokenizer is built.
    """

    shards: list[UnitReceipt]
    merged: UnitReceipt


def split_receipts(receipts: Sequence[UnitReceipt], *, where: str) -> ScanReceipts:
    """Return receipts of scan units, in any order, as the receipts of shards and the one of the merged counts.

    Raises:
        IntegrityError: If not exactly one is of merged counts.
    """
    merged = [receipt for receipt in receipts if not receipt.outputs[0].path.startswith(f"{PARTS}/")]
    if len(merged) != 1:
        raise IntegrityError(
            f"{where}: {len(merged)} receipts of merged counts, where there should be one; run `cppmill scan` again"
        )
    return ScanReceipts(shards=[receipt for receipt in receipts if receipt != merged[0]], merged=merged[0])
