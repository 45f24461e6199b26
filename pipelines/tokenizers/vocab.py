"""The vocabulary programs: `release` pins ids for life, `lint` reports problems, `diff` compares two tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from configs.execution import usable_threads
from configs.outputs import check_parent
from pipelines.tokenizers.codec import load_tokenizer
from pipelines.tokenizers.texts import documents_shards, read_shards
from schemas.errors import ConfigError
from tokenizer_build.build import pattern_split
from tokenizer_build.compare.diff import (
    VocabularyDiff,
    compare_compression,
    describe_compression,
    describe_diff,
    read_ids,
)
from tokenizer_build.lint import Finding, lint_vocabulary
from tokenizer_build.lock import check_built_from, release_vocabulary


def release(directory: Path, tokenizer: Path, version: str) -> int:
    """Append the fixed ids of a tokenizer to the lock of a vocabulary folder; return how many are new.

    Args:
        directory: The vocabulary folder.
        tokenizer: A tokenizer directory that was built from it.
        version: Name of the release.
    """
    load_tokenizer(tokenizer, argument="--tokenizer")  # refuses files that differ from the manifest
    check_built_from(directory, tokenizer)
    return release_vocabulary(directory, tokenizer, version)


def lint(directory: Path, pattern: str) -> list[Finding]:
    """Return what is wrong with a vocabulary folder under a pre-token pattern."""
    return lint_vocabulary(directory, pattern_split(pattern))


def diff(
    old: Path, new: Path, *, documents: str | None, id_maps: Sequence[Path], every_token: bool
) -> tuple[list[str], list[str]]:
    """Compare two tokenizer directories and write the map between their ids.

    Args:
        old: The old tokenizer directory.
        new: The new one.
        documents: A run's folder, or its `documents/`, or a URL, to measure the compression on; None for no measuring.
        id_maps: Files to write: `.parquet` (`tokenizer_build.compare.diff.ID_MAP`) or `.npy` (old id to new id).
        every_token: Name every token that differs, not only the first ones.

    Returns:
        What to print, and the broken promises: a line for each fixed id that moved.

    Raises:
        ConfigError: If a directory holds no tokenizer or no documents, or a map's name ends in something else.
    """
    for path in id_maps:
        if path.suffix not in (".parquet", ".npy"):
            raise ConfigError(f"--id-map {path}: ends in neither .parquet nor .npy; give it one of them")
        check_parent(path, option="--id-map")
    shards = None if documents is None else documents_shards(documents, argument="--documents")
    sides = [read_ids(path, load_tokenizer(path, argument=name)) for name, path in (("OLD", old), ("NEW", new))]
    found = VocabularyDiff(*sides)
    for path in id_maps:
        _write_id_map(found, path)
    lines = describe_diff(found, shown=None if every_token else 20)
    if shards:
        compared = compare_compression(read_shards(*shards, ["project", "content"]), found, threads=usable_threads())
        lines += ["", *describe_compression(compared)]
    return lines, found.broken_promises()


def _write_id_map(found: VocabularyDiff, path: Path) -> None:
    if path.suffix == ".npy":
        np.save(path, found.new_ids())
    else:
        pq.write_table(found.id_map(), path, compression="zstd")
