"""The working set of some documents: the fewest ids that cover a share of their tokens, with a receipt.

Documents are chosen by project, platform and namespace; whole bands of the vocabulary can be added. The set restricts a
specialized model to the ids of its documents; it does not make the model faster.
`cppmill_core.working_set` reads the file and makes the mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
class Choice:
    """Which documents count: those that meet all conditions.

    Attributes:
        projects: Patterns as of a shell; the project must match one of them.
        platforms: The document must have one of these platform ids; None for any document.
        doc_ids: The document must be one of these; None for any document.
    """

    projects: Sequence[str] = ("*",)
    platforms: frozenset[int] | None = None
    doc_ids: frozenset[str] | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of token shards that are needed to choose and to count."""
        more = {"platform_ids": self.platforms, "doc_id": self.doc_ids}
        return ["project", "token_ids", *(name for name, wanted in more.items() if wanted is not None)]

    def chosen(self, batch: pa.RecordBatch) -> list[bool]:
        """Return of each row whether it counts."""
        names: list[Any] = batch["project"].to_pylist()
        known = {name: any(fnmatchcase(name, glob) for glob in self.projects) for name in set(names)}
        taken = [known[name] for name in names]
        if self.platforms is not None:
            rows: list[Any] = batch["platform_ids"].to_pylist()
            taken = [both and not self.platforms.isdisjoint(ids) for both, ids in zip(taken, rows, strict=True)]
        if self.doc_ids is not None:
            doc_ids: list[Any] = batch["doc_id"].to_pylist()
            taken = [both and name in self.doc_ids for both, name in zip(taken, doc_ids, strict=True)]
        return taken


@dataclass(frozen=True)
class TokenHistogram:
    """How often each id occurs in the documents of some projects.

    Attributes:
        counts: Occurrences by id.
        projects: The projects of the documents that were counted, sorted.
        documents: Their documents.
    """

    counts: Counts
    projects: tuple[str, ...]
    documents: int


def count_tokens(batches: Iterable[pa.RecordBatch], choice: Choice, vocab_size: int) -> TokenHistogram:
    """Count the ids in some documents.

    Args:
        batches: `choice.columns` of token shards, in any order; other columns are ignored.
        choice: The documents.
        vocab_size: Number of ids.
    """
    counts = np.zeros(vocab_size, np.int64)
    projects: set[str] = set()
    documents = 0
    for batch in batches:
        taken = batch.filter(pa.array(choice.chosen(batch), pa.bool_()))
        names: list[Any] = taken["project"].unique().to_pylist()
        projects |= set(names)
        documents += taken.num_rows
        token_ids: Any = taken["token_ids"]
        counts += np.bincount(token_ids.flatten().to_numpy(), minlength=vocab_size)
    return TokenHistogram(counts, tuple(sorted(projects)), documents)


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
    histogram: TokenHistogram,
    ids: TokenizerIds,
    *,
    globs: Sequence[str],
    coverage: float,
    dataset: str,
    bands: Mapping[str, Sequence[int]] | None = None,
    chosen: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a working set with its receipt, as JSON.

    Args:
        histogram: The tokens of its documents.
        ids: The tokenizer.
        globs: The patterns of projects.
        coverage: The share of the tokens to cover.
        dataset: Digest of the run's dataset.
        bands: The ids of each band that is in the set as a whole.
        chosen: What else chose the documents, for the receipt.
    """
    whole = bands or {}
    counts = text_counts(histogram.counts, ids)
    always = sorted({*always_allowed(ids), *(number for band in whole.values() for number in band)})
    taken = smallest_cover(counts, always, coverage)
    tokens, covered = int(counts.sum()), int(counts[taken].sum())
    return {
        "format": FORMAT,
        "tokenizer": {"digest": ids.tokenizer.digest, "vocab_size": ids.tokenizer.vocab_size},
        "dataset": dataset,
        "projects": {"globs": list(globs), "names": list(histogram.projects), "documents": histogram.documents},
        **(chosen or {}),
        "coverage": {
            "asked": coverage,
            "reached": covered / tokens if tokens else 1.0,
            "tokens": tokens,
            "covered_tokens": covered,
        },
        "always": ["control", "bytes", *sorted(whole)],
        "ids_sha256": ids_digest(taken),
        "ids": taken,
    }
