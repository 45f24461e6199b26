"""Configuration: profiles, TOML files and flags, merged and checked together, and the data files of the vocabulary.

What turns the user's input into a checked configuration belongs here. The options themselves, which enter unit keys and
receipts, are declared in `schemas`.
"""

from __future__ import annotations

from pathlib import Path

VOCABULARY: Path = Path(__file__).parent / "vocab"
"""The folder of the published vocabulary: a TOML file per band, and `ids.lock`, the lock of released ids."""
