"""The typed options of exports, as they enter unit keys and the manifest of an export."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.declarations import Option
from schemas.options import Fraction, Options

SplitBy = Literal["project", "document"]
ShardFormat = Literal["bin", "megatron"]
Bos = Literal["dataset", "document", "none"]

ShardTokens = Annotated[int, Field(ge=1024, le=(1 << 31) - 1)]
"""The upper bound is what the int32 in the header of a `.bin` shard can hold."""

BOS_OF_FORMAT: dict[str, Bos] = {"bin": "document", "megatron": "dataset"}
SHARD_TOKENS_OF_FORMAT = {"bin": 100_000_000, "megatron": 1_000_000_000}

_BOS_DEFAULT = f"{BOS_OF_FORMAT['bin']}; {BOS_OF_FORMAT['megatron']} with --format megatron"
_SHARD_TOKENS_DEFAULT = "{bin:,}; {megatron:,} with --format megatron".format(**SHARD_TOKENS_OF_FORMAT)

FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$"
"""A name with which a file's name can begin on every file system."""


class ShardOptions(Options):
    """How token shards become files that training programs read."""

    format: Annotated[ShardFormat, Option()] = "bin"
    """`bin`: the shards of llm.c and modded-nanogpt. `megatron`: pairs of `.bin` and `.idx`."""

    split_by: Annotated[SplitBy, Option()] = "project"
    """What stays in one split as a whole."""

    validation_fraction: Annotated[Fraction, Option()] = 0.01
    """Share of the projects or documents in the validation split, chosen by the hash of the name."""

    bos: Annotated[Bos, Option(default=_BOS_DEFAULT)] = Field(
        default_factory=lambda given: BOS_OF_FORMAT[given["format"]]
    )
    """`document`: BOS before each document and nothing after it. `dataset`: as in the run. `none`: the text alone."""

    shard_tokens: Annotated[ShardTokens, Option(default=_SHARD_TOKENS_DEFAULT)] = Field(
        default_factory=lambda given: SHARD_TOKENS_OF_FORMAT[given["format"]]
    )
    """Tokens per file, except for the last one of a split.

    With `megatron`, whose documents stay whole, it is an average. The defaults are 200 MB per file and 2 GB per pair.
    """

    name: Annotated[str, Field(pattern=FILE_NAME), Option()] = "cpp"
    """The names of the files begin with it: NAME_train_000000.bin."""
