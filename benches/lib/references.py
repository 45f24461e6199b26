"""The ids that `tokenizers` gives for documents of any bytes, and their digests.

A document that is not UTF-8 is cut into its maximal valid runs, each encoded by itself, and single bytes, as the
encoder's contract says. Control tokens in text are ordinary text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from cppmill_core.byte_alphabet import CHARACTERS
from tokenizers import Encoding, Tokenizer

IdArray = npt.NDArray[np.uint32]

BATCH_BYTES = 2_000_000
"""About so much is encoded at once: each token takes `tokenizers` some hundred bytes of memory."""


class Reference:
    """A tokenizer.json as `tokenizers` loads it.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        """Load the file."""
        self.tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.encode_special_tokens = True
        vocab = json.loads(path.read_bytes())["model"]["vocab"]
        self._byte_ids: list[int] = [vocab[character] for character in CHARACTERS]

    def encode(self, documents: Iterable[bytes]) -> Iterator[IdArray]:
        """Yield the ids of each document."""
        for batch in _batches(documents):
            cut = [list(cut_runs(document)) for document in batch]
            texts = [run for runs in cut for run in runs if isinstance(run, str)]
            encoded = iter(self.tokenizer.encode_batch_fast(texts, add_special_tokens=False))
            for runs in cut:
                yield self._join(runs, encoded)

    def _join(self, runs: Sequence[str | bytes], encoded: Iterator[Encoding]) -> IdArray:
        ids: list[int] = []
        for run in runs:
            ids += next(encoded).ids if isinstance(run, str) else [self._byte_ids[byte] for byte in run]
        return np.array(ids, np.uint32)


def cut_runs(data: bytes) -> Iterator[str | bytes]:
    r"""Yield the maximal valid runs of UTF-8 as text, and what is between them as bytes.

    Example:
        >>> list(cut_runs(b"a\xff\xc3\xa9\xe2\x82"))
        ['a', b'\xff', 'é', b'\xe2\x82']
    """
    while data:
        try:
            yield data.decode()
        except UnicodeDecodeError as error:
            if error.start:
                yield data[: error.start].decode()
            yield data[error.start : error.end]
            data = data[error.end :]
        else:
            return


def is_utf8(content: bytes) -> bool:
    """Return whether a document is UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def digest_ids(ids: IdArray) -> bytes:
    """Return the SHA-256 of ids as little-endian 32-bit numbers."""
    return hashlib.sha256(ids.astype("<u4", copy=False).tobytes()).digest()


def digest_documents(documents: Iterable[IdArray]) -> str:
    """Return the digest of the ids of documents in their order.

    Example:
        >>> a, b = np.array([1, 2], np.uint32), np.array([3], np.uint32)
        >>> digest_documents([a, b]) == digest_documents([a[:1], np.array([2, 3], np.uint32)])
        False
    """
    return digest_all(map(digest_ids, documents))


def digest_all(digests: Iterable[bytes]) -> str:
    """Return the digest of documents whose digests these are, in their order."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


def split_ids(ids: npt.NDArray[np.unsignedinteger], offsets: npt.NDArray[np.integer]) -> Iterator[IdArray]:
    """Yield the ids of each document from all of them and where each document's begin."""
    wide = ids.astype(np.uint32, copy=False)
    yield from (wide[first:last] for first, last in zip(offsets[:-1], offsets[1:], strict=True))


def _batches(documents: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch, size = list[bytes](), 0
    for document in documents:
        if batch and size + len(document) > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document)
    if batch:
        yield batch
