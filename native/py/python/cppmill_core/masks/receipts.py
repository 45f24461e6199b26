"""Receipts of masks: a proof, from files alone, that a checkpoint was made with a mask.

A mask with a bias was applied if the checkpoint has that bias in the output layer, as `torch_masks.add_bias` puts it
there. Frozen ids were frozen if their rows are those of the checkpoint that the training began with. The receipt has
the digests of tokenizer, mask and checkpoint, and `verify_mask_receipt` computes all of it again.

Reads safetensors files, without torch and without the package safetensors.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cppmill_core._native import CorruptDataError, InvalidInputError, VocabularyError
from cppmill_core.checkpoints import assert_vocab, is_embedding, read_header
from cppmill_core.masks import Mask

__all__ = ["BIAS", "FORMAT", "make_mask_receipt", "verify_mask_receipt"]

FORMAT = "cppmill-mask-receipt-1"

BIAS = "logit_mask.bias"
"""How the name of the buffer with the bias ends."""

_FLOATS = ("F32", "F16", "BF16")
"""The types of a bias in safetensors."""

_KEYS = {"format", "tokenizer", "mask", "checkpoint", "bias", "frozen"}

_CHUNK_BYTES = 1 << 24


def make_mask_receipt(
    checkpoint: str | os.PathLike[str],
    mask: Mask,
    tokenizer: Any,  # noqa: ANN401 - what `stamp` takes
    *,
    base: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Return the receipt that a checkpoint was made with a mask, after proving it.

    Args:
        checkpoint: A safetensors file, or a folder of them; stamped with the tokenizer.
        mask: The mask.
        tokenizer: A receipt or a tokenizer, as for `assert_vocab`.
        base: The checkpoint that the training began with; needed if ids are frozen.

    Raises:
        OSError: If a file cannot be read.
        InvalidInputError: If there is no safetensors file, or `base` is missing.
        VocabularyError: If the checkpoint is of another tokenizer, lacks the bias or a layer of the base, has an
            embedding or output layer that the base lacks, or a frozen row differs.
    """
    assert_vocab(checkpoint, tokenizer)
    files = _files(Path(checkpoint))
    receipt: dict[str, Any] = {
        "format": FORMAT,
        "tokenizer": mask.tokenizer,
        "mask": mask.digest,
        "checkpoint": {path.name: _sha256(path) for path in files},
        "bias": None,
        "frozen": None,
    }
    _check_tokenizer(files, mask)
    if mask.biases.any():
        receipt["bias"] = _prove_bias(files, mask)
    if mask.frozen:
        if base is None:
            raise InvalidInputError("base: the mask freezes ids; name the checkpoint that the training began with")
        receipt["frozen"] = _prove_frozen(files, _files(Path(base)), mask)
    return receipt


def verify_mask_receipt(
    receipt: Mapping[str, Any],
    checkpoint: str | os.PathLike[str],
    mask: Mask,
    tokenizer: Any,  # noqa: ANN401 - what `stamp` takes
) -> None:
    """Check a receipt against the files; the checkpoint that the training began with is not needed.

    Raises:
        VocabularyError: Naming everything that differs.
        OSError: If a file cannot be read.
        InvalidInputError: If the receipt has another format.
    """
    if receipt.get("format") != FORMAT:
        raise InvalidInputError(f"a receipt of the format {receipt.get('format')!r}: {FORMAT!r} is known")
    if strange := sorted(receipt.keys() - _KEYS):
        raise InvalidInputError(f"a receipt with the key {strange[0]!r}, which no receipt has")
    assert_vocab(checkpoint, tokenizer)
    files = _files(Path(checkpoint))
    _check_tokenizer(files, mask)
    found: dict[str, Any] = {
        "tokenizer": mask.tokenizer,
        "mask": mask.digest,
        "checkpoint": {path.name: _sha256(path) for path in files},
        "bias": _prove_bias(files, mask) if mask.biases.any() else None,
        "frozen": _digests(_frozen_rows(files, mask.frozen)) if mask.frozen else None,
    }
    wrong = [
        f"{name} is {value}, the receipt says {receipt.get(name)}"
        for name, value in found.items()
        if value != receipt.get(name)
    ]
    if wrong:
        raise VocabularyError(f"{checkpoint}: {'; '.join(wrong)}")


def _check_tokenizer(files: Sequence[Path], mask: Mask) -> None:
    for path in files:
        named = read_header(path)[0].get("__metadata__", {}).get("cppmill.tokenizer")
        if named != mask.tokenizer:
            raise VocabularyError(f"{path}: of tokenizer {named}, but the mask is of {mask.tokenizer}")


def _prove_bias(files: Sequence[Path], mask: Mask) -> dict[str, str]:
    """Return the SHA-256 of each buffer with the mask's bias, by name."""
    found = {}
    for path, name, rows, tensor in _tensors(files):
        if name == BIAS or name.endswith(f".{BIAS}"):
            if tensor["dtype"] not in _FLOATS:
                raise VocabularyError(f"{path}: {name} is of {tensor['dtype']}; a bias is of {', '.join(_FLOATS)}")
            expected = _as_type(mask.bias(len(rows)), tensor["dtype"])
            if rows.tobytes() != expected:
                raise VocabularyError(f"{path}: {name} is not the bias of the mask {mask.digest}")
            found[name] = hashlib.sha256(expected).hexdigest()
    if not found:
        raise VocabularyError(f"{files[0]}: no buffer …{BIAS}; apply the mask with torch_masks.add_bias")
    return found


def _prove_frozen(files: Sequence[Path], base: Sequence[Path], mask: Mask) -> dict[str, str]:
    """Return the SHA-256 of the frozen rows of each embedding and output layer, which are those of the base."""
    found, before = _frozen_rows(files, mask.frozen), _frozen_rows(base, mask.frozen)
    if found.keys() != before.keys():
        lists = (before.keys() - found.keys(), found.keys() - before.keys())
        missing, added = (", ".join(sorted(names)) or "none" for names in lists)
        raise VocabularyError(
            f"{files[0]}: other embedding and output layers than {base[0]}: missing are {missing}, additional are "
            f"{added}, so not all frozen rows can be compared; save both checkpoints with the same names"
        )
    moved = [name for name, rows in found.items() if before[name] != rows]
    if moved:
        raise VocabularyError(
            f"{files[0]}: frozen rows of {', '.join(moved)} differ from those of {base[0]}, in value or in type; "
            "freeze them with torch_masks.freeze_rows, and save both checkpoints with the same types"
        )
    if not found:
        raise VocabularyError(f"{files[0]}: no embedding or output layer by a usual name, so no rows to compare")
    return _digests(found)


def _frozen_rows(files: Sequence[Path], ids: Sequence[int]) -> dict[str, tuple[str, Any]]:
    """Return SHA-256 and type of the rows of each embedding and output layer: bytes are numbers only with a type."""
    found = dict[str, tuple[str, Any]]()
    for path, name, rows, tensor in _tensors(files):
        if is_embedding(name, tensor["shape"]):
            if name in found:
                raise VocabularyError(f"{path}: {name} is in another file of the checkpoint too; remove one of them")
            found[name] = hashlib.sha256(rows[list(ids)].tobytes()).hexdigest(), tensor["dtype"]
    return found


def _digests(rows: dict[str, tuple[str, Any]]) -> dict[str, str]:
    return {name: digest for name, (digest, _) in rows.items()}


def _as_type(values: npt.NDArray[np.float32], dtype: str) -> bytes:
    """Return numbers as the bytes of a type of safetensors: F32, F16 or BF16, rounded to the nearest."""
    if dtype == "F16":
        return values.astype("<f2").tobytes()
    if dtype == "BF16":
        bits = values.astype("<f4").view("<u4")
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return np.asarray(rounded, "<u2").tobytes()
    return values.astype("<f4").tobytes()


def _tensors(files: Sequence[Path]) -> Iterator[tuple[Path, str, npt.NDArray[np.uint8], dict[str, Any]]]:
    """Yield file, name, bytes [rows, bytes of a row] and header of each tensor; a vector's rows are its numbers."""
    for path in files:
        header, begin = read_header(path)
        for name, tensor in header.items():
            if name != "__metadata__" and tensor["shape"] and tensor["shape"][0]:
                start, end = tensor["data_offsets"]
                shape = (tensor["shape"][0], (end - start) // tensor["shape"][0])
                yield path, name, np.memmap(path, np.uint8, "r", begin + start, shape), tensor


def _files(path: Path) -> list[Path]:
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files or any(file.suffix != ".safetensors" for file in files):
        raise InvalidInputError(f"{path}: no safetensors file; save the checkpoint as one")
    for index in path.glob("*.safetensors.index.json"):
        try:
            named = set(json.loads(index.read_bytes())["weight_map"].values())
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise CorruptDataError(f"{index}: damaged ({type(error).__name__}: {error})") from error
        if others := sorted(named - {file.name for file in files}):
            raise InvalidInputError(f"{index}: it names {others[0]}, which is not beside it")
    return files


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
