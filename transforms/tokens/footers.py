"""Footers of token shards and sequences: which tokenizer and which unit made the file."""

from __future__ import annotations

import cppmill_core
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.tables import DATA_FORMAT_VERSION
from transforms.storage.folder import OutputFolder


def footer(key: str, tokenizer: cppmill_core.AnyTokenizer, max_token_id: int) -> dict[str, str]:
    """Return the metadata in the footer of a file of tokens.

    Args:
        key: The key of the unit that makes the file.
        tokenizer: The encoder.
        max_token_id: The largest id in the file.
    """
    facts = {**tokenizer_facts(tokenizer), "max_token_id": str(max_token_id), "unit": key}
    return {f"cppmill.{name}": value for name, value in facts.items()}


def tokenizer_facts(tokenizer: cppmill_core.AnyTokenizer) -> dict[str, str]:
    """Return what the footers of all files of a tokenizer have in common."""
    return {
        "format": str(DATA_FORMAT_VERSION),
        "tokenizer": tokenizer.digest,
        "vocab_size": str(tokenizer.vocab_size),
    }


def check_footer(tokens: pq.ParquetFile, where: str, expected: dict[str, str]) -> None:
    """Raise IntegrityError, naming both values, if a file's footer does not say what it must.

    Args:
        tokens: The open file.
        where: Names it in the message.
        expected: Values by name, without the prefix `cppmill.`.
    """
    metadata = tokens.metadata.metadata or {}
    for name, value in expected.items():
        found = metadata.get(f"cppmill.{name}".encode(), b"").decode()
        if found != value:
            raise IntegrityError(f"{where}: its footer says {name} {found or 'nothing'}, but it is {value}")


def check_origin(out: OutputFolder, shard: str, tokenizer: cppmill_core.AnyTokenizer) -> None:
    """Raise IntegrityError, naming both digests, if a shard was not made with this tokenizer."""
    with out.open_ranges(shard) as file, pq.ParquetFile(file) as tokens:
        check_footer(tokens, out.where(shard), tokenizer_facts(tokenizer))
