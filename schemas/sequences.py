"""Fixed-length sequences: the options that decide them. `schemas.tables` has the schema of their table."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Literal

from pydantic import Field

from schemas.declarations import Option
from schemas.options import Fraction, Options

MAX_LENGTH = 1 << 20
"""The longest sequence, in tokens."""

MAX_WEIGHT = 100
"""The largest weight of a project: how often each of its documents occurs in the sequences."""

Weight = Annotated[float, Field(ge=0, le=MAX_WEIGHT)]


class Fim(IntEnum):
    """The order of a segment's parts in its sequence, as `fim` records it."""

    NONE = 0
    PSM = 1
    SPM = 2


class SequenceOptions(Options):
    """What sequences are made of."""

    length: Annotated[int, Field(ge=16, le=MAX_LENGTH), Option()]
    """Tokens per sequence."""

    mode: Annotated[Literal["pad", "pack"], Option()] = "pack"
    """`pack`: several documents per sequence, best-fit decreasing. `pad`: one document, followed by padding."""

    long: Annotated[Literal["drop", "cut", "split"], Option()] = "split"
    """What happens to longer documents: `split` into several segments, `cut` at the length, or `drop`."""

    repositories: Annotated[bool, Option(flag="--repositories")] = False
    """Join the files of a project into one document, with <FILE_SEP> and the path before each."""

    fim_rate: Annotated[Fraction, Option(flag="--fim", metavar="RATE")] = 0.0
    """Rearrange this share of the segments to fill in the middle."""

    fim_spm_share: Annotated[Fraction, Option(flag="--fim-spm", metavar="SHARE")] = 0.5
    """Share of the rearranged segments that have the suffix before the prefix."""

    seed: Annotated[int, Field(ge=0, lt=1 << 53), Option()] = 0
    """Decides which segments are rearranged, and where they are split."""

    default_weight: Weight = 1.0
    """How often a document occurs in the sequences, on average."""

    weights: tuple[tuple[str, Weight], ...] = ()
    """The same by project: pairs of a name or glob and a weight.

    A name goes before a glob, an earlier glob before a later one.
    """
