"""SentencePiece vocabularies, lossless for any bytes; one that loses text only where its manifest says so.

Text has the ids that the `sentencepiece` package gives it. Only what a lossless model would lose is encoded as byte
tokens here: bytes that are not UTF-8, and the character U+2581, which represents a space in pieces. A lossy model runs
as it is (`cppmill_core.sentencepiece.lossy`).

Text is cut between two bytes if no piece has them side by side, so no piece can cross a cut. Each distinct segment is
encoded once, and the ids of a segment do not depend on the text around it. In one long text they would: unigram adds up
scores in float32, which loses precision.

Needs the `sentencepiece` package, which the rest of `cppmill_core` does not.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.manifests import BOS, EOS, LOSSY, SENTENCEPIECE, describe_ids, named_ids, read_manifest
from cppmill_core.segments import MAX_SEGMENT_BYTES, WORD, Bytes, Marks, SegmentTokenizer, invalid_bytes
from cppmill_core.sentencepiece.lossy import LossyTokenizer
from cppmill_core.sentencepiece.proto import SPACE, Model, ModelType, PieceType, read_model
from cppmill_core.token_table import Integers, TokenTable

__all__ = [
    "MODEL",
    "SPACE",
    "byte_piece",
    "describe_sentencepiece",
    "load_sentencepiece",
    "lossy_properties",
    "open_processor",
    "piece_bytes",
]

MODEL = "tokenizer.model"

_SPACE_BYTES = SPACE.encode()
_IN_TEXT = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)


def load_sentencepiece(path: str | os.PathLike[str], digest: str | None = None) -> SegmentTokenizer:
    """Load a tokenizer directory of the kind `sentencepiece`.

    Args:
        path: The directory.
        digest: Refuse a tokenizer with another digest.

    Raises:
        ImportError: The `sentencepiece` package is not installed.
        OSError: A file cannot be read.
        CorruptDataError: A file contradicts the manifest.
        InvalidInputError: The format is newer, or the model is not lossless.
    """
    folder = Path(path)
    found, manifest = read_manifest(folder, digest)
    data = (folder / MODEL).read_bytes()
    model, lossy = read_admitted_model(data, where=str(folder / MODEL), allow_lossy=LOSSY in manifest)
    if manifest.get(LOSSY, []) != lossy:
        raise CorruptDataError(f"{folder}: its manifest says {manifest[LOSSY]} of what is lost, {MODEL} has {lossy}")
    if manifest.get("vocab_size") != len(model.pieces):
        raise CorruptDataError(
            f"{folder}: its manifest says vocab_size {manifest.get('vocab_size')}, {MODEL} has {len(model.pieces)} ids"
        )
    control, roles = named_ids(manifest)
    table = TokenTable(piece_bytes(model), control, roles)
    if lossy:
        processor = open_processor(data, where=str(folder / MODEL))
        return LossyTokenizer(path, found, table, processor, model, load_sentencepiece)
    return SegmentTokenizer(
        path, found, table, SentencePieceSegmenter(data, model), load_sentencepiece, program="sentencepiece"
    )


def describe_sentencepiece(data: bytes, *, where: str, allow_lossy: bool = False) -> dict[str, Any]:
    """Return an adopted model's manifest, without digests of files: kind, vocab_size, tokens, reserved, roles.

    That of a lossy model has the reasons, under `lossy`.

    Args:
        data: The `.model` file.
        where: Names the file in errors.
        allow_lossy: Take a model that loses text.

    Raises:
        CorruptDataError: The file is not a model.
        InvalidInputError: The model is not lossless, and that is not allowed; the message has every reason.
    """
    model, lossy = read_admitted_model(data, where=where, allow_lossy=allow_lossy)
    processor = open_processor(data, where=where)
    ends = {BOS: processor.bos_id(), EOS: processor.eos_id()}
    unused = [id_ for id_, piece in enumerate(model.pieces) if piece.type is PieceType.UNUSED]
    silent = (PieceType.CONTROL, PieceType.UNKNOWN)
    control = {piece.text: id_ for id_, piece in enumerate(model.pieces) if piece.type in silent}
    return {
        "kind": SENTENCEPIECE,
        **describe_ids(len(model.pieces), control, unused, {name: id_ for name, id_ in ends.items() if id_ >= 0}),
        **({LOSSY: lossy} if lossy else {}),
    }


def read_admitted_model(data: bytes, *, where: str, allow_lossy: bool) -> tuple[Model, list[str]]:
    """Read a model and the reasons why it loses text; refuse a lossy one unless it is allowed.

    Raises:
        CorruptDataError: The file is not a model.
        InvalidInputError: The model is not lossless; the message has every reason.
    """
    model = read_model(data, where=where)
    lossy = lossy_properties(model)
    if lossy and not allow_lossy:
        raise InvalidInputError(
            f"{where}: text would not come back as it was: {'; '.join(lossy)}; train it with other settings, or adopt "
            "it with --allow-lossy"
        )
    return model, lossy


def lossy_properties(model: Model) -> list[str]:
    """Return the reasons why a model is not lossless, with the setting to change; empty for a lossless one."""
    byte_pieces = {piece.text for piece in model.pieces if piece.type is PieceType.BYTE}
    without_bytes = not model.byte_fallback or any(byte_piece(byte) not in byte_pieces for byte in range(256))
    rules, kind = model.rules or "its own", model.type.name.lower()
    wrong = [
        (f"its model type is {kind}, not bpe or unigram", model.type not in (ModelType.BPE, ModelType.UNIGRAM)),
        (f"it normalises text (normalization_rule_name = {rules}, not identity)", model.has_charsmap),
        ("it puts a space before text (add_dummy_prefix = true)", model.add_dummy_prefix),
        ("it collapses runs of spaces (remove_extra_whitespaces = true)", model.remove_extra_whitespaces),
        ("it drops spaces (escape_whitespaces = false)", not model.escape_whitespaces),
        ("it has no tokens for bytes (byte_fallback = false)", without_bytes),
    ]
    return [message for message, is_wrong in wrong if is_wrong]


def byte_piece(byte: int) -> str:
    """Return the text of the byte piece of a byte.

    Example:
        >>> byte_piece(10)
        '<0x0A>'
    """
    return f"<0x{byte:02X}>"


def piece_bytes(model: Model) -> list[bytes | None]:
    """Return the bytes of each piece, None for a piece without text."""
    return [
        bytes([int(piece.text[3:5], 16)])
        if piece.type is PieceType.BYTE
        else piece.text.replace(SPACE, " ").encode()
        if piece.type in (PieceType.NORMAL, PieceType.USER_DEFINED)
        else None
        for piece in model.pieces
    ]


class SentencePieceSegmenter:
    """Cuts texts where no piece can cross, and encodes the segments with the `sentencepiece` package."""

    max_bytes: int | None = MAX_SEGMENT_BYTES
    added: Mapping[bytes, int] = MappingProxyType({})

    def __init__(self, data: bytes, model: Model) -> None:
        """Make a segmenter of a model, given as the bytes of its file and as parsed."""
        self._processor = open_processor(data)
        self._joined = _joined_bytes(model)
        self._byte_ids = {
            bytes([int(piece.text[3:5], 16)]): id_
            for id_, piece in enumerate(model.pieces)
            if piece.type is PieceType.BYTE
        }

    def borders(self, text: Bytes, documents: pa.Array[Any], starts: Integers) -> Marks:
        """Mark where segments begin; each byte that SentencePiece would lose is a segment by itself."""
        begins = np.full(len(text), WORD, np.uint8)
        begins[1:] = ~self._joined[text[:-1].astype(np.uint16) << 8 | text[1:]]
        leads = np.flatnonzero(text[:-2] == _SPACE_BYTES[0])
        marks = leads[(text[leads + 1] == _SPACE_BYTES[1]) & (text[leads + 2] == _SPACE_BYTES[2])]
        own = np.concatenate([invalid_bytes(text, documents, starts), marks, marks + 1, marks + 2])
        begins[own] = WORD
        begins[own[own + 1 < len(text)] + 1] = WORD
        return begins

    def encode(self, segments: Sequence[bytes]) -> list[Sequence[int]]:
        """Return the ids of each segment; a single byte beyond ASCII is a byte token."""
        alone = [len(segment) == 1 and segment >= b"\x80" for segment in segments]
        texts = [segment for segment, is_byte in zip(segments, alone, strict=True) if not is_byte]
        encoded = iter(self._processor.encode(texts, num_threads=1) if texts else [])
        return [
            [self._byte_ids[segment]] if is_byte else next(encoded)
            for segment, is_byte in zip(segments, alone, strict=True)
        ]


def open_processor(data: bytes, *, where: str = "the model") -> Any:  # noqa: ANN401 - the package is imported where it is used
    """Return the `SentencePieceProcessor` of a model.

    Args:
        data: The `.model` file.
        where: Names it in errors.

    Raises:
        ImportError: The package is not installed.
        CorruptDataError: The package does not take the model.
    """
    try:
        package = importlib.import_module("sentencepiece")
    except ImportError as error:
        raise ImportError(f"a tokenizer of the kind {SENTENCEPIECE!r} needs sentencepiece: install it") from error
    try:
        return package.SentencePieceProcessor(model_proto=data)
    except RuntimeError as error:
        raise CorruptDataError(f"{where}: not a SentencePiece model that sentencepiece takes ({error})") from error


def _joined_bytes(model: Model) -> Marks:
    """Return whether a piece has two bytes side by side, indexed by the first byte times 256 plus the second.

    The bytes within a character count as joined.
    """
    joined = np.zeros((256, 256), bool)
    joined[:, 0x80:0xC0] = True
    for piece in model.pieces:
        if piece.type in _IN_TEXT:
            text = np.frombuffer(piece.text.replace(SPACE, " ").encode(), np.uint8)
            joined[text[:-1], text[1:]] = True
    return joined.reshape(-1)
