"""The vocabulary programs: release pins ids for life, lint names what is wrong."""

from __future__ import annotations

from pathlib import Path

from tokenizer_build.build import pattern_split
from tokenizer_build.lint import Finding, lint_vocabulary
from tokenizer_build.lock import release_vocabulary


def release(directory: Path, tokenizer: Path, version: str) -> int:
    """Append the fixed ids of a tokenizer to the lock of a vocabulary folder; return how many are new.

    Args:
        directory: The vocabulary folder.
        tokenizer: A tokenizer directory that was built from it.
        version: Name of the release.
    """
    return release_vocabulary(directory, tokenizer, version)


def lint(directory: Path, pattern: str) -> list[Finding]:
    """Return what is wrong with a vocabulary folder under a pre-token pattern."""
    return lint_vocabulary(directory, pattern_split(pattern))
