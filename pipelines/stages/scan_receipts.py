"""The receipts of a scan: of documents shards, and of the merged counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import cppmill_core

from schemas.errors import IntegrityError
from schemas.units import Stage, UnitReceipt, unit_key
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
        IntegrityError: If not exactly one is of merged counts, or if a shard has not the kinds of counts that it has.
    """
    merged = _find_merged(receipts)
    if len(merged) != 1:
        raise IntegrityError(
            f"{where}: {len(merged)} receipts of merged counts, where there should be one; run `cppmill scan` again"
        )
    families = _families(merged[0])
    if incomplete := [receipt for receipt in receipts if _families(receipt) != families]:
        raise IntegrityError(
            f"{where}/{incomplete[0].path}: it has not the kinds of counts that were merged; restore the file, or "
            "remove it and run `cppmill scan` again"
        )
    return ScanReceipts(shards=[receipt for receipt in receipts if receipt != merged[0]], merged=merged[0])


def is_of_one_scan(receipts: Sequence[UnitReceipt]) -> bool:
    """Return whether receipts of scan units are all of one scan: the key of the merged counts says of which shards."""
    merged = _find_merged(receipts)
    shards = (receipt.key for receipt in receipts if receipt not in merged)
    return len(merged) == 1 and merged[0].key == merge_key(shards)


def merge_key(keys: Iterable[str]) -> str:
    """Return the key of the merged counts of units with these keys."""
    return unit_key(Stage.SCAN, core_version=cppmill_core.__version__, config={}, inputs=sorted(keys))


def _families(receipt: UnitReceipt) -> set[str]:
    """Return what is counted in the outputs of a unit."""
    names = (output.path.removeprefix(f"{PARTS}/").removeprefix("counts/") for output in receipt.outputs)
    return {re.split("[-./]", name)[0] for name in names}


def _find_merged(receipts: Sequence[UnitReceipt]) -> list[UnitReceipt]:
    return [receipt for receipt in receipts if not receipt.outputs[0].path.startswith(f"{PARTS}/")]
