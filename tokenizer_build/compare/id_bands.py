"""The band of each id of a tokenizer: of a fixed id its own, else how it was learned."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizer_build.artifact import MANIFEST_JSON, TOKENIZER_JSON
from tokenizer_build.bands import Strength
from tokenizer_build.compare.diff import Entry

LEARNED, SUPERWORDS, RESERVED = "learned", "superwords", "reserved"

_UNBANDED = {Strength.CONTROL: "control", Strength.RESERVED: RESERVED}
"""The bands of a tokenizer of another program, beside the learned one."""


def read_bands(directory: Path) -> list[str] | None:
    """Return the band of each id of a tokenizer directory of ours: of a fixed one its own, else how it was learned.

    None if there is no manifest with bands.
    """
    if not (directory / MANIFEST_JSON).is_file():
        return None
    manifest: Mapping[str, Any] = json.loads((directory / MANIFEST_JSON).read_bytes())
    if "tokens" not in manifest or "bands" not in manifest:
        return None
    bands = [LEARNED] * int(manifest["vocab_size"])
    for number in _superword_ids(directory, manifest):
        bands[number] = SUPERWORDS
    for first, last in manifest.get("reserved", ()):
        bands[first : last + 1] = [RESERVED] * (last + 1 - first)
    for row in manifest["tokens"]:
        bands[row["id"]] = row["band"]
    return bands


def bands_of(directory: Path, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the band of each id; a tokenizer of another program has only control, reserved and learned ids.

    Args:
        directory: The tokenizer directory.
        entries: Every id of it.
    """
    return tuple(read_bands(directory) or (_UNBANDED.get(entry.strength, LEARNED) for entry in entries))


def _superword_ids(directory: Path, manifest: Mapping[str, Any]) -> list[int]:
    if "superwords" not in manifest:
        return []
    model: Mapping[str, Any] = json.loads((directory / TOKENIZER_JSON).read_bytes())["model"]
    merges = model["merges"][manifest["superwords"]["first_merge"] :]
    return [model["vocab"][left + right] for left, right in merges]
