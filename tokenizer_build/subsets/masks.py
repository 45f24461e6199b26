"""Masks from bands and working sets: the ids of a band, their biases, and what is frozen.

A band is a range of the vocabulary's ids (`domain`), how ids were learned (`learned`, `superwords`), or a category of
its fixed tokens, such as `cuda_runtime`: `decisions.parquet` lists these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from cppmill_core.masks import Mask
from cppmill_core.working_set import WorkingSet

from schemas.errors import ConfigError
from tokenizer_build.compare.diff import TokenizerIds
from tokenizer_build.compare.origins import bands_of
from tokenizer_build.decision_files import DECISIONS_PARQUET, DECISIONS_TXT, KEPT


def read_named_bands(directory: Path, ids: TokenizerIds) -> dict[str, list[int]]:
    """Return the ids of each band and category of a tokenizer directory, ascending; none if a build kept no token."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    bands = bands_of(directory, ids.entries)
    for number, band in enumerate(bands):
        found[band].append(number)
    for category, numbers in _categories(directory).items():
        found.setdefault(category, sorted(numbers))
    return dict(found)


def _categories(directory: Path) -> dict[str, list[int]]:
    """Return the ids of the fixed tokens that a build kept, by category; a category may have none."""
    if not (directory / DECISIONS_PARQUET).is_file():
        return {}
    rows: list[dict[str, Any]] = pq.read_table(
        directory / DECISIONS_PARQUET, columns=["id", "category", "decision"]
    ).to_pylist()
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        if ":" not in row["category"]:
            found[row["category"]] += [row["id"]] if row["decision"] == KEPT else []
    return found


def match_bands(bands: Mapping[str, Sequence[int]], glob: str, *, argument: str) -> dict[str, list[int]]:
    """Return the bands with ids that a pattern as of a shell matches.

    Raises:
        ConfigError: If it matches none.
    """
    named = [name for name in sorted(bands) if fnmatchcase(name, glob)]
    found = {name: list(bands[name]) for name in named if bands[name]}
    if named and not found:
        raise ConfigError(
            f"{argument} {glob}: the vocabulary has {', '.join(named)}, but the build of this tokenizer kept none of "
            f"their tokens ({DECISIONS_TXT} says why); build one from sources that use them, or with a vocabulary of "
            "your own that keeps them (`cppmill vocab add --keep`)"
        )
    if not found:
        raise ConfigError(
            f"{argument} {glob}: no band or category has such a name; there are "
            f"{', '.join(name for name in sorted(bands) if bands[name])}"
        )
    return found


def make_mask(
    bands: Mapping[str, Sequence[int]],
    ids: TokenizerIds,
    *,
    biases: Iterable[tuple[str, float]] = (),
    freeze: Iterable[str] = (),
    allow: Sequence[WorkingSet] = (),
    outside: float = -np.inf,
) -> tuple[Mask, list[dict[str, Any]]]:
    """Return a mask, and what it was made from.

    Args:
        bands: What `read_named_bands` returns.
        ids: The tokenizer.
        biases: Patterns of bands, each with a bias; of an id in several, they add up.
        freeze: Patterns of the bands whose rows do not learn.
        allow: Working sets; an id that none of them has gets the bias `outside` too.
        outside: -inf forbids these ids, a negative number makes them less likely.

    Raises:
        ConfigError: If a pattern matches no band.
    """
    values, frozen = np.zeros(ids.tokenizer.vocab_size, np.float64), set[int]()
    parts: list[dict[str, Any]] = []
    for glob, bias in biases:
        found = match_bands(bands, glob, argument="--bias")
        numbers = sorted({number for band in found.values() for number in band})
        values[numbers] += bias
        parts.append({"bands": sorted(found), "bias": None if np.isneginf(bias) else bias, "ids": len(numbers)})
    if allow:
        values[sorted(set(range(len(values))).difference(*(found.ids for found in allow)))] += outside
        sets = [{"ids": len(found.ids), "coverage": found.coverage} for found in allow]
        parts.append({"working_sets": sets, "outside": None if np.isneginf(outside) else outside})
    for glob in freeze:
        found = match_bands(bands, glob, argument="--freeze")
        frozen |= {number for band in found.values() for number in band}
        parts.append({"bands": sorted(found), "frozen": True, "ids": sum(map(len, found.values()))})
    digest = ids.tokenizer.digest
    return Mask(biases=values.astype(np.float32), frozen=tuple(sorted(frozen)), tokenizer=digest), parts
