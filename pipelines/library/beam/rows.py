"""Beam rows for the output of the transforms: named tuples, with the names and the order of the columns.

Beam has no unsigned numbers, so counts and ids are 64-bit integers here. Beam reads the annotations when a pipeline is
constructed, so they must not be strings.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Document(NamedTuple):
    """A row of DOCUMENTS: the output of `DetectPlatforms` after `ReadCpp`."""

    doc_id: str
    project: str
    path: str
    content: bytes
    num_bytes: int
    license: str | None
    platform_ids: Sequence[int]
    platform_info: str


class Tokens(NamedTuple):
    """A row of a token shard: the output of `Encode`."""

    doc_id: str
    project: str
    path: str
    num_bytes: int
    num_tokens: int
    token_ids: Sequence[int]
    platform_ids: Sequence[int]
    platform_info: str


class WordCount(NamedTuple):
    """A row of WORDS: the output of `CountTokens`."""

    word: bytes
    count: int  # type: ignore[assignment]  # tuple.count is hidden


class TokenFile(NamedTuple):
    """A file that `WriteTokens` has published.

    Attributes:
        path: Relative to the folder.
        sha256: Of its bytes, in lower-case hexadecimal digits.
        num_bytes: Its size.
        documents: Its rows.
        tokens: The ids of all rows.
    """

    path: str
    sha256: str
    num_bytes: int
    documents: int
    tokens: int
