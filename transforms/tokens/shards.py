"""The token shards of a finished run, as exports read them: named by its receipt, their bytes checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.parquet as pq

from schemas.digests import sha256_file
from schemas.errors import IntegrityError
from transforms.storage.folder import OutputFolder


@dataclass(frozen=True, kw_only=True)
class TokenShard:
    """A token shard as the receipt of its run has it.

    Attributes:
        path: Relative to the run.
        sha256: Of its bytes.
        rows: Documents.
        tokens: Ids of all documents, BOS and EOS among them where the run puts them.
        num_bytes: Bytes of text.
    """

    path: str
    sha256: str
    rows: int
    tokens: int
    num_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def token_shards(receipt: dict[str, Any]) -> list[TokenShard]:
    """Return the token shards of a run's receipt, in its order: by path."""
    return [
        TokenShard(
            path=line["path"], sha256=line["sha256"], rows=line["rows"], tokens=line["tokens"], num_bytes=line["bytes"]
        )
        for line in receipt["dataset"]["shards"]
    ]


@contextmanager
def open_token_shard(run: OutputFolder, shard: TokenShard) -> Iterator[pq.ParquetFile]:
    """Open a token shard whose bytes are those that the receipt speaks of.

    Raises:
        IntegrityError: If they are others.
    """
    with run.open_local(shard.path) as path:
        found = sha256_file(path)
        if found != shard.sha256:
            raise IntegrityError(
                f"{run.where(shard.path)}: its SHA-256 is {found}, the run's receipt says {shard.sha256}; run "
                "`cppmill run` again"
            )
        with pq.ParquetFile(path) as file:
            yield file
