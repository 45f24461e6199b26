"""The platforms of the documents in a file of tokens, collected as it is written, for a file of their own beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cppmill_core.batches import Ragged
from cppmill_core.platforms.documents import DocumentPlatforms

from schemas.errors import IntegrityError
from transforms.units.batches import list_column

ENDING = ".platforms"


@dataclass
class CollectedPlatforms:
    """The documents of a file so far: where each starts, how many platform ids it has, and these."""

    starts: list[npt.NDArray[np.int64]] = field(default_factory=list)
    counts: list[npt.NDArray[np.int64]] = field(default_factory=list)
    ids: list[npt.NDArray[np.uint16]] = field(default_factory=list)

    def add(self, starts: npt.NDArray[np.int64], documents: pa.RecordBatch) -> None:
        """Add the documents that follow: the place of each one's first token in the file, and its row."""
        lists = list_column(documents, "platform_ids")
        self.starts.append(starts)
        self.counts.append(np.diff(lists.offsets.to_numpy()).astype(np.int64))
        self.ids.append(lists.flatten().to_numpy())

    def write(self, path: Path, *, tokens: int) -> int:
        """Write the file for a `.bin` of so many tokens, read it back, and return its number of documents.

        Raises:
            IntegrityError: If what is read is not what was written.
        """
        offsets = np.concatenate([[0], *self.counts]).cumsum(dtype=np.int32)
        ids = Ragged(np.concatenate(self.ids), offsets)
        written = DocumentPlatforms(tokens, np.concatenate(self.starts), ids)
        written.save(path)
        read = DocumentPlatforms.load(path)
        if read.tokens != tokens or not all(map(np.array_equal, _arrays(read), _arrays(written))):
            raise IntegrityError(f"{path}: it differs from what was written; is the disk faulty? Export again")
        return len(written.starts)


def _arrays(platforms: DocumentPlatforms) -> tuple[npt.NDArray[Any], ...]:
    return platforms.starts, *platforms.ids
