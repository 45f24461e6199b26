"""Vocabularies of other projects on the same text: o200k_base, and the words of the cl100k pattern to train on.

The ranks of o200k_base are in the package bpe-openai; tiktoken encodes with them. Words of the cl100k pattern are
counted by ffbpe, whose splitter is tested against the regular expression.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

import pyarrow as pa
import tiktoken

from benches.lib.harness import BenchmarkError
from benches.lib.texts import SourceText
from benches.lib.trainers import count_with_ffbpe
from tokenizer_build.compare.candidates import Ranks, read_ranks
from tokenizer_build.compare.published_patterns import CL100K, O200K

O200K_FILE = "bpe_openai/data/o200k_base.tiktoken.gz"
O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Of the published file."""

TEXTS_AT_ONCE = 1000


def o200k_base() -> tiktoken.Encoding:
    """Return o200k_base, without its special tokens.

    Raises:
        BenchmarkError: If the package's ranks are not the published ones.
    """
    path = Path(str(distribution("bpe-openai").locate_file(O200K_FILE)))
    if hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest() != O200K_SHA256:
        raise BenchmarkError("bpe-openai: its o200k_base is not the published one; install the pinned version")
    return Ranks("o200k_base", read_ranks(path), O200K).encoding


def count_o200k(texts: list[SourceText], threads: int) -> int:
    """Return how many tokens of o200k_base documents have."""
    encoding = o200k_base()
    contents = [text.content for text in texts]
    total = 0
    for start in range(0, len(contents), TEXTS_AT_ONCE):
        chunk = contents[start : start + TEXTS_AT_ONCE]
        total += sum(map(len, encoding.encode_ordinary_batch(chunk, num_threads=threads)))
    return total


def count_cl100k(contents: Iterable[str]) -> list[pa.RecordBatch]:
    """Count the words of the cl100k pattern."""
    return count_with_ffbpe(contents, CL100K)
