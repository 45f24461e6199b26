"""The vocabulary programs.

`init` and `add` make a vocabulary of the user's own, `release` pins ids for life, `lint` reports problems, `diff`
compares two tokenizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow.parquet as pq

from configs.execution import usable_threads
from configs.outputs import check_file, check_parent, check_unlisted
from pipelines.tokenizers.codec import load_tokenizer
from pipelines.tokenizers.texts import documents_shards, read_shards
from schemas.errors import ConfigError
from schemas.files import read_regular, whole_file
from tokenizer_build.artifact import find_foreign_contents
from tokenizer_build.build import pattern_regex, pattern_split
from tokenizer_build.compare.diff import (
    VocabularyDiff,
    compare_compression,
    describe_compression,
    describe_diff,
    read_ids,
)
from tokenizer_build.decision_files import read_kept
from tokenizer_build.lint import Finding, lint_vocabulary
from tokenizer_build.lock import check_built_from, check_complete, release_vocabulary
from tokenizer_build.own import Addition, add_tokens, init_vocabulary
from tokenizer_build.vocabulary import Match


def init(source: Path, directory: Path) -> int:
    """Begin a vocabulary folder that inherits another; return how many tokens it inherits."""
    check_parent(directory, option="DIR")
    return init_vocabulary(source, directory)


def read_names(file: Path) -> list[str]:
    """Return the names in a file: one a line, without blanks around it; empty lines and those with `#` are left out."""
    try:
        lines = [line.strip() for line in read_regular(file).decode("utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise ConfigError(f"--from {file}: not UTF-8 at byte {error.start}") from error
    return [line for line in lines if line and not line.startswith("#")]


def add(
    directory: Path,
    names: Sequence[str],
    *,
    category: str,
    match: str,
    api_prefixes: Sequence[str],
    keep: bool,
    band: str,
    pattern: str,
) -> str:
    """Give names free ids in a vocabulary of the user's own (`tokenizer_build.own.add_tokens`); return what to print.

    Raises:
        ConfigError: If there are no names, or no such way to match.
        VocabularyConfigError: If a name cannot be used; nothing is written then.
    """
    check_unlisted(directory, option="--vocab")
    if not names:
        raise ConfigError("no names: name them, or a file with --from")
    found = next((known for known in get_args(Match) if known == match), None)
    if found is None:
        raise ConfigError(f"--match {match}: not allowed; it takes {', '.join(get_args(Match))}")
    pattern_regex(pattern)  # refuses an unknown one
    split = pattern_split(pattern)
    done = add_tokens(
        directory, names, category=category, split=split, match=found, api_prefixes=api_prefixes, keep=keep, band=band
    )
    return f"{directory}: {_describe(done)}"


def _describe(done: Addition) -> str:
    """Say in words what became of the names."""
    added, kept, known = (len(names) for names in (done.added, done.newly_kept, done.known))
    ids = f": ids {min(done.added):,} to {max(done.added):,}" if added else ""
    inherited = f"; {kept:,} that it had already are now kept" if kept else ""
    unchanged = f"; {known:,} were there already and did not change" if known else ""
    return f"{added:,} of {added + kept + known:,} names added{ids}{inherited}{unchanged}"


def release(directory: Path, tokenizer: Path, version: str) -> int:
    """Append the fixed ids of a tokenizer to the lock of a vocabulary folder; return how many are new.

    Args:
        directory: The vocabulary folder.
        tokenizer: A tokenizer directory that was built from it.
        version: Name of the release.

    Raises:
        ConfigError: If the folder is that of a run's tokenizer, or the tokenizer is not what its files say.
        VocabularyConfigError: If ids were moved, or the tokenizer was built from another vocabulary.
    """
    check_unlisted(directory, option="--vocab")
    loaded = load_tokenizer(tokenizer, argument="--tokenizer")  # refuses files that contradict the manifest
    for name, reason in find_foreign_contents(tokenizer, loaded):
        raise ConfigError(f"--tokenizer {tokenizer}: {name}: {reason}; restore the directory, or build again")
    check_built_from(directory, tokenizer)
    check_complete(directory, tokenizer, loaded.token_bytes, kept=read_kept(tokenizer))
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
        check_file(path, option="--id-map")
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
    with whole_file(path) as file:
        if path.suffix == ".npy":
            np.save(file, found.new_ids())
        else:
            pq.write_table(found.id_map(), file, compression="zstd")
