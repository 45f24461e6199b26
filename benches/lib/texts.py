"""Texts of a source tree for the studies: which files, in which order, and which of them when there are too many.

A study needs only text that both sides can take, so documents that are not valid UTF-8 stay out, as do empty ones and
all but the first of equal bytes. Nothing here imports Beam.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from schemas.errors import ConfigError
from schemas.options import DEFAULT_EXTENSIONS

BATCH_CHARACTERS = 16_000_000
_HASH_BYTES = 8


@dataclass(frozen=True)
class SourceText:
    """A document: its project (the first folder of its path) and its content."""

    project: str
    content: str


@dataclass(frozen=True)
class Tree:
    """Files of C++ source below a root, in bytewise order of their paths.

    Attributes:
        root: The folder.
        paths: Paths relative to it.
        sizes: Their bytes.
    """

    root: Path
    paths: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        """The bytes of all files."""
        return sum(self.sizes)

    def sample(self, num_bytes: float) -> Tree:
        """Return the files whose path hash is below the share that gives about this many bytes; all if there are fewer.

        A sample holds every smaller one, and depends on the paths alone.
        """
        share = num_bytes / max(1, self.num_bytes)
        rows = [row for row, path in enumerate(self.paths) if path_fraction(path) < share]
        return Tree(self.root, tuple(self.paths[row] for row in rows), tuple(self.sizes[row] for row in rows))

    def texts(self) -> Iterator[SourceText]:
        """Yield the documents that can be compared on, in order."""
        seen: set[bytes] = set()
        for path in self.paths:
            data = (self.root / path).read_bytes()
            digest = hashlib.sha256(data).digest()
            if not data or digest in seen:
                continue
            seen.add(digest)
            try:
                content = data.decode()
            except UnicodeDecodeError:
                continue
            yield SourceText(path.split("/", 1)[0], content)


def list_tree(root: Path) -> Tree:
    """List the C++ files below a folder; hidden folders are not walked.

    Raises:
        ConfigError: If there are none.
    """
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(folder, name)
            if path.suffix[1:].lower() in DEFAULT_EXTENSIONS and path.is_file() and not path.is_symlink():
                found.append((path.relative_to(root).as_posix(), path.stat().st_size))
    if not found:
        raise ConfigError(f"{root}: no file of C++ source is below it; name a folder of C++ sources")
    found.sort(key=lambda item: os.fsencode(item[0]))
    return Tree(root, tuple(path for path, _ in found), tuple(size for _, size in found))


def path_fraction(path: str) -> float:
    """Return the hash of a path as a number from 0 up to 1.

    Example:
        >>> 0 <= path_fraction("a/b.cpp") < 1
        True
    """
    digest = hashlib.sha256(os.fsencode(path)).digest()
    return int.from_bytes(digest[:_HASH_BYTES], "big") / (1 << 8 * _HASH_BYTES)


def batches(texts: Iterator[SourceText]) -> Iterator[pa.RecordBatch]:
    """Yield documents as the native core takes them: columns `project` and `content`, some megabytes at a time."""
    taken: list[SourceText] = []
    size = 0
    for text in texts:
        taken.append(text)
        size += len(text.content)
        if size >= BATCH_CHARACTERS:
            yield _batch(taken)
            taken, size = [], 0
    if taken:
        yield _batch(taken)


def _batch(texts: list[SourceText]) -> pa.RecordBatch:
    columns: dict[str, pa.Array[Any]] = {
        "project": pa.array([text.project for text in texts], pa.string()),
        "content": pa.array([text.content.encode() for text in texts], pa.binary()),
    }
    return pa.record_batch(columns)
