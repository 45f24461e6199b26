"""Counts of the token shards of a run: ids, projects, lengths of documents, platforms.

Shards are read a batch of rows at a time, so memory grows with the vocabulary, the projects and the distinct lengths,
not with the documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.tables import PLATFORM_VOCAB_SIZE
from transforms.storage.folder import OutputFolder
from transforms.tokens.lengths import Lengths

Counts = npt.NDArray[np.int64]

_COLUMNS = ("project", "num_bytes", "num_tokens", "token_ids", "platform_ids")
_ROWS_A_BATCH = 1024


@dataclass
class ProjectUsage:
    """The documents of a project, with their bytes and tokens."""

    documents: int = 0
    num_bytes: int = 0
    tokens: int = 0

    def add(self, other: ProjectUsage) -> None:
        """Add what was counted elsewhere."""
        self.documents += other.documents
        self.num_bytes += other.num_bytes
        self.tokens += other.tokens


@dataclass
class Usage:
    """What was counted; usages add up in any order.

    Attributes:
        ids: Occurrences by id.
        projects: What each project has.
        lengths: Documents by their number of tokens.
        platforms: Documents by platform id; under 0 those without any.
    """

    ids: Counts
    projects: dict[str, ProjectUsage] = field(default_factory=dict)
    lengths: Counter[int] = field(default_factory=Counter)
    platforms: Counts = field(default_factory=lambda: np.zeros(PLATFORM_VOCAB_SIZE, np.int64))

    @classmethod
    def empty(cls, vocab_size: int, *, platforms: int = PLATFORM_VOCAB_SIZE) -> Usage:
        """Return the usage of no documents, with so many ids and platform ids."""
        return cls(np.zeros(vocab_size, np.int64), platforms=np.zeros(platforms, np.int64))

    @property
    def distribution(self) -> Lengths:
        """How long the documents are."""
        return Lengths.of(self.lengths)

    @property
    def total(self) -> ProjectUsage:
        """The documents of all projects, with their bytes and tokens."""
        total = ProjectUsage()
        for project in self.projects.values():
            total.add(project)
        return total

    def add(self, other: Usage) -> None:
        """Add what was counted elsewhere, with the same vocabulary."""
        self.ids += other.ids
        self.platforms += other.platforms
        for name, project in other.projects.items():
            self.projects.setdefault(name, ProjectUsage()).add(project)
        self.lengths.update(other.lengths)


def count_usage(batches: Iterable[pa.RecordBatch], vocab_size: int, *, platforms: int = PLATFORM_VOCAB_SIZE) -> Usage:
    """Count the rows of token shards.

    Args:
        batches: Columns project, num_bytes, num_tokens, token_ids and platform_ids (`schemas.tables.tokens_schema`), in
            any order; others are ignored.
        vocab_size: Number of ids.
        platforms: Number of platform ids, padding included.
    """
    usage = Usage.empty(vocab_size, platforms=platforms)
    for batch in batches:
        usage.ids += np.bincount(flat_ids(batch["token_ids"]), minlength=vocab_size)
        usage.platforms += _count_platforms(batch["platform_ids"], platforms)
        _add_projects(usage, batch)
        usage.lengths.update(batch["num_tokens"].to_numpy().tolist())
    return usage


def read_usage(
    out: OutputFolder,
    shards: Iterable[str],
    vocab_size: int,
    *,
    platforms: int = PLATFORM_VOCAB_SIZE,
    threads: int,
) -> Usage:
    """Count the token shards of a run, several at once; the other arguments are those of `count_usage`."""
    usage = Usage.empty(vocab_size, platforms=platforms)
    with ThreadPoolExecutor(threads) as pool:
        for part in pool.map(lambda shard: _read_shard(out, shard, vocab_size, platforms), shards):
            usage.add(part)
    return usage


def count_ids(out: OutputFolder, shard: str, vocab_size: int) -> Counts:
    """Return how often each id occurs in a token shard."""
    ids = np.zeros(vocab_size, np.int64)
    with out.open_ranges(shard) as source, pq.ParquetFile(source) as file:
        for batch in file.iter_batches(batch_size=_ROWS_A_BATCH, columns=["token_ids"]):
            ids += np.bincount(flat_ids(batch["token_ids"]), minlength=vocab_size)
    return ids


def _read_shard(out: OutputFolder, shard: str, vocab_size: int, platforms: int) -> Usage:
    with out.open_ranges(shard) as source, pq.ParquetFile(source) as file:
        batches = file.iter_batches(batch_size=_ROWS_A_BATCH, columns=list(_COLUMNS))
        return count_usage(batches, vocab_size, platforms=platforms)


def flat_ids(lists: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - the stubs know no array of lists
    """Return the values of a column of lists."""
    return lists.flatten().to_numpy()  # type: ignore[no-any-return]


def _count_platforms(platform_ids: Any, size: int) -> Counts:  # noqa: ANN401
    counts = np.bincount(flat_ids(platform_ids), minlength=size).astype(np.int64)
    counts[0] = int((platform_ids.value_lengths().to_numpy() == 0).sum())
    return counts


def _add_projects(usage: Usage, batch: pa.RecordBatch) -> None:
    encoded: Any = batch["project"].dictionary_encode()
    codes, names = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
    amounts = [np.ones(len(codes), np.int64), *(_integers(batch[name]) for name in ("num_bytes", "num_tokens"))]
    sums = np.zeros((len(names), len(amounts)), np.int64)
    np.add.at(sums, codes, np.column_stack(amounts))
    for name, (documents, num_bytes, tokens) in zip(names, sums.tolist(), strict=True):
        usage.projects.setdefault(name, ProjectUsage()).add(ProjectUsage(documents, num_bytes, tokens))


def _integers(column: pa.Array[Any]) -> Counts:
    return column.to_numpy().astype(np.int64)
