"""Repositories: the files of a project joined to one text, from all token shards that have any of them.

Each file is `<FILE_SEP>`, the line of its path, and its text. The whole has BOS and EOS if the dataset's documents do.
Files are in bytewise order of their paths. The separator is an id: its characters in a path are text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, repeat
from typing import Any, NamedTuple

import cppmill_core
import numpy as np
import pyarrow as pa
from cppmill_core import AnyTokenizer

from schemas.errors import ConfigError
from schemas.units import Stage, Unit, UnitReceipt
from transforms.exports.sequences.prefixes import NO_IDS
from transforms.exports.sequences.segments import Encoding, RepositoryFile, SourceText
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import TokenIds, TokenShard, open_token_shard
from transforms.tokens.tokenizer import document_ends
from transforms.units.batches import list_column, split_lists

FILE_SEP = "<FILE_SEP>"
_COLUMNS, _PLATFORMS = ["doc_id", "project", "path", "token_ids"], "platform_ids"


class ProjectRows(NamedTuple):
    """Consecutive rows of a token shard that belong to one project.

    Attributes:
        project: The project.
        shard: The shard's path.
        start: The first row.
        end: The row after the last one.
        tokens: Their tokens.
    """

    project: str
    shard: str
    start: int
    end: int
    tokens: int


class _Document(NamedTuple):
    project: str
    path: bytes
    doc_id: str
    ids: TokenIds
    platforms: TokenIds = NO_IDS


@dataclass(frozen=True, kw_only=True)
class ProjectSettings:
    """What a worker needs to find projects: the export, and the run."""

    out: OutputFolder
    run: OutputFolder


def find_projects(unit: Unit, settings: ProjectSettings) -> UnitReceipt:
    """Return a receipt whose totals are the rows of each project in the token shard that a unit names."""
    shard = TokenShard(**unit.payload)
    with open_token_shard(settings.run, shard) as file:
        table = file.read(columns=["project", "num_tokens"])
    rows = project_rows(table["project"].to_pylist(), table["num_tokens"].to_pylist())
    totals = {"projects": [[project, start, end, tokens] for project, start, end, tokens in rows]}
    return UnitReceipt(stage=Stage.PROJECTS, key=unit.key, outputs=(), totals=totals, inputs={shard.path: shard.sha256})


def project_rows(projects: Iterable[Any], tokens: Iterable[Any]) -> Iterator[tuple[str, int, int, int]]:
    """Yield project, first row, row after the last one, and tokens, for each run of rows of one project.

    Example:
        >>> list(project_rows(["a", "a", "b"], [5, 1, 2]))
        [('a', 0, 2, 6), ('b', 2, 3, 2)]
    """
    start = 0
    for project, group in groupby(zip(projects, tokens, strict=True), key=lambda row: row[0]):
        counts = [count for _, count in group]
        yield project, start, start + len(counts), sum(counts)
        start += len(counts)


def read_repositories(
    run: OutputFolder,
    shards: Sequence[TokenShard],
    rows: Sequence[Sequence[Any]],
    encoding: Encoding,
    *,
    platforms: bool = False,
) -> list[SourceText]:
    """Return the projects of a unit, each as one text, by name.

    Args:
        run: The run.
        shards: The token shards that have rows of them.
        rows: The fields of a `ProjectRows` for each range of their rows.
        encoding: Tokenizer and policy of the dataset.
        platforms: Whether their files have platform ids.
    """
    wanted: dict[str, list[ProjectRows]] = {}
    for row in rows:
        wanted.setdefault(ProjectRows(*row).shard, []).append(ProjectRows(*row))
    columns = [*_COLUMNS, *([_PLATFORMS] if platforms else [])]
    documents = [document for shard in shards for document in _read(run, shard, wanted[shard.path], columns)]
    documents.sort(key=lambda document: (document.project.encode(), document.path, document.doc_id))
    return [
        join_files(project, list(files), encoding)
        for project, files in groupby(documents, key=lambda document: document.project)
    ]


def join_files(project: str, documents: Sequence[_Document], encoding: Encoding) -> SourceText:
    """Return the text of a project: its files, in the order given, with their paths."""
    tokenizer, kind = encoding.tokenizer, documents[0].ids.dtype
    lines = [document.path + b"\n" for document in documents]
    paths: list[Any] = tokenizer.encode_batch(lines, encoding.threads).to_pylist()
    bos, eos = ([] if number is None else [number] for number in document_ends(tokenizer, encoding.policy))
    separator = separator_id(tokenizer)
    parts, files, place = [np.array(bos, kind)], list[RepositoryFile](), len(bos)
    for document, path in zip(documents, paths, strict=True):
        text = document.ids[len(bos) : len(document.ids) - len(eos)]
        files.append(RepositoryFile(place, document.doc_id, document.platforms))
        parts += [np.array([separator, *path], kind), text]
        place += 1 + len(path) + len(text)
    parts.append(np.array(eos, kind))
    tokens = sum(len(document.ids) for document in documents)
    return SourceText(project, project, np.concatenate(parts), len(documents), tokens, tuple(files))


def separator_id(tokenizer: AnyTokenizer) -> int:
    """Return the id of `<FILE_SEP>`.

    Raises:
        ConfigError: If the tokenizer lacks it.
    """
    try:
        return tokenizer.control_id(FILE_SEP)
    except cppmill_core.InvalidInputError as error:
        raise ConfigError(f"--repositories: {error}; joined files need {FILE_SEP}") from error


def _read(
    run: OutputFolder, shard: TokenShard, wanted: Sequence[ProjectRows], columns: list[str]
) -> Iterator[_Document]:
    """Yield the wanted rows of a token shard; row groups without any are not read."""
    with open_token_shard(run, shard) as file:
        start = 0
        for group in range(file.num_row_groups):
            end = start + file.metadata.row_group(group).num_rows
            inside = [(max(rows.start, start) - start, min(rows.end, end) - start) for rows in wanted]
            inside = [(first, last) for first, last in inside if first < last]
            if inside:
                table = file.read_row_group(group, columns=columns, use_threads=False)
                for first, last in inside:
                    for batch in table.slice(first, last - first).to_batches():
                        yield from _documents(batch)
            start = end


def _documents(batch: pa.RecordBatch) -> Iterator[_Document]:
    rows: list[dict[str, Any]] = batch.select(["project", "path", "doc_id"]).to_pylist()
    has_platforms = _PLATFORMS in batch.schema.names
    bags = split_lists(list_column(batch, _PLATFORMS)) if has_platforms else repeat(NO_IDS, batch.num_rows)
    for row, ids, platforms in zip(rows, split_lists(list_column(batch, "token_ids")), bags, strict=True):
        yield _Document(row["project"], row["path"].encode(), row["doc_id"], ids, platforms)
