r"""Byte tables: how many bytes of text each token has, to convert a loss per token to bits per byte.

Loss per token cannot be compared between tokenizers, because longer tokens have a higher loss. Bits per byte can: the
loss of a text in bits, divided by the bytes of the text. The bytes are counted from ids alone, with three tables of one
row per id, in the form that OpenAI published for SentencePiece with its small-model contest `parameter-golf`
(`build_sentencepiece_luts` in train_gpt.py):

    bytes of a token = base_bytes[id] + (has_leading_space[id] and not is_boundary[previous id])

Tables follow one of two conventions, which they record. `exact`: an id has the same bytes everywhere, so
`has_leading_space` is always false; for byte-level BPE, and SentencePiece without a dummy prefix. `dummy-prefix`: the
SentencePiece model puts a space before each text, so the leading space of a token counts only after a token with text.

The tables count the text that the model sees: a SentencePiece model that normalises text counts the bytes of the
normalised text, and one without byte fallback counts none for unknown characters.

Needs numpy. Tables of a `.model` file also need the sentencepiece package, which is imported only then.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import math
import os
import tokenize
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.protocol import AnyTokenizer
from cppmill_core.sentencepiece import SPACE, piece_bytes
from cppmill_core.sentencepiece.proto import PieceType, read_model

__all__ = ["DUMMY_PREFIX", "EXACT", "FORMAT", "ByteTables", "bits_per_byte", "bits_per_character"]

FORMAT = "cppmill-byte-tables-1"
EXACT = "exact"
DUMMY_PREFIX = "dummy-prefix"

_ARRAYS = {"base_bytes": np.int16, "has_leading_space": np.bool_, "is_boundary": np.bool_}
_MALFORMED = (
    *(ValueError, KeyError, TypeError, EOFError, MemoryError, NotImplementedError, SyntaxError),
    *(zipfile.BadZipFile, tokenize.TokenError),  # numpy reads headers as Python
)
_MAX_TOKEN_BYTES = int(np.iinfo(np.int16).max)


@dataclass(frozen=True, eq=False, kw_only=True)
class ByteTables:
    """The bytes of each id of one tokenizer.

    Attributes:
        base_bytes: int16, one row per id: its bytes, without a leading space that may come from the dummy prefix.
        has_leading_space: bool: whether the token has one byte more after a token that is not a boundary.
        is_boundary: bool: whether the id has no text: control, unknown, reserved and unused ids.
        tokenizer: Digest of the tokenizer; for a `.model` file, its SHA-256.
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
    def of_sentencepiece(cls, model: str | os.PathLike[str] | Any) -> ByteTables:  # noqa: ANN401 - an optional package
        """Make the tables of a SentencePiece model, with the convention that fits its training.

        As published, a byte token counts 1, and control, unknown and unused pieces are boundaries. Unlike the published
        tables, a marker inside a piece counts as one byte, a space, not as the three bytes of its UTF-8.

        Args:
            model: A `.model` file, or a `sentencepiece.SentencePieceProcessor`.

        Raises:
            ImportError: If the sentencepiece package is not installed.
            OSError: If the file cannot be read.
            CorruptDataError: If it is not a model.
            InvalidInputError: If the model puts its marker after words.
        """
        processor = _open_sentencepiece(model) if isinstance(model, str | os.PathLike) else model
        dummy_prefix = _has_dummy_prefix(processor)
        parsed = read_model(processor.serialized_model_proto(), where="the model")
        pieces = piece_bytes(parsed)
        conditional = [
            dummy_prefix and (text or b"").startswith(b" ") and piece.type is not PieceType.BYTE
            for piece, text in zip(parsed.pieces, pieces, strict=True)
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
        """Return the number of bytes of each token, as int64 in the shape of `ids`.

        Args:
            ids: Integers in any shape, consecutive tokens along the last axis: a numpy or Arrow array, or a sequence.
            previous: The id before each row of tokens; or, in the shape of `ids`, the id before each token, such as the
                inputs of a model for its targets. Without it, each row begins a text.

        Raises:
            InvalidInputError: If an id is not one of the tokenizer, such as an id that pads the vocabulary.
        """
        tokens = self._ids(ids)
        num_bytes = self.base_bytes[tokens].astype(np.int64)
        if self.convention == DUMMY_PREFIX and tokens.size:
            num_bytes += self.has_leading_space[tokens] & ~self._boundary_before(tokens, previous)
        return num_bytes

    def count_bytes(self, ids: Any, previous: Any = None) -> int:  # noqa: ANN401 - any array
        """Return the number of bytes of all tokens; the arguments are those of `token_num_bytes`."""
        return int(self.token_num_bytes(ids, previous).sum())

    def count_documents(self, lists: pa.ListArray[Any] | pa.ChunkedArray[Any]) -> npt.NDArray[np.int64]:
        """Return the number of bytes of each list of ids, a whole text each, such as `token_ids` of token shards.

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
        """Return for each token whether the one before it has no text."""
        if previous is not None and np.shape(previous) == tokens.shape:
            return self.is_boundary[self._ids(previous)]
        before = np.ones(tokens.shape, np.bool_)
        before[..., 1:] = self.is_boundary[tokens[..., :-1]]
        if previous is not None:
            before[..., 0] = self.is_boundary[self._ids(previous)]
        return before

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz file: the three arrays, and `format`, `tokenizer` and `convention` as strings.

        Equal tables give equal files. The file is there whole or, if it cannot be written, as it was before.

        Raises:
            OSError: If the file cannot be written.
        """
        _write_whole(Path(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return what `save` writes."""
        arrays, file = {name: getattr(self, name) for name in _ARRAYS}, io.BytesIO()
        np.savez(file, **arrays, format=FORMAT, tokenizer=self.tokenizer, convention=self.convention)
        return file.getvalue()

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, tokenizer: AnyTokenizer | str | None = None) -> ByteTables:
        """Read the tables that `save` wrote.

        Args:
            path: The file.
            tokenizer: The tokenizer of the model, or its digest; tables of another one are refused. Of the tokenizer
                itself the tables are made again and compared; a digest says nothing of their numbers.

        Raises:
            OSError: If the file cannot be read.
            CorruptDataError: If the file has no byte tables, damaged ones, or others than the tokenizer gives.
            InvalidInputError: If the tables are for another tokenizer.
        """
        try:
            with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                found = {name: file[name] for name in (*_ARRAYS, "format", "tokenizer", "convention")}
            tables = cls._checked(found)
        except _MALFORMED as error:
            raise CorruptDataError(f"{path}: not byte tables of format {FORMAT} ({error}); write them again") from error
        digest = tokenizer if isinstance(tokenizer, str) or tokenizer is None else tokenizer.digest
        if digest is not None and digest != tables.tokenizer:
            raise InvalidInputError(
                f"{path}: byte tables of tokenizer {tables.tokenizer}, not of {digest}; write them for it"
            )
        if not (tokenizer is None or isinstance(tokenizer, str) or tables.is_same(cls.of(tokenizer))):
            raise CorruptDataError(f"{path}: not the byte tables that the tokenizer gives; write them again")
        return tables

    def is_same(self, other: ByteTables) -> bool:
        """Return whether tables have the same values, for the same tokenizer."""
        named = (self.tokenizer, self.convention) == (other.tokenizer, other.convention)
        return named and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS)

    @classmethod
    def _checked(cls, found: dict[str, npt.NDArray[Any]]) -> ByteTables:
        if str(found["format"]) != FORMAT:
            raise ValueError(f"format {str(found['format'])!r}")
        if str(found["convention"]) not in (EXACT, DUMMY_PREFIX):
            raise ValueError(f"convention {str(found['convention'])!r}")
        for name, kind in _ARRAYS.items():
            if found[name].dtype != kind or found[name].shape != found["base_bytes"].shape or found[name].ndim != 1:
                raise ValueError(f"{name} is {found[name].dtype}{list(found[name].shape)}")
        arrays: dict[str, Any] = {name: found[name] for name in _ARRAYS}
        spaces = arrays["has_leading_space"]
        if not len(spaces) or (arrays["base_bytes"] < 0).any():
            raise ValueError("no tokens, or fewer than 0 bytes")
        if (arrays["is_boundary"] & ((arrays["base_bytes"] > 0) | spaces)).any():
            raise ValueError("tokens without text that have bytes")
        if spaces.any() and str(found["convention"]) == EXACT:
            raise ValueError(f"spaces before tokens, by the convention {EXACT!r}")
        return cls(**arrays, tokenizer=str(found["tokenizer"]), convention=str(found["convention"]))


def bits_per_byte(loss_nats: float, tokens: int, num_bytes: int) -> float:
    """Return the bits per byte of a text.

    Args:
        loss_nats: Mean loss per token: cross-entropy with the natural logarithm, as frameworks compute it.
        tokens: The number of tokens in the mean.
        num_bytes: The bytes of these tokens, as `ByteTables.count_bytes` counts them.

    Raises:
        InvalidInputError: If there are no bytes.

    Example:
        >>> round(bits_per_byte(2.0, tokens=1000, num_bytes=4000), 4)
        0.7213
    """
    return _bits_per(loss_nats, tokens, num_bytes, "bytes")


def bits_per_character(loss_nats: float, tokens: int, num_characters: int) -> float:
    """Return the bits per Unicode character of a text; `bits_per_byte` explains the arguments.

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


def _open_sentencepiece(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 - an optional package
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


def _has_dummy_prefix(processor: Any) -> bool:  # noqa: ANN401 - an optional package
    """Return whether a model puts a space before a text, by normalising one."""
    normalized = processor.normalize("a")
    if normalized.endswith(SPACE):
        raise InvalidInputError("the model puts the marker of a space behind words, not before them: no tables for it")
    return bool(normalized.startswith(SPACE))


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file under another name, flush it, and rename it."""
    target = path.resolve()
    part = target.with_name(f".{target.name}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError:
        part.unlink(missing_ok=True)
        raise
