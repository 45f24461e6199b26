"""Fixed-length sequences: the options that decide them, and the table that they stand in."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import Field

from schemas.options import Fraction, Options
from schemas.tables import required, token_type

MAX_LENGTH = 1 << 20
"""The longest sequence, in tokens."""

MAX_WEIGHT = 100
"""The largest weight of a project: how often each of its documents stands in the sequences."""

Weight = Annotated[float, Field(ge=0, le=MAX_WEIGHT)]


class Fim(IntEnum):
    """How a segment stands in its sequence, as `fim` records it."""

    NONE = 0
    PSM = 1
    SPM = 2


class SequenceOptions(Options):
    """What sequences are made of.

    Attributes:
        length: Tokens of a sequence.
        mode: `pack`: several documents in a sequence, best-fit decreasing; `pad`: one, and padding behind it.
        long: What becomes of a document that is longer: `split` into several segments, `cut` at the length, `drop`.
        repositories: Join the files of a project to one document.
        fim_rate: Share of the segments that are rearranged for filling in the middle.
        fim_spm_share: Share of those with the suffix before the prefix.
        seed: Decides which segments are rearranged, and where they are split.
        default_weight: How often a document stands in the sequences, on average.
        weights: The same by project: pairs of a name or glob and a weight. A name goes before a glob, an earlier
            glob before a later one.
    """

    length: int = Field(ge=16, le=MAX_LENGTH)
    mode: Literal["pad", "pack"] = "pack"
    long: Literal["drop", "cut", "split"] = "split"
    repositories: bool = False
    fim_rate: Fraction = 0.0
    fim_spm_share: Fraction = 0.5
    seed: int = Field(default=0, ge=0, lt=1 << 53)
    default_weight: Weight = 1.0
    weights: tuple[tuple[str, Weight], ...] = ()


def sequences_schema(vocab_size: int, options: SequenceOptions) -> pa.Schema:
    """Return the schema of `sequences/part-*.parquet`.

    Args:
        vocab_size: Number of ids; `token_ids` is of uint16 up to 65,536 and of uint32 above.
        options: What the sequences are made of: `fim*` stand only in sequences with filling in the middle, `file*` only
            in those of repositories.
    """
    names, places = pa.list_(required("item", pa.string())), pa.list_(required("item", pa.uint32()))
    fields = [
        required("token_ids", pa.list_(required("item", token_type(vocab_size)), options.length)),
        required("loss_mask", pa.list_(required("item", pa.bool_()), options.length)),
        required("num_tokens", pa.uint32()),
        required("doc_ids", names),
        required("starts", places),
        required("first_tokens", pa.list_(required("item", pa.uint64()))),
    ]
    if options.fim_rate:
        fields += [
            required("fim", pa.list_(required("item", pa.uint8()))),
            required("fim_starts", places),
            required("fim_ends", places),
        ]
    if options.repositories:
        fields += [required("file_doc_ids", names), required("file_starts", places)]
    return pa.schema(fields)
