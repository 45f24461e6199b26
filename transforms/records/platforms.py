"""The platform vocabulary of a finished run: `platform_vocab.json` in OUT, whose SHA-256 is in the receipt."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from cppmill_core import PlatformVocab
from cppmill_core.platforms import PLATFORM_VOCAB as PUBLISHED
from cppmill_core.platforms import parse_platform_vocab

from schemas.errors import IntegrityError
from schemas.tables import PLATFORM_VOCAB_SIZE
from transforms.storage.folder import OutputFolder

PLATFORM_VOCAB = "platform_vocab.json"
"""The file in OUT; the receipt has its SHA-256 as `platform_vocab.digest` and among `files`."""


def platform_vocab_size(receipt: Mapping[str, Any]) -> int:
    """Return how many platform ids a run has, padding included: the receipt says so if the user has added any."""
    return int(receipt["platform_vocab"].get("size", PLATFORM_VOCAB_SIZE))


def has_own_platforms(receipt: Mapping[str, Any]) -> bool:
    """Return whether a run found platforms of the user's own."""
    return "size" in receipt.get("platform_vocab", {})


def read_platform_vocab(out: OutputFolder, receipt: Mapping[str, Any]) -> PlatformVocab | None:
    """Return the platform vocabulary of a run.

    Args:
        out: The run's folder.
        receipt: Its receipt.

    Returns:
        The vocabulary; None if the run is from before runs had the file, and its vocabulary is not the present one.

    Raises:
        IntegrityError: If the file is not the one that the receipt names.
    """
    expected = receipt["platform_vocab"]["digest"]
    try:
        data = out.read_bytes(PLATFORM_VOCAB)
    except FileNotFoundError:
        data = PUBLISHED.read_bytes()
        if sha256(data).hexdigest() != expected:
            return None
    if sha256(data).hexdigest() != expected:
        raise IntegrityError(f"{out.where(PLATFORM_VOCAB)}: not the file that the receipt names; see `cppmill verify`")
    return parse_platform_vocab(data, where=out.where(PLATFORM_VOCAB))
