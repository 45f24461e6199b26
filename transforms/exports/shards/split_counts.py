"""How many documents and tokens of each token shard are in each split: what the plan of an export is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas.export_options import SplitBy
from schemas.units import Stage, Unit, UnitReceipt
from transforms.exports.shards.splits import NAMED_BY, SPLITS, split_rows
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import TokenShard, open_token_shard


@dataclass(frozen=True, kw_only=True)
class SplitSettings:
    """What a worker needs to count.

    Attributes:
        out: The folder of the export.
        run: The folder of the run.
        split_by: What goes into one split as a whole.
        validation_fraction: Share of the projects or documents in the validation split.
    """

    out: OutputFolder
    run: OutputFolder
    split_by: SplitBy
    validation_fraction: float


def count_splits(unit: Unit, settings: SplitSettings) -> UnitReceipt:
    """Count the documents and tokens of a token shard by split, and publish the receipt that says it.

    Args:
        unit: Its payload is a token shard.
        settings: The split.

    Returns:
        The receipt; its totals are {split: {documents, tokens}}.
    """
    shard = TokenShard(**unit.payload)
    named_by = NAMED_BY[settings.split_by]
    totals: dict[str, Any] = {split: {"documents": 0, "tokens": 0} for split in SPLITS}
    with open_token_shard(settings.run, shard) as file:
        for rows in file.iter_batches(columns=[named_by, "num_tokens"], use_threads=False):
            inside = split_rows(rows.column(named_by), validation_fraction=settings.validation_fraction)
            tokens = rows.column("num_tokens").to_numpy()
            for split, chosen in zip(SPLITS, (~inside, inside), strict=True):
                totals[split]["documents"] += int(np.count_nonzero(chosen))
                totals[split]["tokens"] += int(tokens[chosen].sum())
    return UnitReceipt(stage=Stage.SPLITS, key=unit.key, outputs=(), totals=totals, inputs={shard.path: shard.sha256})
