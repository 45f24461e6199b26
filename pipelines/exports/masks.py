"""The programs of `cppmill vocab mask` and `cppmill vocab prove-mask`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cppmill_core import CoreError, InvalidInputError
from cppmill_core.manifests import parse_unique_json
from cppmill_core.masks import Mask
from cppmill_core.masks.receipts import make_mask_receipt, verify_mask_receipt
from cppmill_core.working_set import WorkingSet

from configs.outputs import check_file
from pipelines.tokenizers.codec import load_tokenizer
from schemas.digests import canonical_json
from schemas.errors import ConfigError, IntegrityError
from schemas.files import read_regular, write_file
from tokenizer_build.compare.diff import read_ids
from tokenizer_build.subsets.masks import make_mask, read_named_bands

Loaded = TypeVar("Loaded")


def write_mask(
    tokenizer: Path,
    file: Path,
    *,
    biases: Sequence[str],
    freeze: Sequence[str],
    allow: Sequence[Path],
    outside: float | None,
) -> str:
    """Write a mask for a tokenizer.

    Args:
        tokenizer: The tokenizer directory.
        file: The file to write.
        biases: `GLOB=NUMBER` of bands; the number may be -inf.
        freeze: Patterns of the bands whose rows do not learn.
        allow: Working sets.
        outside: The bias of the ids that no working set has; None for -inf.

    Returns:
        What to print: a line with the figures.

    Raises:
        ConfigError: If an option is wrong, a pattern matches no band, or a working set cannot be read or is of another
            tokenizer.
    """
    check_file(file, option="--out")
    if not (biases or freeze or allow):
        raise ConfigError("--bias, --freeze, --allow: give one of them; a mask of none would do nothing")
    if outside is not None and (not allow or outside >= 0 or math.isnan(outside)):
        raise ConfigError(f"--outside {outside}: it takes a number below 0, and needs --allow")
    loaded = load_tokenizer(tokenizer, argument="--tokenizer")
    ids = read_ids(tokenizer, loaded)
    sets = [
        _load(partial(WorkingSet.load, path, tokenizer=loaded), path, option="--allow", kind="working set")
        for path in allow
    ]
    try:
        mask, parts = make_mask(
            read_named_bands(tokenizer, ids),
            ids,
            biases=[_bias(text) for text in biases],
            freeze=freeze,
            allow=sets,
            outside=-math.inf if outside is None else outside,
        )
    except CoreError as error:
        raise ConfigError(str(error)) from error
    write_file(file, canonical_json(mask.to_json(parts)) + b"\n")
    forbidden, moved = int((mask.biases == -math.inf).sum()), int((mask.biases != 0).sum())
    return (
        f"{mask.vocab_size:,} ids: {forbidden:,} forbidden, {moved - forbidden:,} with another bias, "
        f"{len(mask.frozen):,} frozen; mask {mask.digest}"
    )


def _load(load: Callable[[], Loaded], path: Path, *, option: str, kind: str) -> Loaded:
    try:
        return load()
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror or error}; name the file of a {kind}") from error
    except CoreError as error:
        raise ConfigError(str(error)) from error


def _bias(text: str) -> tuple[str, float]:
    glob, _, number = text.rpartition("=")
    try:
        bias = float(number)
    except ValueError:
        bias = math.nan
    if not glob or math.isnan(bias) or bias == math.inf:
        raise ConfigError(f"--bias {text}: it takes BAND=NUMBER, such as domain=-2.5 or 'cuda*=-inf'")
    return glob, bias


def prove_mask(
    checkpoint: Path, mask_file: Path, tokenizer: Path, *, base: Path | None, out: Path | None, check: Path | None
) -> str:
    """Write the receipt that a checkpoint was made with a mask, or check one.

    Args:
        checkpoint: A safetensors file, or a folder of them.
        mask_file: The mask.
        tokenizer: The tokenizer directory.
        base: The checkpoint that the training began with.
        out: The receipt to write.
        check: The receipt to check.

    Returns:
        What to print.

    Raises:
        ConfigError: If files are missing, or not one of `out` and `check` is given.
        IntegrityError: If the checkpoint was not made with the mask, or the receipt is of others.
    """
    loaded = load_tokenizer(tokenizer, argument="--tokenizer")
    mask = _load(partial(Mask.load, mask_file, tokenizer=loaded), mask_file, option="--mask", kind="mask")
    try:
        if check is not None and out is None:
            verify_mask_receipt(_read(check), checkpoint, mask, loaded)
            return f"{check}: the checkpoint, the mask and the tokenizer are those of the receipt"
        if out is not None and check is None:
            check_file(out, option="--out")
            receipt = make_mask_receipt(checkpoint, mask, loaded, base=base)
            write_file(out, canonical_json(receipt) + b"\n")
            return f"{checkpoint}: {'; '.join(_proved(receipt, mask))}"
    except InvalidInputError as error:
        raise ConfigError(str(error)) from error
    except CoreError as error:
        raise IntegrityError(str(error)) from error
    raise ConfigError("--out, --check: give one of them: the receipt to write, or the one to check")


def _proved(receipt: dict[str, Any], mask: Mask) -> Iterator[str]:
    if receipt["bias"]:
        yield f"the bias is in {', '.join(receipt['bias'])}"
    if receipt["frozen"]:
        yield f"{len(mask.frozen):,} rows are as before in {', '.join(receipt['frozen'])}"


def _read(path: Path) -> dict[str, Any]:
    try:
        value = parse_unique_json(read_regular(path))
    except (OSError, ValueError) as error:
        raise ConfigError(f"--check {path}: not a receipt ({error})") from error
    return value
