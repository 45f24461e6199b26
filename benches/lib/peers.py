"""What the comparisons with `tokenizers` share: both sides' names and the sample.

Nothing here or in the comparisons imports Beam: it would count in both sides' memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

OURS, THEIRS = "cppmill", "tokenizers"


def read_sample(path: Path) -> pa.RecordBatch:
    """Read the sample that `benches.lib.corpus.write_sample` wrote, as one batch."""
    return pq.read_table(path).combine_chunks().to_batches()[0]


def read_texts(path: Path) -> list[str]:
    """Read the sample's documents as text."""
    contents: list[Any] = read_sample(path)["content"].to_pylist()
    return [content.decode() for content in contents]
