"""Training and validation splits: which one a project or a document is in, for ever.

The SHA-256 of the name decides, as a fraction: what is below the validation fraction is validation. So nothing moves
when a corpus grows or is cut otherwise, and a smaller fraction validates on a part of what a larger one does.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa

from schemas.digests import path_fraction
from schemas.export_options import SplitBy

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
    """Return which rows are validation.

    Args:
        names: The column of token shards that `NAMED_BY` gives.
        validation_fraction: Share of the names in the validation split.
    """
    encoded = names.dictionary_encode()
    distinct: list[Any] = encoded.dictionary.to_pylist()
    inside = [split_of(name, validation_fraction=validation_fraction) == "val" for name in distinct]
    chosen: np.ndarray[Any, np.dtype[np.bool_]] = np.asarray(inside, dtype=np.bool_)[encoded.indices.to_numpy()]
    return chosen
