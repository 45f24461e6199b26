"""SentencePiece models that lose text: a space in front, normalised characters, characters without a piece.

A document has the ids that the `sentencepiece` package gives all of it at once, because such a model looks at where a
text begins. Decoding gives what the package gives: the space in front is left out again, and the unknown piece is
`U+2047` between two spaces. So a document that the model does not change comes back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cppmill_core.segments import Bytes, Load, Marks, SegmentTokenizer
from cppmill_core.sentencepiece.proto import Model, PieceType
from cppmill_core.token_table import Integers, TokenTable

__all__ = ["LossyTokenizer"]


class LossyTokenizer(SegmentTokenizer):
    """A tokenizer of whole documents, which need not decode to themselves."""

    is_lossy = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        digest: str,
        table: TokenTable,
        processor: Any,  # noqa: ANN401 - an optional package
        model: Model,
        load: Load,
    ) -> None:
        """Make a tokenizer from the parts of its directory.

        Args:
            path: The directory.
            digest: The digest of its manifest.
            table: Its tokens.
            processor: The model, as the `sentencepiece` package has it.
            model: The same, as parsed.
            load: The function that loads such a directory; unpickling calls it.
        """
        super().__init__(path, digest, table, _WholeDocuments(processor), load, program="sentencepiece")
        self._model = model
        unknown = [piece.type is PieceType.UNKNOWN for piece in model.pieces]
        texts = [model.unknown if silent else t or b"" for silent, t in zip(unknown, table.tokens, strict=True)]
        texts += [t if silent else t.removeprefix(b" ") for silent, t in zip(unknown, texts, strict=True)]
        self._bytes = pa.array(texts, pa.large_binary())
        self._lengths = np.array([len(text) for text in texts], np.int64)
        self._silent &= ~np.array(unknown)

    def _spellings(self, values: Integers, kept: npt.NDArray[np.bool_], offsets: Integers) -> Integers:
        """Return the entries of the table: for the first token of a text the one without the space in front."""
        if not self._model.add_dummy_prefix or self._model.treat_whitespace_as_suffix:
            return values
        before = np.concatenate([[0], np.cumsum(kept)])
        first = kept & (before[:-1] == before[np.repeat(offsets[:-1], np.diff(offsets))])
        return np.where(first, values + self.vocab_size, values)


class _WholeDocuments:
    """Encodes documents with the `sentencepiece` package, uncut."""

    max_bytes: int | None = None
    added: Mapping[bytes, int] = MappingProxyType({})

    def __init__(self, processor: Any) -> None:  # noqa: ANN401
        """Take the model."""
        self._processor = processor

    def borders(self, text: Bytes, documents: pa.Array[Any], starts: Integers) -> Marks:
        """Mark nothing: the caller marks where documents begin."""
        return np.zeros(len(text), np.uint8)

    def encode(self, segments: Sequence[bytes]) -> list[Sequence[int]]:
        """Return the ids of each document."""
        encoded: list[Sequence[int]] = self._processor.encode(list(segments), num_threads=1)
        return encoded
