"""Token shards: named by the receipt of their run, with checked bytes. The footer names the tokenizer and the unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.tables import DATA_FORMAT_VERSION
from transforms.storage.folder import OutputFolder, check_sha256, naming_damage

TokenIds = npt.NDArray[np.unsignedinteger[Any]]
"""The ids of a document, or of several in a row."""


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
def open_token_shard(run: OutputFolder, shard: TokenShard, *, is_checked: bool = False) -> Iterator[pq.ParquetFile]:
    """Open a token shard whose bytes are those in the run's receipt.

    Args:
        run: The run.
        shard: The shard.
        is_checked: Whether its bytes have been compared before.

    Raises:
        IntegrityError: If they are others, or there is no such file.
    """
    remedy = "run `cppmill run` again"
    with ExitStack() as stack:
        try:
            sha256 = None if is_checked else shard.sha256
            file = stack.enter_context(open_shard(run, shard.path, sha256=sha256, remedy=remedy))
        except FileNotFoundError as error:
            raise IntegrityError(f"{run.where(shard.path)}: missing, and the receipt names it; {remedy}") from error
        yield file


@contextmanager
def open_shard(out: OutputFolder, name: str, *, sha256: str | None, remedy: str) -> Iterator[pq.ParquetFile]:
    """Open a shard whose bytes have the SHA-256 that its receipt names.

    Args:
        out: The run's folder.
        name: The shard, relative to it.
        sha256: The SHA-256; None checks nothing.
        remedy: What to do about another one, for the message.

    Raises:
        IntegrityError: If the bytes have another SHA-256.
    """
    with out.open_local(name) as path:
        if sha256 is not None:
            check_sha256(path, sha256, where=out.where(name), advice=remedy)
        with naming_damage(out.where(name)), pq.ParquetFile(path) as file:
            yield file


def take_rows(file: pq.ParquetFile, chosen: npt.NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.Table:
    """Return the chosen rows of a shard, at least one, given in ascending order; row groups without one are not read.

    Args:
        file: The shard.
        chosen: Numbers of rows.
        columns: The columns to read; all by default.
    """
    found, start = list[pa.Table](), 0
    for number in range(file.num_row_groups):
        end = start + file.metadata.row_group(number).num_rows
        inside = chosen[(chosen >= start) & (chosen < end)] - start
        if len(inside):
            group = file.read_row_group(number, columns=list(columns) if columns else None, use_threads=False)
            found.append(group.take(inside))
        start = end
    return pa.concat_tables(found)


def sum_row_digests(rows: pa.RecordBatch, *, threads: int) -> str:
    """Return the sum of the row digests that the dataset's digest is made of, in hexadecimal."""
    doc_id, project, path = (rows.column(name) for name in ("doc_id", "project", "path"))
    num_bytes, token_ids, platforms = (rows.column(name) for name in ("num_bytes", "token_ids", "platform_ids"))
    return cppmill_core.dataset_digest_sum(doc_id, project, path, num_bytes, token_ids, platforms, threads).hex()


def footer(key: str, tokenizer: cppmill_core.AnyTokenizer, max_token_id: int) -> dict[str, str]:
    """Return the metadata in the footer of a file of tokens."""
    facts = {**tokenizer_facts(tokenizer), "max_token_id": str(max_token_id), "unit": key}
    return {f"cppmill.{name}": value for name, value in facts.items()}


def tokenizer_facts(tokenizer: cppmill_core.AnyTokenizer) -> dict[str, str]:
    """Return what the footers of all files of a tokenizer have in common."""
    return facts_of(tokenizer.digest, tokenizer.vocab_size)


def facts_of(digest: str, vocab_size: int) -> dict[str, str]:
    """Return the same of a tokenizer that is not loaded."""
    return {"format": str(DATA_FORMAT_VERSION), "tokenizer": digest, "vocab_size": str(vocab_size)}


_FOOTER = {
    b"ARROW:schema",
    *(f"cppmill.{n}".encode() for n in ("format", "tokenizer", "vocab_size", "max_token_id", "unit")),
}
"""The keys of the footer of a file of tokens."""


def check_footer(tokens: pq.ParquetFile, where: str, expected: dict[str, str]) -> None:
    """Raise IntegrityError, naming both values, if a file's footer does not say what it must, or has another key.

    Args:
        tokens: The open file.
        where: Names it in the message.
        expected: Values by name, without the prefix `cppmill.`.
    """
    metadata = tokens.metadata.metadata or {}
    for key in sorted(metadata.keys() - _FOOTER):
        raise IntegrityError(f"{where}: its footer has the key {key.decode(errors='replace')!r}, which is none of ours")
    for name, value in expected.items():
        found = metadata.get(f"cppmill.{name}".encode(), b"").decode()
        if found != value:
            raise IntegrityError(f"{where}: its footer says {name} {found or 'nothing'}, but it is {value}")


def check_origin(out: OutputFolder, shard: str, tokenizer: cppmill_core.AnyTokenizer) -> None:
    """Raise IntegrityError, naming both digests, if a shard was not made with this tokenizer."""
    with out.open_ranges(shard) as file, pq.ParquetFile(file) as tokens:
        check_footer(tokens, out.where(shard), tokenizer_facts(tokenizer))
