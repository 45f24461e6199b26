"""The typed options of drift: what a version of a dataset is compared by, and what makes a scheduled job alert someone.

They decide no byte of a version, so no key and no receipt has them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from schemas.declarations import Option
from schemas.options import MAX_JSON_INTEGER, MEBIBYTE, Fraction, Options

_DRIFT = Option(heading="Drift")
_SHARE = Option(heading="Drift", metavar="SHARE")


class DriftOptions(Options):
    """What is recorded of drift, and from where on `retokenize` ends with exit code 12; no alert is on by default."""

    drift: Annotated[bool, _DRIFT] = True
    """Compare each version with the one before: compression, rare ids, ids that died, new API families."""

    rare_per_million: Annotated[float, Field(gt=0, le=1_000_000), _SHARE] = 1.0
    """An id is rare with fewer occurrences per million tokens, in the first version that has its tokenizer."""

    alert_compression: Annotated[Fraction | None, _SHARE] = None
    """Alert if the new text has fewer bytes per token than the version before, by more than this share of them."""

    alert_rare: Annotated[Fraction | None, _SHARE] = None
    """Alert if the share of rare ids in the new text exceeds that of the version before by more than this."""

    alert_families: Annotated[int | None, Field(ge=1, le=MAX_JSON_INTEGER), _DRIFT] = None
    """Alert if at least this many API families are new."""

    alert_died: Annotated[int | None, Field(ge=1, le=MAX_JSON_INTEGER), _DRIFT] = None
    """Alert if at least this many learned ids died: the version before used them, this one does not."""

    alert_min_bytes: Annotated[int, Field(ge=0, le=MAX_JSON_INTEGER), _DRIFT] = MEBIBYTE
    """Alert for the compression or the rare ids of new text only if there is this much of it, in bytes."""
