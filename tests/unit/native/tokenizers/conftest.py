"""One tokenizer, read twice: by the core, and by the package that trained it."""

from pathlib import Path
from typing import Any

import pytest
from cppmill_core import AnyTokenizer, load_tokenizer
from sentencepiece import SentencePieceProcessor


@pytest.fixture(scope="module")
def pieces(folder: Path) -> AnyTokenizer:
    """The tokenizer of the module's folder, read by the core."""
    return load_tokenizer(folder)


@pytest.fixture(scope="module")
def processor(folder: Path) -> Any:
    """The model of the module's folder, read by SentencePiece."""
    return SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
