"""An example of a filter for cppmill: it drops documents that are mostly comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
from pydantic import BaseModel, Field

from cppmill import Filter

_COMMENT = re.compile(rb"""//[^\n]*|/\*.*?\*/|(?P<text>"(?:\\.|[^"\\\n])*")""", re.DOTALL)


class Options(BaseModel):
    """What a user writes in `[ingest.filters.mostly_comments]`."""

    most: float = Field(0.9, ge=0.0, le=1.0)


class CommentFilter:
    """The filter at work, made once per worker process."""

    def __init__(self, options: Options) -> None:
        """Take the options of the run."""
        self._most = options.most

    def __call__(self, documents: pa.RecordBatch) -> Iterator[str | None]:
        """Return why each document of a batch is dropped, None if it is kept."""
        for content in documents.column("content").to_pylist():
            share = comment_bytes(content) / len(content)
            yield f"{share:.2f} of it are comments" if share > self._most else None


def comment_bytes(content: bytes) -> int:
    """Return how many bytes of C++ are in comments."""
    return sum(len(match[0]) for match in _COMMENT.finditer(content) if match["text"] is None)


FILTER = Filter(version="1", make=CommentFilter, options=Options)
