r"""Byte tables: how many bytes of text each token stands for, so that a loss per token becomes bits per byte.

Loss per token means nothing between two tokenizers, as a token of more bytes has more loss. Bits per byte can be
compared: the loss of a text in bits over the bytes of that text. The bytes are counted from ids alone, by three tables
with a row an id, in the form that was published for SentencePiece with the small-model contest `parameter-golf` of
OpenAI (`build_sentencepiece_luts` in its train_gpt.py):

    bytes of a token = base_bytes[id] + (has_leading_space[id] and not is_boundary[previous id])

Tables are exact in one of two conventions, and say which. `exact`: an id stands for the same bytes wherever it is, so
that `has_leading_space` is false throughout; byte-level BPE, and SentencePiece without a dummy prefix. `dummy-prefix`:
a SentencePiece model puts a space before the text that is not in it, so that the leading space of a token counts only
behind a token that is text.

What is counted is what the tokenizer was given: a SentencePiece model that normalises text has the bytes of the
normalised text, and one without byte fallback has none for characters that it does not know.

Needs numpy; SentencePiece models need the sentencepiece package, which is imported only then.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.protocol import AnyTokenizer
from cppmill_core.sentencepiece_proto import read_model

__all__ = ["DUMMY_PREFIX", "EXACT", "FORMAT", "ByteTables", "bits_per_byte", "bits_per_character"]

FORMAT = "cppmill-byte-tables-1"
EXACT = "exact"
DUMMY_PREFIX = "dummy-prefix"

_MARKER = "\u2581"
_ARRAYS = {"base_bytes": np.int16, "has_leading_space": np.bool_, "is_boundary": np.bool_}
_MAX_TOKEN_BYTES = int(np.iinfo(np.int16).max)


@dataclass(frozen=True, eq=False, kw_only=True)
class ByteTables:
    """The bytes of each id of one tokenizer.

    Attributes:
        base_bytes: int16, a row an id: its bytes, without a leading space that may not be one of the text.
        has_leading_space: bool: one byte more, unless the token before is a boundary.
        is_boundary: bool: no text: control, unknown, reserved and unused ids, which have no bytes.
        tokenizer: Digest of the tokenizer; of a SentencePiece model by itself the SHA-256 of its file.
        convention: `EXACT` or `DUMMY_PREFIX`.

    Example:
        >>> tables = ByteTables.of(tokenizer)
        >>> tables.count_bytes(tokenizer.encode("int main() {}"))
        13
    """

    base_bytes: npt.NDArray[np.int16]
    has_leading_space: npt.NDArray[np.bool_]
    is_boundary: npt.NDArray[np.bool_]
    tokenizer: str
    convention: str

    @classmethod
    def of(cls, tokenizer: AnyTokenizer) -> ByteTables:
        """Make the tables of a loaded tokenizer; they are exact.

        Raises:
            InvalidInputError: If a token has more than 32,767 bytes.
        """
        tokens = [tokenizer.token_bytes(id_) for id_ in range(tokenizer.vocab_size)]
        return cls._made(
            [0 if token is None else len(token) for token in tokens],
            has_leading_space=[False] * len(tokens),
            is_boundary=[token is None for token in tokens],
            tokenizer=tokenizer.digest,
        )

    @classmethod
    def of_sentencepiece(cls, model: str | os.PathLike[str] | Any) -> ByteTables:  # noqa: ANN401 - may not be there
        """Make the tables of a SentencePiece model as it is, with the convention that it was trained with.

        As published: a byte token counts 1; control, unknown and unused pieces are boundaries. Not as published: a
        marker inside a piece is the one byte of a space, not the three of its own UTF-8.

        Args:
            model: A `.model` file, or a `sentencepiece.SentencePieceProcessor`.

        Raises:
            ImportError: If the sentencepiece package is not installed.
            OSError: If the file cannot be read.
            CorruptDataError: If it is no model.
            InvalidInputError: If the model puts its marker behind words.
        """
        processor = _open_sentencepiece(model) if isinstance(model, str | os.PathLike) else model
        dummy_prefix = _has_dummy_prefix(processor)
        pieces = [_piece_bytes(processor, id_) for id_ in range(processor.vocab_size())]
        conditional = [
            dummy_prefix and (text or b"").startswith(b" ") and not processor.is_byte(id_)
            for id_, text in enumerate(pieces)
        ]
        return cls._made(
            [len(text or b"") - taken for text, taken in zip(pieces, conditional, strict=True)],
            has_leading_space=conditional,
            is_boundary=[text is None for text in pieces],
            tokenizer=hashlib.sha256(processor.serialized_model_proto()).hexdigest(),
            convention=DUMMY_PREFIX if dummy_prefix else EXACT,
        )

    @classmethod
    def _made(
        cls,
        base_bytes: list[int],
        *,
        has_leading_space: list[bool],
        is_boundary: list[bool],
        tokenizer: str,
        convention: str = EXACT,
    ) -> ByteTables:
        longest = max(base_bytes, default=0)
        if longest > _MAX_TOKEN_BYTES:
            raise InvalidInputError(
                f"id {base_bytes.index(longest)}: {longest:,} bytes; byte tables hold tokens of up to "
                f"{_MAX_TOKEN_BYTES:,}"
            )
        return cls(
            base_bytes=np.array(base_bytes, np.int16),
            has_leading_space=np.array(has_leading_space, np.bool_),
            is_boundary=np.array(is_boundary, np.bool_),
            tokenizer=tokenizer,
            convention=convention,
        )

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return len(self.base_bytes)

    def token_num_bytes(self, ids: Any, previous: Any = None) -> npt.NDArray[np.int64]:  # noqa: ANN401 - any array
        """Return the bytes of each token, an int64 in the place of each id.

        Args:
            ids: Integers in any shape, tokens that follow one another along the last axis: a numpy or Arrow array, or a
                sequence.
            previous: The id before each row of tokens, or before each token where it has the shape of `ids` (the inputs
                of a model beside its targets). Without it, each row begins a text.

        Raises:
            InvalidInputError: For an id that is not one of the tokenizer, a padded one of the model say.
        """
        tokens = self._ids(ids)
        num_bytes = self.base_bytes[tokens].astype(np.int64)
        if self.convention == DUMMY_PREFIX and tokens.size:
            num_bytes += self.has_leading_space[tokens] & ~self._boundary_before(tokens, previous)
        return num_bytes

    def count_bytes(self, ids: Any, previous: Any = None) -> int:  # noqa: ANN401 - any array
        """Return the bytes of all tokens together; the arguments are those of `token_num_bytes`."""
        return int(self.token_num_bytes(ids, previous).sum())

    def count_documents(self, lists: pa.ListArray[Any] | pa.ChunkedArray[Any]) -> npt.NDArray[np.int64]:
        """Return the bytes of each list of ids, a whole text each: the column `token_ids` of token shards, say.

        Raises:
            InvalidInputError: As `token_num_bytes`.
        """
        array: Any = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
        offsets = np.concatenate([[0], np.cumsum(np.asarray(array.value_lengths(), np.int64))]).astype(np.int64)
        tokens = self._ids(array.flatten())
        num_bytes = self.base_bytes[tokens].astype(np.int64)
        if self.convention == DUMMY_PREFIX and tokens.size:
            before = self._boundary_before(tokens, None)
            before[offsets[:-1][offsets[:-1] < len(tokens)]] = True
            num_bytes += self.has_leading_space[tokens] & ~before
        sums = np.concatenate([[0], np.cumsum(num_bytes)])
        return np.asarray(sums[offsets[1:]] - sums[offsets[:-1]], np.int64)

    def _ids(self, ids: Any) -> npt.NDArray[np.int64]:  # noqa: ANN401 - any array
        tokens = np.atleast_1d(np.asarray(ids))
        if tokens.size and tokens.dtype.kind not in "iu":
            raise InvalidInputError(f"ids of type {tokens.dtype}: integers are needed")
        if tokens.size and not 0 <= int(tokens.min()) <= int(tokens.max()) < self.vocab_size:
            wrong = int(tokens.max() if tokens.min() >= 0 else tokens.min())
            raise InvalidInputError(
                f"id {wrong}: the byte tables have the ids 0 to {self.vocab_size - 1:,}, of tokenizer {self.tokenizer}"
            )
        return tokens.astype(np.int64)

    def _boundary_before(self, tokens: npt.NDArray[np.int64], previous: Any) -> npt.NDArray[np.bool_]:  # noqa: ANN401
        """Tell of each token whether what stands before it is no text."""
        if previous is not None and np.shape(previous) == tokens.shape:
            return self.is_boundary[self._ids(previous)]
        before = np.ones(tokens.shape, np.bool_)
        before[..., 1:] = self.is_boundary[tokens[..., :-1]]
        if previous is not None:
            before[..., 0] = self.is_boundary[self._ids(previous)]
        return before

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tables as an .npz file: the three arrays, and `format`, `tokenizer` and `convention` as strings.

        The same tables give the same bytes.

        Raises:
            OSError: If the file cannot be written.
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        with Path(path).open("wb") as file:
            np.savez(file, **arrays, format=FORMAT, tokenizer=self.tokenizer, convention=self.convention)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, tokenizer: AnyTokenizer | str | None = None) -> ByteTables:
        """Read the tables that `save` wrote.

        Args:
            path: The file.
            tokenizer: The tokenizer of the model, or its digest: checked to be the one whose tables they are.

        Raises:
            OSError: If the file cannot be read.
            CorruptDataError: If it holds no byte tables, or damaged ones.
            InvalidInputError: If they are another tokenizer's.
        """
        try:
            with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                found = {name: file[name] for name in (*_ARRAYS, "format", "tokenizer", "convention")}
            tables = cls._checked(found)
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise CorruptDataError(f"{path}: not byte tables of format {FORMAT} ({error}); write them again") from error
        digest = tokenizer if isinstance(tokenizer, str) or tokenizer is None else tokenizer.digest
        if digest is not None and digest != tables.tokenizer:
            raise InvalidInputError(
                f"{path}: byte tables of tokenizer {tables.tokenizer}, not of {digest}; write them for it"
            )
        return tables

    @classmethod
    def _checked(cls, found: dict[str, npt.NDArray[Any]]) -> ByteTables:
        if str(found["format"]) != FORMAT:
            raise ValueError(f"format {str(found['format'])!r}")
        if str(found["convention"]) not in (EXACT, DUMMY_PREFIX):
            raise ValueError(f"convention {str(found['convention'])!r}")
        for name, kind in _ARRAYS.items():
            if found[name].dtype != kind or found[name].shape != found["base_bytes"].shape or found[name].ndim != 1:
                raise ValueError(f"{name} is {found[name].dtype}{list(found[name].shape)}")
        return cls(
            base_bytes=found["base_bytes"],
            has_leading_space=found["has_leading_space"],
            is_boundary=found["is_boundary"],
            tokenizer=str(found["tokenizer"]),
            convention=str(found["convention"]),
        )


def bits_per_byte(loss_nats: float, tokens: int, num_bytes: int) -> float:
    """Return the bits that a model needs for a byte of a text.

    Args:
        loss_nats: Mean loss of a token, cross-entropy with the natural logarithm, as frameworks give it.
        tokens: How many tokens it is the mean of.
        num_bytes: How many bytes these tokens stand for, as `ByteTables.count_bytes` counts them.

    Raises:
        InvalidInputError: If there are no bytes.

    Example:
        >>> round(bits_per_byte(2.0, tokens=1000, num_bytes=4000), 4)
        0.7213
    """
    return _bits_per(loss_nats, tokens, num_bytes, "bytes")


def bits_per_character(loss_nats: float, tokens: int, num_characters: int) -> float:
    """Return the bits that a model needs for a character of a text: `bits_per_byte` with Unicode characters.

    Raises:
        InvalidInputError: If there are no characters.

    Example:
        >>> round(bits_per_character(2.0, tokens=1000, num_characters=3900), 4)
        0.7398
    """
    return _bits_per(loss_nats, tokens, num_characters, "characters")


def _bits_per(loss_nats: float, tokens: int, number: int, unit: str) -> float:
    if number <= 0 or tokens < 0:
        raise InvalidInputError(f"{tokens:,} tokens and {number:,} {unit}: a text of one of them at least is needed")
    return loss_nats * tokens / number / math.log(2)


def _open_sentencepiece(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 - the package may not be there
    try:
        library = importlib.import_module("sentencepiece")
    except ImportError as error:
        raise ImportError("byte tables of a .model file need sentencepiece: pip install sentencepiece") from error
    data = Path(path).read_bytes()
    read_model(data, where=str(path))
    try:
        return library.SentencePieceProcessor(model_proto=data)
    except RuntimeError as error:
        raise CorruptDataError(f"{path}: not a SentencePiece model that sentencepiece takes") from error


def _has_dummy_prefix(processor: Any) -> bool:  # noqa: ANN401 - the package may not be there
    """Tell whether a model puts a space before a text, by what it does to one."""
    normalized = processor.normalize("a")
    if normalized.endswith(_MARKER):
        raise InvalidInputError("the model puts the marker of a space behind words, not before them: no tables for it")
    return bool(normalized.startswith(_MARKER))


def _piece_bytes(processor: Any, id_: int) -> bytes | None:  # noqa: ANN401 - the package may not be there
    """Return the text of a piece with its markers as spaces, None for what is no text."""
    if processor.is_control(id_) or processor.is_unknown(id_) or processor.is_unused(id_):
        return None
    piece = processor.id_to_piece(id_)
    if processor.is_byte(id_):
        return bytes([int(piece[3:5], 16)])
    return str(piece).replace(_MARKER, " ").encode()
