"""The typed options of a trial: which model is trained with each tokenizer, and on how much text it is measured."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from schemas.declarations import Option
from schemas.options import MAX_JSON_INTEGER, Options


class TrialOptions(Options):
    """All that decides the figures of a trial besides tokenizers, texts and work."""

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
    """How often each tokenizer is tried, each time with other initial weights and another order of the documents."""

    sample: Annotated[float, Field(gt=0.0, le=1.0), Option(default="{}, all")] = 1.0
    """Take this share of the documents to train on, chosen by path; they are held in memory."""

    held_out_bytes: Annotated[int, Field(ge=1, le=MAX_JSON_INTEGER), Option()] = 60_000
    """Measure on held-out documents of about so many bytes, chosen by the hash of their content."""
