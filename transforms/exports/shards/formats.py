"""The files of training programs: `.bin` shards as llm.c and modded-nanogpt have them, pairs as Megatron-LM has them.

A `.bin` shard (llm.c, `dev/data/data_common.py`) is 256 little-endian int32, of which the first three are a magic
number, the version and the number of tokens, and then the tokens, uint16. A pair of Megatron-LM
(`megatron/core/datasets/indexed_dataset.py`) is a `.bin` of tokens alone and a `.idx` that says their type, the length
and place of each sequence and which sequences each document has; here a document is one sequence.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.errors import IntegrityError
from transforms.tokens.shards import TokenIds

BIN_MAGIC, BIN_VERSION = 20240520, 1
BIN_HEADER_BYTES = 256 * 4
MAX_BIN_VOCABULARY = 1 << 16

INDEX_MAGIC, INDEX_VERSION = b"MMIDIDX\x00\x00", 1
INDEX_CODES = {"<u2": 8, "<i4": 4}
"""The numbers of Megatron's `DType` for what ids are written as."""

_CHUNK_BYTES = 1 << 22


class WrittenIds(NamedTuple):
    """What went into a file: tokens, and the SHA-256 of their bytes as the file has them."""

    tokens: int
    sha256: str


def megatron_type(vocab_size: int) -> str:
    """Return what Megatron's ids are written as: uint16 while every id fits, else int32, as there is no uint32."""
    return "<u2" if vocab_size <= MAX_BIN_VOCABULARY else "<i4"


def write_bin(path: Path, chunks: Iterable[TokenIds], *, tokens: int) -> WrittenIds:
    """Write a `.bin` shard.

    Raises:
        IntegrityError: If there are more or fewer.
    """
    header = np.zeros(256, dtype="<i4")
    header[:3] = BIN_MAGIC, BIN_VERSION, tokens
    written = _write_ids(path, header.tobytes(), chunks, "<u2")
    if written.tokens != tokens:
        raise IntegrityError(
            f"{path.name}: {written.tokens:,} tokens came for a shard of {tokens:,}; token shards or "
            "counts have changed: export again"
        )
    return written


def write_ids(path: Path, chunks: Iterable[TokenIds], *, kind: str) -> WrittenIds:
    """Write the `.bin` of a Megatron pair: ids alone, as `kind` says."""
    return _write_ids(path, b"", chunks, kind)


def write_index(path: Path, lengths: npt.NDArray[np.int64], *, kind: str) -> None:
    """Write the `.idx` of a Megatron pair."""
    ends = np.cumsum(lengths, dtype=np.int64)
    with path.open("wb") as file:
        file.write(INDEX_MAGIC)
        file.write(struct.pack("<QBQQ", INDEX_VERSION, INDEX_CODES[kind], len(lengths), len(lengths) + 1))
        file.write(lengths.astype("<i4").tobytes())
        file.write(((ends - lengths) * np.dtype(kind).itemsize).astype("<i8").tobytes())
        file.write(np.arange(len(lengths) + 1, dtype="<i8").tobytes())


def read_bin(path: Path) -> TokenIds:
    """Return the ids of a `.bin` shard, mapped into memory.

    Raises:
        IntegrityError: If the header is not one, or the file has more or fewer tokens than it says.
    """
    header = np.fromfile(path, dtype="<i4", count=256)
    if len(header) < 256 or tuple(header[:2]) != (BIN_MAGIC, BIN_VERSION):
        raise IntegrityError(
            f"{path}: not a .bin shard: its header begins with {header[:2].tolist()}, not {[BIN_MAGIC, BIN_VERSION]}"
        )
    if header[3:].any():
        raise IntegrityError(f"{path}: its header has more than magic number, version and number of tokens")
    found = (path.stat().st_size - BIN_HEADER_BYTES) / 2
    if found != header[2]:
        raise IntegrityError(f"{path}: its header says {header[2]:,} tokens, its size {found:,}")
    return np.memmap(path, dtype="<u2", mode="r", offset=BIN_HEADER_BYTES)


class MegatronIndex(NamedTuple):
    """What a `.idx` says: how ids are written, the tokens and the byte offset of each sequence, and the documents'."""

    kind: str
    lengths: npt.NDArray[np.int32]
    pointers: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]


def read_index(path: Path) -> MegatronIndex:
    """Return what the `.idx` of a Megatron pair says.

    Raises:
        IntegrityError: If it is no such file, or shorter or longer than it says.
    """
    data = path.read_bytes()
    begin = len(INDEX_MAGIC) + struct.calcsize("<QBQQ")
    kinds = {code: kind for kind, code in INDEX_CODES.items()}
    if len(data) < begin or not data.startswith(INDEX_MAGIC):
        raise IntegrityError(f"{path}: not a Megatron index: it begins with {data[:9]!r}, not {INDEX_MAGIC!r}")
    version, code, sequences, documents = struct.unpack_from("<QBQQ", data, len(INDEX_MAGIC))
    expected = begin + 12 * sequences + 8 * documents
    if version != INDEX_VERSION or code not in kinds or len(data) != expected:
        raise IntegrityError(
            f"{path}: version {version}, type {code}, {len(data):,} bytes; expected version {INDEX_VERSION}, type "
            f"{' or '.join(map(str, kinds))}, {expected:,} bytes"
        )
    lengths = np.frombuffer(data, "<i4", sequences, begin)
    pointers = np.frombuffer(data, "<i8", sequences, begin + 4 * sequences)
    return MegatronIndex(kinds[code], lengths, pointers, np.frombuffer(data, "<i8", documents, begin + 12 * sequences))


def hash_ids(path: Path, *, skip: int = 0) -> str:
    """Return the SHA-256 of a file's bytes after the first `skip`."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(skip)
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _write_ids(path: Path, header: bytes, chunks: Iterable[TokenIds], kind: str) -> WrittenIds:
    digest, tokens = hashlib.sha256(), 0
    with path.open("wb") as file:
        file.write(header)
        for chunk in chunks:
            data = chunk.astype(kind, copy=False).tobytes()
            file.write(data)
            digest.update(data)
            tokens += len(chunk)
    return WrittenIds(tokens, digest.hexdigest())
