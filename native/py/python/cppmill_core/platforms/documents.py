"""The platforms of the documents in a `.bin` file, which `cppmill shards --platform-ids` writes beside it.

A `.platforms` file is little-endian: the eight bytes `CPPMPLAT`; version 1, the tokens of the `.bin`, its documents D
and the platform ids V, each int64; `starts`, int64 [D]; `offsets`, int32 [D + 1]; `ids`, uint16 [V]. A document that
went on from the file before is the first one, and starts at 0.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cppmill_core._native import CorruptDataError
from cppmill_core.batches import Ragged

__all__ = ["DocumentPlatforms"]

_MAGIC, _VERSION = int.from_bytes(b"CPPMPLAT", "little"), 1
_HEADER = 5

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class DocumentPlatforms:
    """Which documents a stretch of tokens has, and the platforms of each.

    Attributes:
        tokens: How many tokens there are.
        starts: The place of each document's first token, int64, ascending; 0 for one that began before.
        ids: The platform ids of each document: uint16 values, int32 offsets.
    """

    tokens: int
    starts: npt.NDArray[np.int64]
    ids: Ragged

    @classmethod
    def load(cls, *paths: PathLike) -> DocumentPlatforms:
        """Return the documents of a file, or of several whose tokens are read as one, in this order.

        Args:
            paths: `.platforms` files. A document that goes on in the next file is there once for each of them.

        Raises:
            OSError: If one cannot be read.
            CorruptDataError: If one is no such file, or damaged.

        Example:
            >>> platforms = DocumentPlatforms.load("shards/cpp_train_000000.platforms")  # doctest: +SKIP
        """
        parts = [_read(Path(path)) for path in paths]
        tokens = np.cumsum([0, *(part.tokens for part in parts)])
        values = np.cumsum([0, *(len(part.ids.values) for part in parts)], dtype=np.int32)
        offsets = [part.ids.offsets[:-1] + first for part, first in zip(parts, values[:-1], strict=True)]
        return cls(
            int(tokens[-1]),
            np.concatenate([part.starts + first for part, first in zip(parts, tokens[:-1], strict=True)]),
            Ragged(np.concatenate([part.ids.values for part in parts]), np.concatenate([*offsets, values[-1:]])),
        )

    def save(self, path: PathLike) -> None:
        """Write the file."""
        values, offsets = self.ids
        header = [_MAGIC, _VERSION, self.tokens, len(self.starts), len(values)]
        with Path(path).open("wb") as file:
            for array, kind in ((header, "<i8"), (self.starts, "<i8"), (offsets, "<i4"), (values, "<u2")):
                file.write(np.asarray(array, kind).tobytes())

    def documents_at(self, places: Any) -> npt.NDArray[np.int64]:  # noqa: ANN401 - what numpy takes
        """Return which document each token is of: a number below the number of documents, in the shape of `places`.

        Example:
            >>> ids = Ragged(np.array([2], np.uint16), np.array([0, 1, 1], np.int32))
            >>> DocumentPlatforms(9, np.array([0, 4]), ids).documents_at([0, 3, 4, 8])
            array([0, 0, 1, 1])
        """
        found: npt.NDArray[np.int64] = np.searchsorted(self.starts, places, side="right") - 1
        return found


def _read(path: Path) -> DocumentPlatforms:
    data = path.read_bytes()
    header: Sequence[int] = np.frombuffer(data, "<i8", _HEADER).tolist() if len(data) >= 8 * _HEADER else ()
    if not header or header[:2] != [_MAGIC, _VERSION]:
        raise CorruptDataError(f"{path}: not a file of platforms of version {_VERSION}: it begins with {data[:16]!r}")
    _, _, tokens, documents, values = header
    begin = 8 * _HEADER
    expected = begin + 8 * documents + 4 * (documents + 1) + 2 * values
    if len(data) != expected:
        raise CorruptDataError(f"{path}: {len(data):,} bytes, and its header says {expected:,}")
    starts = np.frombuffer(data, "<i8", documents, begin)
    offsets = np.frombuffer(data, "<i4", documents + 1, begin + 8 * documents)
    ids = np.frombuffer(data, "<u2", values, begin + 12 * documents + 4)
    if np.any(np.diff(starts) < 0) or np.any(np.diff(offsets) < 0) or offsets[0] != 0 or offsets[-1] != values:
        raise CorruptDataError(f"{path}: its starts or offsets are not in order")
    return DocumentPlatforms(tokens, starts, Ragged(ids, offsets))
