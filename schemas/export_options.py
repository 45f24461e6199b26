"""The typed options of exports, as they enter unit keys and the manifest of an export."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.options import Fraction, Options

SplitBy = Literal["project", "document"]
ShardFormat = Literal["bin", "megatron"]
Bos = Literal["dataset", "document", "none"]

ShardTokens = Annotated[int, Field(ge=1024, le=(1 << 31) - 1)]
"""The most is what the int32 in the header of a `.bin` shard can say."""

BOS_OF_FORMAT: dict[str, Bos] = {"bin": "document", "megatron": "dataset"}
SHARD_TOKENS_OF_FORMAT = {"bin": 100_000_000, "megatron": 1_000_000_000}

FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$"
"""A name that every file system takes as the beginning of a file's name."""


class ShardOptions(Options):
    """How token shards become files that training programs read.

    Attributes:
        format: `bin`, the shards of llm.c and modded-nanogpt, or `megatron`, pairs of `.bin` and `.idx`.
        split_by: What goes into one split as a whole: a project or a document.
        validation_fraction: Share of the projects or documents in the validation split.
        bos: The ids of a document: `dataset` as the dataset has them, `document` one BOS before the text and nothing
            behind it, `none` the text alone. By default what programs of the format expect: `document` for `bin`,
            `dataset` for `megatron`.
        shard_tokens: Tokens of each file but the last one of a split; with `megatron`, whose documents stay whole, of a
            file on average. By default 200 MB a file and 2 GB a pair.
        name: The names of the files begin with it.
    """

    format: ShardFormat = "bin"
    split_by: SplitBy = "project"
    validation_fraction: Fraction = 0.01
    bos: Bos = Field(default_factory=lambda given: BOS_OF_FORMAT[given["format"]])
    shard_tokens: ShardTokens = Field(default_factory=lambda given: SHARD_TOKENS_OF_FORMAT[given["format"]])
    name: Annotated[str, Field(pattern=FILE_NAME)] = "cpp"
