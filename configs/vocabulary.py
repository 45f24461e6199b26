"""Where the vocabulary's files stand: one TOML a band, and the lock of released ids."""

from __future__ import annotations

from pathlib import Path

VOCABULARY: Path = Path(__file__).parent / "vocab"
"""The folder of `*.toml`, one a band, and `ids.lock`."""
