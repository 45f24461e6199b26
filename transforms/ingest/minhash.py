"""MinHash signatures of documents, by which near-duplicates are found.

The signature of a document has, for each permutation of all shingles, the smallest of the document's own shingles. The
share of permutations in which two documents agree estimates the Jaccard similarity of their sets of shingles (Broder,
1997). rensa computes them. One byte of each is kept, and two bits of it are compared (Li and König, 2010, "b-bit
minwise hashing"): one in four agrees by chance, which the estimate takes into account.

A unit's signatures are kept in `.cache/signatures`, for every document that passed the filters and has a code token;
they match the rows of its fingerprints, whose digest is in the footer, beside one of the rows of signatures: checksums
of Parquet cover pages, not where they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, Self

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import ConfigError, IntegrityError
from schemas.options import IngestOptions
from schemas.tables import signatures_schema
from transforms.ingest.shingles import Shingles, shingle
from transforms.storage.folder import CACHE, OutputFolder, naming_damage

Signatures = npt.NDArray[np.uint8]
Sketches = npt.NDArray[np.uint64]

BATCH_ROWS = 1024
"""Rows of signatures that are read at a time."""

_FORMAT = 2
_SEED = 1
_FOLD = np.uint32(0x9E3779B1)
_BATCH_BYTES = 1 << 20
_DIGEST, _ROWS = b"cppmill.fingerprints", b"cppmill.rows"
NAME = b"cppmill.name"
"""The key of the footer of working state that has the name of the file in OUT: its name says what it was made from."""

_LOW_BITS = np.uint64(0x5555555555555555)
_CHANCE = 0.25
"""The share of two bits that agree by chance."""


class Signed(NamedTuple):
    """Signatures as they are read.

    Attributes:
        rows: Row numbers in the unit's fingerprints.
        signatures: A row of bytes for each, one a permutation.
    """

    rows: npt.NDArray[np.uint32]
    signatures: Signatures


def finds_near_duplicates(options: IngestOptions) -> bool:
    """Return whether near-duplicates are searched for."""
    return options.near_duplicate_similarity is not None


def settings(options: IngestOptions) -> dict[str, Any]:
    """Return all that decides the signature of a document.

    Raises:
        ConfigError: If rensa is not installed.
    """
    return {
        "format": _FORMAT,
        "core": cppmill_core.__version__,
        "rensa": _library_version(),
        "tokens": options.near_duplicate_tokens,
        "permutations": options.near_duplicate_permutations,
    }


@cache
def _library_version() -> str:
    try:
        return version("rensa")
    except PackageNotFoundError as error:
        raise ConfigError(
            "ingest.near_duplicate_similarity: it needs rensa: pip install 'cppmill[near-duplicates]'"
        ) from error


def signatures_name(key: str, options: IngestOptions) -> str:
    """Return the path, relative to OUT, of the signatures of the input unit with a key."""
    value = json.dumps({"unit": key, **settings(options)}, sort_keys=True)
    return f"{CACHE}/signatures/{hashlib.sha256(value.encode('ascii')).hexdigest()}.parquet"


def sign(shingles: Shingles, permutations: int) -> Signatures:
    """Return the signature of each document, a row of one byte a permutation; all of them must have a shingle."""
    import rensa

    matrix = rensa.RMinHash.digest_matrix_from_flat_token_hashes(*shingles, permutations, _SEED)
    least = np.array(matrix.to_rows(), dtype=np.uint32).reshape(-1, permutations)
    return np.asarray((least * _FOLD) >> np.uint32(24), dtype=np.uint8)


def sketch(signatures: Signatures) -> Sketches:
    """Return two bits of each byte of the signatures, 32 of them a number."""
    bits = np.unpackbits(signatures[..., None], axis=-1, count=2).reshape(len(signatures), 2 * signatures.shape[1])
    return np.packbits(bits, axis=-1).view("<u8")


def agreeing(first: Sketches, second: Sketches) -> npt.NDArray[np.int64]:
    """Return in how many permutations the sketches of two documents agree, for each row."""
    differing = first ^ second
    differing = (differing | (differing >> np.uint64(1))) & _LOW_BITS
    return np.asarray(32 * first.shape[-1] - np.bitwise_count(differing).sum(axis=-1, dtype=np.int64))


def least_agreeing(similarity: float, permutations: int) -> float:
    """Return in how many permutations the sketches of documents of a similarity agree on average."""
    return permutations * (_CHANCE + (1 - _CHANCE) * similarity)


def estimate(agreed: npt.NDArray[np.int64], permutations: int) -> npt.NDArray[np.float64]:
    """Return the similarity that this many agreeing permutations imply, from 0 to 1.

    Example:
        >>> estimate(np.array([64, 256]), 256).tolist()
        [0.0, 1.0]
    """
    return np.clip((agreed / permutations - _CHANCE) / (1 - _CHANCE), 0.0, 1.0)


class SignatureWriter:
    """Signs the documents of a unit, as they are read, into a file."""

    def __init__(self, path: Path, name: str, options: IngestOptions) -> None:
        """Open the file, whose name in OUT goes into its footer."""
        self._name = name
        self._tokens, self._permutations = options.near_duplicate_tokens, options.near_duplicate_permutations
        self._schema = signatures_schema(self._permutations)
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd", write_page_checksum=True)
        self._waiting, self._waiting_bytes = list[tuple[int, bytes]](), 0
        self._digest, self.count = _RowsDigest(), 0

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._writer.close()

    def add(self, row: int, content: bytes) -> None:
        """Take a document up, the row of its fingerprint and its bytes."""
        self._waiting.append((row, content))
        self._waiting_bytes += len(content)
        if self._waiting_bytes >= _BATCH_BYTES:
            self._write()

    def finish(self, digest: str) -> None:
        """Write what is left, and the digest of the unit's fingerprints."""
        self._write()
        footer = {NAME: self._name, _DIGEST: digest, _ROWS: self._digest.hexdigest()}
        self._writer.add_key_value_metadata({key.decode("ascii"): value for key, value in footer.items()})

    def write(self, signed: Signed) -> None:
        """Write signatures of rows that follow those before."""
        if len(signed.rows):
            column = pa.FixedSizeBinaryArray.from_buffers(
                self._schema.field("signature").type,
                len(signed.rows),
                [None, pa.py_buffer(signed.signatures.tobytes())],
            )
            self._writer.write_batch(pa.RecordBatch.from_arrays([pa.array(signed.rows), column], schema=self._schema))
            self._digest.add(signed)
            self.count += len(signed.rows)

    def _write(self) -> None:
        shingles = shingle([content for _, content in self._waiting], self._tokens)
        has_any = np.diff(shingles.offsets.astype(np.int64)) > 0
        rows = np.array([row for row, _ in self._waiting], dtype=np.uint32)[has_any]
        self._waiting.clear()
        self._waiting_bytes = 0
        if len(rows):
            offsets = np.unique(shingles.offsets)
            self.write(Signed(rows, sign(Shingles(shingles.hashes, offsets), self._permutations)))


class _RowsDigest:
    """A digest of signatures and their rows, which does not depend on how they come in batches."""

    def __init__(self) -> None:
        self._rows, self._signatures = hashlib.sha256(), hashlib.sha256()

    def add(self, signed: Signed) -> None:
        self._rows.update(signed.rows.astype("<u4").tobytes())
        self._signatures.update(signed.signatures.tobytes())

    def hexdigest(self) -> str:
        return hashlib.sha256(self._rows.digest() + self._signatures.digest()).hexdigest()


def read_signatures(path: Path, permutations: int) -> Iterator[Signed]:
    """Yield the signatures of a unit in order, in batches.

    Raises:
        IntegrityError: If the file is damaged.
    """
    with naming_first_pass(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        digest, expected = _RowsDigest(), (file.metadata.metadata or {})[_ROWS].decode("ascii")
        if not file.schema_arrow.equals(signatures_schema(permutations)):
            raise ValueError("it has other columns")
        for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
            if any(column.null_count for column in batch.columns):
                raise ValueError("it has no value where there must be one")
            data = b"".join(value.as_buffer() for value in batch.column("signature"))
            signatures = np.frombuffer(data, dtype=np.uint8).reshape(-1, permutations)
            signed = Signed(batch.column("row").to_numpy(), signatures)
            digest.add(signed)
            yield signed
        if digest.hexdigest() != expected:
            raise ValueError("its rows are not those that were written")


@contextmanager
def naming_first_pass(path: Path) -> Iterator[None]:
    """Turn what is said of a damaged file of the first pass in the block into an error that names it.

    Raises:
        IntegrityError: Naming it.
        ResourceError: If the machine refused something.
    """
    advice = "run again with --rehash, which makes it again"
    try:
        with naming_damage(str(path), advice):
            yield
    except (cppmill_core.CoreError, KeyError, ValueError) as error:
        raise IntegrityError(f"{path}: damaged ({error}); {advice}") from error


def copy_signatures(
    source: Path, path: Path, name: str, *, kept: npt.NDArray[np.bool_], digest: str, options: IngestOptions
) -> int:
    """Write the signatures of the rows that are kept, with the digest of their fingerprints; return their number.

    Raises:
        IntegrityError: If the source is damaged.
    """
    with SignatureWriter(path, name, options) as writer:
        for rows, signatures in read_signatures(source, options.near_duplicate_permutations):
            writer.write(Signed(rows[kept[rows]], signatures[kept[rows]]))
        writer.finish(digest)
    return writer.count


def signed_digest(out: OutputFolder, name: str) -> str:
    """Return the digest of the fingerprints that a file of signatures is of.

    Raises:
        FileNotFoundError: If there is no such file.
        IntegrityError: If it is not a file of signatures.
    """
    try:
        with out.open_ranges(name) as file:
            metadata = pq.read_metadata(file).metadata or {}
        if metadata.get(NAME, name.encode()) != name.encode():  # earlier versions wrote none
            raise ValueError("it is another file")
        return str(metadata[_DIGEST].decode("ascii"))
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise IntegrityError(
            f"{out.where(name)}: not a file of signatures ({error}); delete it and run again"
        ) from error
