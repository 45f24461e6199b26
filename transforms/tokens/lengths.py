"""How long the documents of a dataset are, in tokens, and how much each sequence length keeps of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

CANDIDATES = tuple(1 << power for power in range(9, 18))
"""Sequence lengths that are looked at: 512 to 131,072 tokens."""

PERCENTILES = (1, 5, 25, 50, 75, 90, 95, 99, 99.9)


class KeptAtLength(NamedTuple):
    """What a sequence length keeps.

    Attributes:
        length: Tokens of a sequence.
        whole: Share of the documents that are no longer.
        tokens_dropped: Share of the tokens that is kept if longer documents are dropped.
        tokens_cut: The same if they are cut.
        padded_dropped: With one document a sequence and longer ones dropped: share of the positions that are tokens.
        padded_cut: The same with longer ones cut.
    """

    length: int
    whole: float
    tokens_dropped: float
    tokens_cut: float
    padded_dropped: float
    padded_cut: float


@dataclass(frozen=True)
class Lengths:
    """The distribution: distinct lengths, ascending, and how many documents have each.

    Attributes:
        lengths: Tokens of a document.
        counts: Documents of that length.
    """

    lengths: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, documents: Mapping[int, int]) -> Lengths:
        """Return the distribution of documents by their number of tokens."""
        lengths, counts = np.array(sorted(documents.items()), np.int64).reshape(-1, 2).T
        return cls(lengths, counts)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return int(self.counts.sum())

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return int(self.lengths @ self.counts)

    def percentile(self, percent: float) -> int:
        """Return the least length that this percentage of the documents does not exceed; 0 without documents."""
        if not self.documents:
            return 0
        reached = int(np.searchsorted(np.cumsum(self.counts), self.documents * percent / 100))
        return int(self.lengths[min(reached, len(self.lengths) - 1)])

    def kept(self, length: int) -> KeptAtLength:
        """Return what a sequence length keeps."""
        whole = self.lengths <= length
        documents = int(self.counts[whole].sum())
        dropped = int(self.lengths[whole] @ self.counts[whole])
        cut = int(np.minimum(self.lengths, length) @ self.counts)
        return KeptAtLength(
            length,
            _share(documents, self.documents),
            _share(dropped, self.tokens),
            _share(cut, self.tokens),
            _share(dropped, documents * length),
            _share(cut, self.documents * length),
        )

    def doublings(self) -> list[tuple[int, int, int]]:
        """Return, for each power of two up to the longest document, it and the documents and tokens that it bounds.

        They are those of more than half of it; of 1 those of 1.
        """
        powers = np.ceil(np.log2(np.maximum(self.lengths, 1))).astype(np.int64)
        documents = np.bincount(powers, weights=self.counts)
        tokens = np.bincount(powers, weights=self.counts * self.lengths)
        return [(1 << power, int(documents[power]), int(tokens[power])) for power in range(len(documents))]

    def to_json(self, candidates: Sequence[int] = CANDIDATES) -> dict[str, Any]:
        """Return the distribution as JSON values."""
        return {
            "documents": self.documents,
            "tokens": self.tokens,
            "longest": self.percentile(100),
            "percentiles": {str(percent): self.percentile(percent) for percent in PERCENTILES},
            "doublings": [dict(zip(("up_to", "documents", "tokens"), row, strict=True)) for row in self.doublings()],
            "kept": [self.kept(length)._asdict() for length in candidates],
        }


def count_lengths(columns: Iterable[npt.NDArray[np.integer[Any]]]) -> Lengths:
    """Return the distribution of the lengths in columns, in any order."""
    total = Counter[int]()
    for column in columns:
        total.update(column.tolist())
    return Lengths.of(total)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
