"""The texts of a trial: documents to train on, in an order that a seed decides, and held-out documents to measure.

Only UTF-8 is taken, because libraries that read text would lose other bytes. Everything is held in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cppmill_core
import pyarrow as pa

from pipelines.tokenizers.texts import read_texts
from schemas.errors import ConfigError
from schemas.options import IngestOptions

_BATCH_BYTES = 4_000_000


@dataclass(frozen=True, kw_only=True)
class TrialText:
    """Documents.

    Attributes:
        contents: Their bytes, by `doc_id`.
        digest: The corpus' digest, as the receipt of a run of these documents has it.
        left_out: How many documents are not UTF-8.
    """

    contents: dict[str, bytes]
    digest: str
    left_out: int

    @property
    def num_bytes(self) -> int:
        """The bytes of all documents."""
        return sum(map(len, self.contents.values()))

    def to_json(self) -> dict[str, Any]:
        """Return what records say of the text."""
        return {
            "corpus": self.digest,
            "documents": len(self.contents),
            "bytes": self.num_bytes,
            "not_utf_8": self.left_out,
        }

    def mixed(self, seed: int) -> Iterator[list[bytes]]:
        """Yield all documents, again and again, in batches; each epoch in an order that seed and epoch decide."""
        epoch = 0
        while True:
            order = sorted(self.contents, key=lambda doc: hashlib.sha256(f"{seed} {epoch} {doc}".encode()).digest())
            yield from batches([self.contents[doc] for doc in order])
            epoch += 1


def batches(contents: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yield documents in lists of some megabytes."""
    batch, size = list[bytes](), 0
    for content in contents:
        if batch and size + len(content) > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(content)
        size += len(content)
    if batch:
        yield batch


def read_trial_text(
    places: Sequence[str], *, sample: float, argument: str, without: Container[str] = (), most_bytes: int | None = None
) -> TrialText:
    """Read the documents of runs and sources.

    Args:
        places: Folders of runs, and sources.
        sample: Take this share of the documents, chosen by path.
        argument: The argument that named the places, for messages.
        without: Leave out documents with these ids.
        most_bytes: Take only documents of so many bytes in all, those with the smallest `doc_id`.

    Raises:
        ConfigError: If there are no documents.
    """
    found: dict[str, tuple[str, str, bytes]] = {}
    left_out = 0
    for batch in read_texts(places, IngestOptions(sample=sample, detect_platforms=False), argument=argument):
        columns: list[Any] = [batch[name].to_pylist() for name in ("doc_id", "project", "path", "content")]
        for doc, project, path, content in zip(*columns, strict=True):
            if not _is_utf_8(content):
                left_out += 1
            elif content and doc not in without:
                found[doc] = (project, path, content)
    chosen = _first(found, most_bytes)
    if not chosen:
        raise ConfigError(f"{argument} {' '.join(places)}: no document to take; give another text, or more bytes")
    return TrialText(
        contents={doc: found[doc][2] for doc in chosen},
        digest=_digest({doc: found[doc] for doc in chosen}),
        left_out=left_out,
    )


def _is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _first(found: dict[str, tuple[str, str, bytes]], most_bytes: int | None) -> list[str]:
    """Return ids in order, up to a sum of bytes; what is too large for what is left is passed over."""
    chosen, left = [], most_bytes
    for doc in sorted(found):
        size = len(found[doc][2])
        if left is not None and size > left:
            continue
        chosen.append(doc)
        left = None if left is None else left - size
    return chosen


def _digest(found: dict[str, tuple[str, str, bytes]]) -> str:
    projects, paths, _ = zip(*found.values(), strict=True)
    columns = [pa.array(column, pa.string()) for column in (list(found), projects, paths)]
    return cppmill_core.corpus_digest_sum(columns[0], columns[1], columns[2]).hex()
