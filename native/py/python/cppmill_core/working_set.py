"""Working sets: the ids that a group of projects uses, as a mask for a model's logits.

`cppmill vocab working-set` writes a working set: a sorted allow-list of ids, with a receipt. Adding its mask to the
logits restricts a model for one kind of project to the ids of such projects. This limits what can be sampled; it makes
nothing faster, because all logits are still computed.

Needs numpy. Torch is imported only for a torch tensor.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.manifests import BOS, EOS, parse_unique_json
from cppmill_core.protocol import AnyTokenizer
from cppmill_core.subset_values import check_ids, check_tokenizer, read_tokenizer

__all__ = ["FORMAT", "WorkingSet", "ids_digest", "logit_mask", "torch_logit_mask"]

FORMAT = "cppmill-working-set-1"

_KEYS = {"format", "tokenizer", "dataset", "projects", "platforms", "namespaces", "coverage", "always"}
_KEYS |= {"ids", "ids_sha256"}

_ROUNDED = 1e-9
"""How far a share may be from the quotient that it stands for."""


@dataclass(frozen=True)
class WorkingSet:
    """An allow-list of ids of one tokenizer.

    Attributes:
        ids: The allowed ids, ascending.
        tokenizer: Digest of the tokenizer of the ids.
        vocab_size: Number of ids of the tokenizer.
        coverage: Share of the projects' tokens that the allowed ids cover.

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
            tokenizer: The tokenizer of the model; a working set of another one is refused.

        Raises:
            OSError: If the file cannot be read.
            CorruptDataError: If it is not a working set, has ids beyond its vocabulary, or others than its digest says,
                contradicts itself, or lacks ids that the tokenizer needs to spell any text.
            InvalidInputError: If it is for another tokenizer.
        """
        try:
            value = parse_unique_json(Path(path).read_bytes())
            if value["format"] != FORMAT:
                raise ValueError(f"format {value['format']!r}")
            if strange := sorted(value.keys() - _KEYS):
                raise ValueError(f"the key {strange[0]!r}")
            digest, size = read_tokenizer(value)
            check_tokenizer(tokenizer, digest, size, where=f"{path}: a working set")
            ids, reached = check_ids(value["ids"], size), _check_coverage(value["coverage"])
            if not ids:
                raise ValueError("no ids")
            if ids_digest(ids) != value["ids_sha256"]:
                raise ValueError("the ids do not match ids_sha256")
            if not isinstance(tokenizer, str) and tokenizer is not None:
                _check_always(ids, tokenizer)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptDataError(f"{path}: not a working set of format {FORMAT} ({error}); write it again") from error
        return cls(ids=tuple(ids), tokenizer=digest, vocab_size=size, coverage=reached)

    def mask(self, size: int | None = None) -> npt.NDArray[np.float32]:
        """Return `logit_mask` of the ids; `size` is the length of the logits, `vocab_size` by default."""
        return logit_mask(self.ids, self.vocab_size if size is None else size)

    def torch_mask(self, size: int | None = None, **options: Any) -> Any:  # noqa: ANN401 - an optional package
        """Return `torch_logit_mask` of the ids; `size` is the length of the logits, `vocab_size` by default."""
        return torch_logit_mask(self.ids, self.vocab_size if size is None else size, **options)


def _check_coverage(coverage: Any) -> float:  # noqa: ANN401 - any JSON value
    """Return the share of the tokens that is covered.

    Raises:
        ValueError: If it is not that of the numbers.
    """
    asked, reached, tokens, covered = (coverage[name] for name in ("asked", "reached", "tokens", "covered_tokens"))
    if type(tokens) is not int or type(covered) is not int or not 0 <= covered <= tokens:
        raise ValueError(f"{covered!r} of {tokens!r} tokens covered")
    if any(type(share) not in (int, float) or not 0 <= share <= 1 for share in (asked, reached)):
        raise ValueError(f"a coverage of {reached!r}, of {asked!r} asked for")
    if abs(reached - (covered / tokens if tokens else 1)) > _ROUNDED:
        raise ValueError(f"a coverage of {reached!r} by {covered:,} of {tokens:,} tokens")
    if reached < asked - _ROUNDED:
        raise ValueError(f"a coverage of {reached!r}, of {asked!r} asked for")
    return float(reached)


def _check_always(ids: Sequence[int], tokenizer: AnyTokenizer) -> None:
    """Check that the bytes, and what begins and ends documents, are among the ids: else some texts cannot be written.

    Raises:
        ValueError: Naming the first that is missing.
    """
    there = set(ids)
    needed = {
        id_: repr(token)
        for id_ in range(tokenizer.vocab_size)
        if (token := tokenizer.token_bytes(id_)) is not None and len(token) == 1
    }
    for name in (BOS, EOS):
        with suppress(InvalidInputError):  # some tokenizers have none
            needed[tokenizer.control_id(name)] = name
    for id_, name in sorted(needed.items()):
        if id_ not in there:
            raise ValueError(f"it lacks the id {id_} of {name}, which every working set has")


def logit_mask(ids: Sequence[int], size: int) -> npt.NDArray[np.float32]:
    """Return the mask to add to logits: 0 for each allowed id, -inf for every other id.

    Args:
        ids: The allowed ids, in any order.
        size: Length of the logits; padding beyond the vocabulary is never allowed.

    Raises:
        InvalidInputError: If there are no ids, or an id is not below `size`.

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


def torch_logit_mask(ids: Sequence[int], size: int, **options: Any) -> Any:  # noqa: ANN401 - an optional package
    """Return `logit_mask` as a torch tensor.

    Args:
        ids: The allowed ids.
        size: Length of the logits.
        options: Arguments of `torch.Tensor.to`, such as `dtype` and `device`.

    Raises:
        ImportError: If torch is not installed.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError("a torch mask needs torch: install it, or use logit_mask, which needs numpy alone") from error
    return torch.from_numpy(logit_mask(ids, size)).to(**options)


def ids_digest(ids: Sequence[int]) -> str:
    """Return the SHA-256 of ids as little-endian u32, in lower-case hexadecimal digits."""
    return hashlib.sha256(np.asarray(ids, "<u4").tobytes()).hexdigest()
