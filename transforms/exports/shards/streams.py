"""The stream of a split: the ids of its documents, concatenated through all token shards.

The order follows the token shards' paths, and the rows in each. A place in the stream is a number of tokens, so
any stretch can be made on its own from the few token shards that hold it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.export_options import Bos, SplitBy
from transforms.exports.shards.splits import NAMED_BY, Split, split_rows
from transforms.tokens.shards import TokenIds
from transforms.units.batches import list_column

_COLUMNS = ["doc_id", "project", "path", "num_bytes", "token_ids", "platform_ids"]


@dataclass(frozen=True, kw_only=True)
class Borders:
    """The ids around the text of a document, in the dataset and in the stream.

    Attributes:
        wanted: What is asked for.
        bos: The id that each document of the dataset begins with, None if it has none.
        eos: The id that each ends with, None if it has none.
        added: The id to put before each document, None if there is nothing to add.
    """

    wanted: Bos
    bos: int | None
    eos: int | None
    added: int | None

    @property
    def cut(self) -> tuple[bool, bool]:
        """Whether the first and the last id of each document are left out."""
        return self.bos is not None and self.wanted == "none", self.eos is not None and self.wanted != "dataset"

    @property
    def more(self) -> int:
        """How many tokens more a document has in the stream than in the dataset."""
        return (self.added is not None) - sum(self.cut)


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """Which documents are in the stream, and which of their ids.

    Attributes:
        split: The split.
        split_by: What goes into one split as a whole.
        validation_fraction: Share of the projects or documents in the validation split.
        borders: The ids around the text of a document.
    """

    split: Split
    split_by: SplitBy
    validation_fraction: float
    borders: Borders


class Stretch(NamedTuple):
    """Consecutive documents of a stream.

    Attributes:
        begin: Place of the first one's first token.
        rows: Their rows in the dataset.
        ids: Their ids in the stream.
        lengths: How many ids each has.
    """

    begin: int
    rows: pa.RecordBatch
    ids: TokenIds
    lengths: npt.NDArray[np.int64]

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """The place of each document's first token."""
        starts: npt.NDArray[np.int64] = self.begin + np.cumsum(self.lengths) - self.lengths
        return starts


def read_stretches(
    shard: pq.ParquetFile, settings: StreamSettings, *, place: int, begin: int, end: int, where: str
) -> Iterator[Stretch]:
    """Yield the documents of a token shard that lie, wholly or in part, between two places of a stream.

    Row groups of which none does are not read.

    Args:
        shard: The token shard.
        settings: The stream.
        place: Where the shard's first document of the split begins in the stream.
        begin: The first place.
        end: The place after the last.
        where: Names the shard in errors.
    """
    named_by = NAMED_BY[settings.split_by]
    for number in range(shard.num_row_groups):
        names = _row_group(shard, number, [named_by, "num_tokens"])
        inside = split_rows(names.column(named_by), validation_fraction=settings.validation_fraction)
        chosen = np.flatnonzero(inside == (settings.split == "val"))
        lengths = names.column("num_tokens").to_numpy()[chosen].astype(np.int64) + settings.borders.more
        ends = place + np.cumsum(lengths)
        touched = (ends > begin) & (ends - lengths < end)
        if touched.any():
            rows = _row_group(shard, number, _COLUMNS).take(chosen[touched])
            ids = border_ids(rows, settings.borders, where=where)
            yield Stretch(int((ends - lengths)[touched][0]), rows, ids, lengths[touched])
        place = int(ends[-1]) if len(ends) else place
        if place >= end:
            return


def border_ids(rows: pa.RecordBatch, borders: Borders, *, where: str) -> TokenIds:
    """Return the ids of documents as a stream has them, one document after the other.

    Raises:
        IntegrityError: If a document does not begin or end with the id that the dataset is to have there.
    """
    lists = list_column(rows, "token_ids")
    ids: TokenIds = lists.flatten().to_numpy()
    offsets = lists.offsets.to_numpy().astype(np.int64) - lists.offsets[0].as_py()
    places = {"begin": (offsets[:-1], borders.bos), "end": (offsets[1:] - 1, borders.eos)}
    for name, (at, wanted) in places.items():
        if wanted is not None and not np.array_equal(ids[at], np.full(len(at), wanted)):
            raise IntegrityError(f"{where}: a document does not {name} with id {wanted}, as the run's receipt says")
    keep = np.ones(len(ids), dtype=np.bool_)
    for (at, _), cut in zip(places.values(), borders.cut, strict=True):
        if cut:
            keep[at] = False
    if borders.added is not None:
        ids, keep = np.insert(ids, offsets[:-1], borders.added), np.insert(keep, offsets[:-1], True)
    return ids if keep.all() else ids[keep]


def _row_group(shard: pq.ParquetFile, number: int, columns: list[str]) -> pa.RecordBatch:
    table = shard.read_row_group(number, columns=columns, use_threads=False).combine_chunks()
    batches: list[pa.RecordBatch] = table.to_batches()
    return batches[0]
