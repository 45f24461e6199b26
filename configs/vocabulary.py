"""Where the vocabulary's files are: one TOML per band, and the lock of released ids."""

from __future__ import annotations

from pathlib import Path

VOCABULARY: Path = Path(__file__).parent / "vocab"
"""The folder of `*.toml`, one per band, and `ids.lock`."""
