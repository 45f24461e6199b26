"""What a trial keeps below `.cache/trial`: finished cells, and the operations that a budget of time came to.

Each is a file with its own digest and the key of what it was made from. What is damaged, or of something else, is made
again.
"""

from __future__ import annotations

from typing import Any

from schemas.digests import parse_json, seal
from transforms.records.record import MALFORMED, check_form
from transforms.storage.folder import CACHE, OutputFolder

KEPT = f"{CACHE}/trial"

CELL = [{**dict.fromkeys(("step", "tokens", "bytes", "flops"), int), "bits_per_byte": (int, float)}]
"""The form of a cell: its points. In canonical JSON, a float without a fraction is a whole number."""

FLOPS = (int, float)
"""The form of operations."""


def read_kept(out: OutputFolder, name: str, key: str, form: Any) -> Any:  # noqa: ANN401 - JSON values
    """Return what was kept under a name for a key, None if there is nothing whole.

    Args:
        out: The folder of the trial.
        name: The name of the file, without folder and suffix.
        key: SHA-256 of everything that decides the value.
        form: The form of the value, as `check_form` takes it.
    """
    try:
        data = out.read_bytes(_path(name))
        kept = parse_json(data)
        if data != seal({"key": key, "value": kept["value"]}):
            return None
        check_form(kept["value"], form)
    except (FileNotFoundError, *MALFORMED):
        return None
    return kept["value"]


def keep(out: OutputFolder, name: str, key: str, value: Any) -> None:  # noqa: ANN401 - a JSON value
    """Keep a value under a name for a key."""
    out.publish_bytes(_path(name), seal({"key": key, "value": value}))


def _path(name: str) -> str:
    return f"{KEPT}/{name}.json"
