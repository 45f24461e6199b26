"""The working set of a group of projects: the fewest ids that cover a share of its tokens, with a receipt.

It restricts a specialized model to the ids of its projects; it does not make the model faster.
`cppmill_core.working_set` reads the file and makes the mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cppmill_core.working_set import FORMAT, ids_digest

from tokenizer_build.bands import Strength
from tokenizer_build.compare.diff import TokenizerIds

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TokenHistogram:
    """How often each id occurs in the documents of some projects.

    Attributes:
        counts: Occurrences by id.
        projects: The projects that were counted, sorted.
        documents: Their documents.
    """

    counts: Counts
    projects: tuple[str, ...]
    documents: int


def count_tokens(batches: Iterable[pa.RecordBatch], globs: Sequence[str], vocab_size: int) -> TokenHistogram:
    """Count the ids in the documents of some projects.

    Args:
        batches: Columns `project` and `token_ids` of token shards, in any order; others are ignored.
        globs: Patterns as of a shell; a project that one of them matches is counted.
        vocab_size: Number of ids.
    """
    counts = np.zeros(vocab_size, np.int64)
    projects: dict[str, bool] = {}
    documents = 0
    for batch in batches:
        names: list[Any] = batch["project"].to_pylist()
        for name in set(names) - projects.keys():
            projects[name] = any(fnmatchcase(name, glob) for glob in globs)
        taken = batch.filter(pa.array([projects[name] for name in names], pa.bool_()))
        documents += taken.num_rows
        token_ids: Any = taken["token_ids"]
        counts += np.bincount(token_ids.flatten().to_numpy(), minlength=vocab_size)
    return TokenHistogram(counts, tuple(sorted(name for name, taken in projects.items() if taken)), documents)


def always_allowed(ids: TokenizerIds) -> list[int]:
    """Return the ids that every working set has: control tokens, and the 256 bytes, so that any text can be spelled."""
    return [
        entry.id
        for entry in ids.entries
        if entry.strength is Strength.CONTROL or (entry.strength is not Strength.RESERVED and len(entry.token) == 1)
    ]


def text_counts(counts: Counts, ids: TokenizerIds) -> Counts:
    """Return the occurrences of ids, zero for control tokens."""
    without = counts.copy()
    without[[entry.id for entry in ids.entries if entry.strength is Strength.CONTROL]] = 0
    return without


def smallest_cover(counts: Counts, always: Sequence[int], coverage: float) -> list[int]:
    """Return the fewest ids that cover a share of all occurrences, those that are always allowed among them.

    The most frequent ids are taken first, of equally frequent ones the smallest. No smaller set covers as much.

    Args:
        counts: Occurrences by id.
        always: Ids that are in the set in any case; what they cover counts.
        coverage: Share of the occurrences to cover, from 0 to 1.

    Returns:
        The ids, ascending.
    """
    needed = math.ceil(Fraction(str(coverage)) * int(counts.sum()))
    taken = set(always)
    covered = int(counts[list(taken)].sum())
    for token_id in np.lexsort((np.arange(len(counts)), -counts)).tolist():
        if covered >= needed:
            break
        if token_id not in taken:
            taken.add(token_id)
            covered += int(counts[token_id])
    return sorted(taken)


def describe_working_set(
    histogram: TokenHistogram, ids: TokenizerIds, *, globs: Sequence[str], coverage: float, dataset: str
) -> dict[str, Any]:
    """Return a working set with its receipt, as JSON."""
    counts, always = text_counts(histogram.counts, ids), always_allowed(ids)
    taken = smallest_cover(counts, always, coverage)
    tokens, covered = int(counts.sum()), int(counts[taken].sum())
    return {
        "format": FORMAT,
        "tokenizer": {"digest": ids.tokenizer.digest, "vocab_size": ids.tokenizer.vocab_size},
        "dataset": dataset,
        "projects": {"globs": list(globs), "names": list(histogram.projects), "documents": histogram.documents},
        "coverage": {
            "asked": coverage,
            "reached": covered / tokens if tokens else 1.0,
            "tokens": tokens,
            "covered_tokens": covered,
        },
        "always": ["control", "bytes"],
        "ids_sha256": ids_digest(taken),
        "ids": taken,
    }
