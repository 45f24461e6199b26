"""The typed options of studies: of drift between versions of a dataset, and of a trial of tokenizers.

They do not affect the bytes of a version, so they are in no key and no receipt.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from schemas.declarations import Option
from schemas.options import MAX_JSON_INTEGER, MEBIBYTE, Fraction, Options

_DRIFT = Option(heading="Drift")
_SHARE = Option(heading="Drift", metavar="SHARE")


class DriftOptions(Options):
    """What is recorded about drift, and when `retokenize` ends with exit code 12; no alert is on by default."""

    drift: Annotated[bool, _DRIFT] = True
    """Compare each version with the previous one: compression, rare ids, ids that died, and new API families (prefixes
    of names, and namespaces).
    """

    rare_per_million: Annotated[float, Field(gt=0, le=1_000_000), _SHARE] = 1.0
    """Occurrences per million tokens below which an id is rare, counted in the first version with this tokenizer."""

    alert_compression: Annotated[Fraction | None, _SHARE] = None
    """Alert if the bytes per token of the new text are lower than in the previous version, by more than this share."""

    alert_rare: Annotated[Fraction | None, _SHARE] = None
    """Alert if the share of rare ids in the new text is higher than in the previous version, by more than this."""

    alert_families: Annotated[int | None, Field(ge=1, le=MAX_JSON_INTEGER), _DRIFT] = None
    """Alert if at least this many API families are new."""

    alert_died: Annotated[int | None, Field(ge=1, le=MAX_JSON_INTEGER), _DRIFT] = None
    """Alert if at least this many learned ids died: the previous version used them, and this one does not."""

    alert_min_bytes: Annotated[int, Field(ge=0, le=MAX_JSON_INTEGER), _DRIFT] = MEBIBYTE
    """Bytes of new text that an alert for compression or rare ids needs."""


class TrialOptions(Options):
    """All options that affect the figures of a trial, besides tokenizers, texts and work."""

    width: Annotated[int, Field(ge=2, le=1 << 14), Option()] = 128
    """Width of the model: a multiple of 64, or an even number below."""

    layers: Annotated[int, Field(ge=1, le=1 << 10), Option()] = 4
    """Layers of the model."""

    length: Annotated[int, Field(ge=2, le=1 << 16), Option()] = 128
    """Tokens per row."""

    rows: Annotated[int, Field(ge=1, le=1 << 16), Option()] = 4
    """Rows per step."""

    learning_rate: Annotated[float, Field(gt=0, le=1), Option(metavar="RATE")] = 3e-3
    """Highest learning rate."""

    seeds: Annotated[int, Field(ge=1, le=1000), Option()] = 2
    """How often each tokenizer is tried, each time with other initial weights and another order of documents."""

    sample: Annotated[float, Field(gt=0.0, le=1.0), Option(default="{}, all")] = 1.0
    """Take this share of the documents to train on, chosen by path; they are held in memory."""

    held_out_bytes: Annotated[int, Field(ge=1, le=MAX_JSON_INTEGER), Option()] = 60_000
    """Measure on held-out documents of about this many bytes in all, chosen by the hash of their content."""
