"""The vocabulary of text that is no code: the control tokens that the user names, and nothing else that is fixed.

Their ids are the first, in the order of their names; all others are learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from schemas.errors import VocabularyConfigError
from tokenizer_build.bands import CONTROL, Band, Strength
from tokenizer_build.lock import Lock
from tokenizer_build.vocabulary import FixedToken, Vocabulary


def text_vocabulary(directory: Path, specials: Sequence[str]) -> tuple[Vocabulary, Lock]:
    """Return a vocabulary of control tokens, and a lock of nothing.

    Args:
        directory: The folder whose releases a build is looked up in.
        specials: The names, at least one.

    Raises:
        VocabularyConfigError: If there is none, or one is there twice.
    """
    if not specials or len(set(specials)) < len(specials):
        raise VocabularyConfigError(f"specials = {list(specials)}: name one control token or more, each once")
    band = Band(CONTROL, 0, len(specials) - 1, Strength.CONTROL)
    tokens = tuple(FixedToken(id_, name, band, "build.specials") for id_, name in enumerate(specials))
    return Vocabulary(directory, tokens, (), ()), Lock.from_entries(())
