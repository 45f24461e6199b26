"""The typed options of exports, as they enter unit keys and the manifest of an export."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from schemas.declarations import Option
from schemas.options import Fraction, Options, leave_out

SplitBy = Literal["project", "document"]
ShardFormat = Literal["bin", "megatron"]
Bos = Literal["dataset", "document", "none"]
PrefixLoss = Literal["loss", "no-loss"]

ShardTokens = Annotated[int, Field(ge=1024, le=(1 << 31) - 1)]
"""The upper bound is the largest int32, because the header of a `.bin` shard has an int32."""

BOS_OF_FORMAT: dict[str, Bos] = {"bin": "document", "megatron": "dataset"}
SHARD_TOKENS_OF_FORMAT = {"bin": 100_000_000, "megatron": 1_000_000_000}

_BOS_DEFAULT = f"{BOS_OF_FORMAT['bin']}; {BOS_OF_FORMAT['megatron']} with --format megatron"
_SHARD_TOKENS_DEFAULT = "{bin:,}; {megatron:,} with --format megatron".format(**SHARD_TOKENS_OF_FORMAT)

FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$"
"""A name with which a file's name can begin on every file system."""

MAX_LENGTH = 1 << 20
"""The longest sequence, in tokens."""

MAX_WEIGHT = 100
"""The largest weight of a project: how often each of its documents occurs in the sequences."""

Weight = Annotated[float, Field(ge=0, le=MAX_WEIGHT)]


class ShardOptions(Options):
    """How token shards become files that training programs read.

    `platform_ids` is left out of the canonical form while it is off, so that exports from before there was one have the
    same form.
    """

    format: Annotated[ShardFormat, Option()] = "bin"
    """`bin`: the shards of llm.c and modded-nanogpt. `megatron`: pairs of `.bin` and `.idx`."""

    split_by: Annotated[SplitBy, Option()] = "project"
    """Unit of the split: a whole project or document is in one split."""

    validation_fraction: Annotated[Fraction, Option()] = 0.01
    """Share of the projects or documents in the validation split, chosen by the hash of the name."""

    bos: Annotated[Bos, Option(default=_BOS_DEFAULT)] = Field(
        default_factory=lambda given: BOS_OF_FORMAT[given["format"]]
    )
    """`document`: BOS before each document and nothing after it. `dataset`: as in the run. `none`: only the text."""

    shard_tokens: Annotated[ShardTokens, Option(default=_SHARD_TOKENS_DEFAULT)] = Field(
        default_factory=lambda given: SHARD_TOKENS_OF_FORMAT[given["format"]]
    )
    """Tokens per file, except for the last one of a split.

    With `megatron` documents stay whole, so this is an average. The defaults are 200 MB per file and 2 GB per pair.
    """

    name: Annotated[str, Field(pattern=FILE_NAME), Option()] = "cpp"
    """Beginning of the file names: NAME_train_000000.bin."""

    platform_ids: Annotated[bool, Option(flag="--platform-ids")] = False
    """Also write the platforms of each document: NAME_train_000000.platforms beside each .bin."""

    @model_serializer(mode="wrap")
    def _serialize(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return leave_out(values(self), () if self.platform_ids else ("platform_ids",))


class Fim(IntEnum):
    """The order of a segment's parts in its sequence, as `fim` records it."""

    NONE = 0
    PSM = 1
    SPM = 2


_LEFT_OUT_IF_OFF = ("prefix", "cursor_rate", "platform_ids")


class SequenceOptions(Options):
    """What sequences are made of.

    `prefix`, `cursor_rate` and `platform_ids` are left out of the canonical form while they are off, so that exports
    from before there were any have the same form.
    """

    length: Annotated[int, Field(ge=16, le=MAX_LENGTH), Option()]
    """Tokens per sequence."""

    mode: Annotated[Literal["pad", "pack"], Option()] = "pack"
    """`pack`: several documents per sequence, best-fit decreasing. `pad`: one document, followed by padding."""

    long: Annotated[Literal["drop", "cut", "split"], Option()] = "split"
    """What to do with longer documents: `split` them into segments, `cut` them at the length, or `drop` them."""

    repositories: Annotated[bool, Option(flag="--repositories")] = False
    """Join the files of a project into one document, with <FILE_SEP> and the path before each."""

    fim_rate: Annotated[Fraction, Option(flag="--fim", metavar="RATE")] = 0.0
    """Rearrange this share of the segments to fill in the middle."""

    fim_spm_share: Annotated[Fraction, Option(flag="--fim-spm", metavar="SHARE")] = 0.5
    """Share of the rearranged segments that have the suffix before the prefix."""

    cursor_rate: Annotated[Fraction, Option(flag="--cursor", metavar="RATE")] = 0.0
    """Cut this share of the segments at a random place, and encode both sides separately, as at a cursor."""

    prefix: Annotated[PrefixLoss | None, Field(examples=["no-loss"]), Option()] = None
    """Put a line with the document's platforms in front of the text of each segment, with or without a loss on it.

    The run needs `platform_prefix`.
    """

    platform_ids: Annotated[bool, Option(flag="--platform-ids")] = False
    """Add a column with the platforms of each segment's document (in repositories, of each file), for an embedding."""

    seed: Annotated[int, Field(ge=0, lt=1 << 53), Option()] = 0
    """Seed that decides which segments are rearranged or cut, and where."""

    default_weight: Weight = 1.0
    """How often a document occurs in the sequences, on average."""

    weights: tuple[tuple[str, Weight], ...] = ()
    """The same by project: pairs of a name or glob and a weight.

    A name has priority over a glob, and an earlier glob over a later one.
    """

    @model_serializer(mode="wrap")
    def _serialize(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return leave_out(values(self), [name for name in _LEFT_OUT_IF_OFF if not getattr(self, name)])
