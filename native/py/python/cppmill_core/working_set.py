"""Working sets: the ids that a group of projects uses, as a mask for a model's logits.

A working set is the file that `cppmill vocab working-set` writes: a sorted allow-list of ids, with a receipt. A model
that is routed to one kind of project can be kept to its ids by adding a mask to the logits. This changes what can be
sampled; it does not make anything faster, as the logits are still computed.

Needs numpy, which the rest of the package does not; a torch tensor needs torch, which is imported only then.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.protocol import AnyTokenizer

__all__ = ["FORMAT", "WorkingSet", "ids_digest", "logit_mask", "torch_logit_mask"]

FORMAT = "cppmill-working-set-1"


@dataclass(frozen=True)
class WorkingSet:
    """An allow-list of ids of one tokenizer.

    Attributes:
        ids: The allowed ids, ascending.
        tokenizer: Digest of the tokenizer whose ids they are.
        vocab_size: Number of its ids.
        coverage: Share of the projects' tokens that they cover.

    Example:
        >>> logits = logits + WorkingSet.load("cuda.json").mask()
    """

    ids: tuple[int, ...]
    tokenizer: str
    vocab_size: int
    coverage: float

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, tokenizer: AnyTokenizer | None = None) -> WorkingSet:
        """Read a working set.

        Args:
            path: The file.
            tokenizer: The tokenizer of the model: checked to be the one whose ids the file has.

        Raises:
            OSError: If the file cannot be read.
            CorruptDataError: If it is no working set, or its ids are not those of its receipt.
            InvalidInputError: If it is another tokenizer's.
        """
        try:
            value = json.loads(Path(path).read_bytes())
            if value["format"] != FORMAT:
                raise ValueError(f"format {value['format']!r}")
            found = cls(
                ids=tuple(value["ids"]),
                tokenizer=value["tokenizer"]["digest"],
                vocab_size=value["tokenizer"]["vocab_size"],
                coverage=value["coverage"]["reached"],
            )
            if ids_digest(found.ids) != value["ids_sha256"]:
                raise ValueError("the ids are not those of ids_sha256")
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(f"{path}: not a working set of format {FORMAT} ({error}); write it again") from error
        if tokenizer is not None and tokenizer.digest != found.tokenizer:
            raise InvalidInputError(
                f"{path}: a working set of tokenizer {found.tokenizer}, not of {tokenizer.digest}; write one for it"
            )
        return found

    def mask(self, size: int | None = None) -> npt.NDArray[np.float32]:
        """Return `logit_mask` of the ids; `size` is the length of the logits, `vocab_size` by default."""
        return logit_mask(self.ids, self.vocab_size if size is None else size)

    def torch_mask(self, size: int | None = None, **options: Any) -> Any:  # noqa: ANN401 - torch may not be there
        """Return `torch_logit_mask` of the ids; `size` is the length of the logits, `vocab_size` by default."""
        return torch_logit_mask(self.ids, self.vocab_size if size is None else size, **options)


def logit_mask(ids: Sequence[int], size: int) -> npt.NDArray[np.float32]:
    """Return what to add to logits to allow some ids only: 0 for each of them, -inf for every other one.

    Args:
        ids: The allowed ids, in any order.
        size: Length of the logits; a model may pad them beyond the vocabulary, and padding is never allowed.

    Raises:
        InvalidInputError: If there is no id, or one is not below `size`.

    Example:
        >>> logit_mask([0, 2], 4)
        array([  0., -inf,   0., -inf], dtype=float32)
    """
    allowed = np.asarray(ids, np.int64)
    if not len(allowed):
        raise InvalidInputError("no ids: a mask of -inf alone would leave nothing to sample")
    if allowed.min() < 0 or allowed.max() >= size:
        raise InvalidInputError(f"id {allowed.max() if allowed.min() >= 0 else allowed.min()}: not below size = {size}")
    mask = np.full(size, -np.inf, np.float32)
    mask[allowed] = 0.0
    return mask


def torch_logit_mask(ids: Sequence[int], size: int, **options: Any) -> Any:  # noqa: ANN401 - torch may not be there
    """Return `logit_mask` as a torch tensor.

    Args:
        ids: The allowed ids.
        size: Length of the logits.
        options: What `torch.Tensor.to` takes: `dtype`, `device`.

    Raises:
        ImportError: If torch is not installed.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError("a torch mask needs torch: install it, or use logit_mask, which needs numpy alone") from error
    return torch.from_numpy(logit_mask(ids, size)).to(**options)


def ids_digest(ids: Sequence[int]) -> str:
    """Return the SHA-256 of ids, each a little-endian u32, in lower-case hex."""
    return hashlib.sha256(np.asarray(ids, "<u4").tobytes()).hexdigest()
