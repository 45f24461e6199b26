"""The documents of sequences: which bytes of which document each segment holds, by the run that they were made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cppmill_core import AnyTokenizer
from cppmill_core.byte_tables import ByteTables

from schemas.export_options import SequenceOptions
from transforms.exports.sequences.repositories import ProjectRows, project_rows, read_repositories
from transforms.exports.sequences.segments import Encoding, SourceText
from transforms.tokens.documents import RunDocument, RunDocuments
from transforms.tokens.shards import TokenIds


class DocumentSpan(NamedTuple):
    """A part of a document in a row of a dataset.

    Attributes:
        document: The document.
        start: Where it begins in the document, in bytes.
        end: Where it ends.
        tokens: The ids that it takes in the row, control tokens among them.
    """

    document: RunDocument
    start: int
    end: int
    tokens: int


class _Part(NamedTuple):
    """A document in its text, the document itself or a repository: its first id there, and the one behind it."""

    document: RunDocument
    first: int
    end: int


class _Source(NamedTuple):
    """A text: its documents, and the bytes before each of its ids and before its end."""

    parts: Sequence[_Part]
    offsets: npt.NDArray[np.int64]


class SequenceSpans:
    """Finds the documents of rows of sequences.

    Args:
        documents: The run.
        options: What the sequences are made of.
        encoding: The tokenizer and the policy of the run.
    """

    def __init__(self, documents: RunDocuments, options: SequenceOptions, encoding: Encoding) -> None:
        """Make the bytes of each id."""
        self._documents, self._options, self._encoding = documents, options, encoding
        self._bytes = ByteTables.of(encoding.tokenizer).base_bytes.astype(np.int64)

    @property
    def columns(self) -> list[str]:
        """The columns of sequences that are needed."""
        prefixes = ["prefix_starts", "prefix_ends"] if self._options.prefix else []
        return ["token_ids", "num_tokens", "doc_ids", "starts", "first_tokens", *prefixes]

    def find(self, rows: Sequence[Mapping[str, Any]], shards: Sequence[str]) -> Iterator[list[DocumentSpan]]:
        """Yield the documents of each row, in the order in which they are in it.

        Args:
            rows: Rows of one file of sequences, with `columns`; `token_ids` as an array.
            shards: The token shards that the file was made from.
        """
        names = {name for row in rows for name in row["doc_ids"]}
        read = self._read_repositories if self._options.repositories else self._read_documents
        sources = read(names, shards)
        for row in rows:
            yield list(self._spans(row, sources))

    def _spans(self, row: Mapping[str, Any], sources: Mapping[str, _Source]) -> Iterator[DocumentSpan]:
        ends = [*row["starts"][1:], row["num_tokens"]]
        for number, (name, start, end) in enumerate(zip(row["doc_ids"], row["starts"], ends, strict=True)):
            ids: TokenIds = row["token_ids"][start:end]
            if self._options.prefix:
                prefix = slice(row["prefix_starts"][number] - start, row["prefix_ends"][number] - start)
                ids = np.delete(ids, prefix)
            yield from self._within(sources[name], row["first_tokens"][number], ids)

    def _within(self, source: _Source, first: int, ids: TokenIds) -> Iterator[DocumentSpan]:
        """Yield the documents of a segment that begins with an id of its text; rearranged, it has the same bytes."""
        offsets = source.offsets
        start = int(offsets[first])
        end = start + int(self._bytes[ids].sum())
        for document, at, behind in source.parts:
            inside = (max(start, int(offsets[at])), min(end, int(offsets[behind])))
            tokens = len(ids) if len(source.parts) == 1 else min(behind, first + len(ids)) - max(at, first)
            if tokens > 0 and inside[0] <= inside[1]:
                yield DocumentSpan(document, inside[0] - int(offsets[at]), inside[1] - int(offsets[at]), tokens)

    def _read_documents(self, names: set[str], shards: Sequence[str]) -> dict[str, _Source]:
        found = (pair for shard in shards for pair in self._documents.find(shard, names))
        return {document.doc_id: _Source([_Part(document, 0, len(ids))], self._offsets(ids)) for document, ids in found}

    def _read_repositories(self, names: set[str], shards: Sequence[str]) -> dict[str, _Source]:
        used = [self._documents.shards[shard] for shard in shards]
        ranges = [row for shard in shards for row in self._ranges(shard) if row.project in names]
        with_rows = {row.shard for row in ranges}
        texts = read_repositories(
            self._documents.out, [shard for shard in used if shard.path in with_rows], ranges, self._encoding
        )
        ids = {file.doc_id for text in texts for file in text.files}
        documents = {found.doc_id: found for shard in with_rows for found, _ in self._documents.find(shard, ids)}
        return {text.name: self._repository(text, documents) for text in texts}

    def _ranges(self, shard: str) -> Iterator[ProjectRows]:
        with self._documents.open(shard) as file:
            table = file.read(columns=["project", "num_tokens"])
        for project, start, end, tokens in project_rows(table["project"].to_pylist(), table["num_tokens"].to_pylist()):
            yield ProjectRows(project, shard, start, end, tokens)

    def _repository(self, text: SourceText, documents: Mapping[str, RunDocument]) -> _Source:
        end = len(text.ids) - int(self._encoding.policy.eos)
        behind = [*(file.start for file in text.files[1:]), end]
        parts = []
        for file, stop in zip(text.files, behind, strict=True):
            document = documents[file.doc_id]
            path = _tokens_of_path(document.path, self._encoding.tokenizer)
            parts.append(_Part(document, file.start + 1 + path, stop))
        return _Source(parts, self._offsets(text.ids))

    def _offsets(self, ids: TokenIds) -> npt.NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self._bytes[ids])])


def _tokens_of_path(path: str, tokenizer: AnyTokenizer) -> int:
    """Return how many ids the line with the path of a file takes in a repository."""
    return len(tokenizer.encode(path.encode() + b"\n"))
