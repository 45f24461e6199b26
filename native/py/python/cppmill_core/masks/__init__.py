"""Masks: what a specialized model may write, and which rows of its embedding do not learn.

`cppmill vocab mask` writes a mask from working sets and bands of the vocabulary. Its *bias* is added to the logits: 0
leaves an id alone, -inf forbids it (a hard mask), any other number makes it more or less likely (a soft one). Its
*frozen* ids keep their rows in training. `masks.torch_masks` applies both, and `masks.receipts` proves it from
checkpoints.

Needs numpy.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.manifests import parse_unique_json, ranges
from cppmill_core.protocol import AnyTokenizer
from cppmill_core.subset_values import check_ranges, check_tokenizer, read_tokenizer, same_values

__all__ = ["FORMAT", "Mask"]

FORMAT = "cppmill-mask-1"


@dataclass(frozen=True, eq=False, kw_only=True)
class Mask:
    """A bias for each id of one tokenizer, and its frozen ids.

    Attributes:
        biases: float32 [vocab_size].
        frozen: The ids whose rows do not learn, ascending.
        tokenizer: Digest of the tokenizer.

    Example:
        >>> logits = logits + Mask.load("cuda.json").bias()
    """

    biases: npt.NDArray[np.float32]
    frozen: tuple[int, ...]
    tokenizer: str

    def __post_init__(self) -> None:
        """Check that the biases can be added to logits."""
        if not (self.biases > -np.inf).any():
            raise InvalidInputError("every id is forbidden: a mask of -inf alone would leave nothing to sample")
        if np.isnan(self.biases).any() or (self.biases == np.inf).any():
            raise InvalidInputError("a bias is inf or not a number; give finite numbers, or -inf")

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return len(self.biases)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the tokenizer's digest, the biases (little-endian f32) and the frozen ids (little-endian u32)."""
        numbers = (self.biases.astype("<f4"), np.asarray(self.frozen, "<u4"))
        return hashlib.sha256(bytes.fromhex(self.tokenizer) + b"".join(part.tobytes() for part in numbers)).hexdigest()

    def bias(self, size: int | None = None) -> npt.NDArray[np.float32]:
        """Return what is added to logits: float32 [size].

        Args:
            size: Length of the logits, `vocab_size` by default; padding beyond that is forbidden if any id is.

        Raises:
            InvalidInputError: If it is less than `vocab_size`.
        """
        size = self.vocab_size if size is None else size
        if size < self.vocab_size:
            raise InvalidInputError(f"size = {size}: the tokenizer has {self.vocab_size:,} ids")
        padding = -np.inf if np.isneginf(self.biases).any() else 0.0
        return np.concatenate([self.biases, np.full(size - self.vocab_size, padding, np.float32)])

    def to_json(self, parts: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        """Return the mask as plain values; `parts` says what it was made from."""
        return {
            "format": FORMAT,
            "tokenizer": {"digest": self.tokenizer, "vocab_size": self.vocab_size},
            "parts": list(parts),
            "biases": _runs(self.biases),
            "frozen": ranges(self.frozen),
            "sha256": self.digest,
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, tokenizer: AnyTokenizer | str | None = None) -> Mask:
        """Read a mask.

        Args:
            path: The file.
            tokenizer: The tokenizer of the model, or its digest; a mask of another one is refused. Only the tokenizer
                itself shows whether the mask has its number of ids.

        Raises:
            OSError: If the file cannot be read.
            CorruptDataError: If it is not a mask, has ids beyond its vocabulary, or does not have the digest in it.
            InvalidInputError: If it is for another tokenizer.
        """
        try:
            value = parse_unique_json(Path(path).read_bytes())
            if value["format"] != FORMAT:
                raise ValueError(f"format {value['format']!r}")
            digest, size = read_tokenizer(value)
            check_tokenizer(tokenizer, digest, size, where=f"{path}: a mask")
            mask = cls._of_json(value, digest, size)
            if mask.digest != value["sha256"]:
                raise ValueError("its content does not match sha256")
            if not same_values(mask.to_json(value["parts"]), value):
                raise ValueError("it has values that no mask has, or not in the order of a mask")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptDataError(f"{path}: not a mask of format {FORMAT} ({error}); write it again") from error
        return mask

    @classmethod
    def _of_json(cls, value: Any, digest: str, size: int) -> Mask:  # noqa: ANN401 - any JSON value
        runs = check_ranges([run[:2] for run in value["biases"]], size)
        biases = np.zeros(size, np.float32)
        for (first, last), (_, _, bias) in zip(runs, value["biases"], strict=True):
            if bias is not None and type(bias) not in (int, float):
                raise ValueError(f"the bias {bias!r}")
            biases[first : last + 1] = -np.inf if bias is None else bias
        frozen = check_ranges(value["frozen"], size)
        try:
            return cls(
                biases=biases,
                frozen=tuple(number for first, last in frozen for number in range(first, last + 1)),
                tokenizer=digest,
            )
        except InvalidInputError as error:
            raise ValueError(str(error)) from error


def _runs(biases: npt.NDArray[np.float32]) -> list[list[Any]]:
    """Return the ranges of ids with one bias, `[first, last, bias]`, but those of 0; null stands for -inf."""
    found, first = list[list[Any]](), 0
    for bias, group in groupby(biases.tolist()):
        last = first + sum(1 for _ in group) - 1
        if bias:
            found.append([first, last, None if math.isinf(bias) else bias])
        first = last + 1
    return found
