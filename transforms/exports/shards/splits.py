"""Training and validation splits: which one a project or a document is in, for ever, and how much each token shard has.

The SHA-256 of the name decides, as a fraction: what is below the validation fraction is validation. So nothing moves
when a corpus grows or is cut differently, and the validation set of a smaller fraction is a part of the one of a larger
fraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from schemas.digests import path_fraction
from schemas.export_options import SplitBy
from schemas.units import Stage, Unit, UnitReceipt
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import TokenShard, open_token_shard

Split = Literal["train", "val"]
SPLITS: tuple[Split, Split] = ("train", "val")

NAMED_BY: dict[SplitBy, str] = {"project": "project", "document": "doc_id"}
"""The column of token shards that names what goes into one split."""


def split_of(name: str, *, validation_fraction: float) -> Split:
    """Return the split of a project, or of a document by its `doc_id`.

    Args:
        name: The project, or the SHA-256 of the document's bytes.
        validation_fraction: Share of the names in the validation split.

    Example:
        >>> [split_of(name, validation_fraction=0.5) for name in ("numpy", "llvm")]
        ['val', 'train']
    """
    return "val" if path_fraction(name) < validation_fraction else "train"


def split_rows(names: pa.Array[Any], *, validation_fraction: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows are validation."""
    encoded = names.dictionary_encode()
    distinct: list[Any] = encoded.dictionary.to_pylist()
    inside = [split_of(name, validation_fraction=validation_fraction) == "val" for name in distinct]
    chosen: np.ndarray[Any, np.dtype[np.bool_]] = np.asarray(inside, dtype=np.bool_)[encoded.indices.to_numpy()]
    return chosen


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
