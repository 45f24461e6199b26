"""Reads and rewrites SentencePiece's `.model` files: a protocol buffer, `ModelProto` of `sentencepiece_model.proto`.

The wire format (https://protobuf.dev/programming-guides/encoding/) is parsed here because the classes in the
`sentencepiece` package need a newer protobuf than Beam allows, and training scripts should not need protobuf at all.
Only the fields that determine tokens are read; rewriting a model keeps the bytes of all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from cppmill_core._native import CorruptDataError

__all__ = ["SPACE", "UNKNOWN", "Model", "ModelType", "Piece", "PieceType", "read_model", "rewrite_pieces"]

SPACE = "\u2581"
"""The character that represents a space in pieces."""

UNKNOWN = " \u2047 ".encode()
"""What the unknown piece decodes to unless a model says otherwise."""

_BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")

_VARINT, _BYTES = 0, 2
_WIDTHS = {1: 8, 5: 4}
"""The length in bytes of fixed-width numbers, by wire type."""

_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_TEXT, _TYPE = 1, 3

_WIRES: dict[int, dict[int, int]] = {
    _PIECES: {_TEXT: _BYTES, _TYPE: _VARINT},
    _TRAINER: {3: _VARINT, 24: _VARINT, 35: _VARINT, 44: _BYTES},
    _NORMALIZER: {1: _BYTES, 2: _BYTES, 3: _VARINT, 4: _VARINT, 5: _VARINT},
}
"""The wire types of the fields that are read, by message: protobuf leaves out a field of another wire type."""

Value = int | bytes
Field = tuple[int, int, Value]
"""Number, wire type and value; a fixed-width number is kept as bytes."""


class PieceType(IntEnum):
    """The type of a piece; only normal and user-defined pieces match text."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class ModelType(IntEnum):
    """The algorithm with which a model segments text."""

    UNIGRAM = 1
    BPE = 2
    WORD = 3
    CHAR = 4


@dataclass(frozen=True)
class Piece:
    """The piece of one id: its text, with U+2581 for a space, and its type."""

    text: str
    type: PieceType = PieceType.NORMAL


@dataclass(frozen=True)
class Model:
    """The fields of a model that determine tokens.

    Attributes:
        pieces: The pieces, by id.
        type: Its algorithm.
        byte_fallback: Whether characters without a piece become byte pieces.
        rules: The name of its normalisation rules; `identity` changes nothing.
        has_charsmap: Whether it has a normalisation table.
        add_dummy_prefix: Whether it puts a space before each text.
        remove_extra_whitespaces: Whether it collapses runs of spaces.
        escape_whitespaces: Whether pieces have U+2581 for a space.
        treat_whitespace_as_suffix: Whether a space belongs to the word before it.
        unknown: What the unknown piece decodes to.
    """

    pieces: tuple[Piece, ...]
    type: ModelType = ModelType.UNIGRAM
    byte_fallback: bool = False
    rules: str = ""
    has_charsmap: bool = False
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False
    unknown: bytes = UNKNOWN


def read_model(data: bytes, *, where: str) -> Model:
    """Read a model.

    Args:
        data: The file.
        where: Names the file in errors.

    Raises:
        CorruptDataError: The file is not a model.
    """
    try:
        fields = list(_fields(data))
        if any(wire != _BYTES for number, wire, _ in fields if number in _WIRES):
            raise ValueError("a message has another wire type")
        pieces = tuple(_piece(_as_bytes(value)) for number, _, value in fields if number == _PIECES)
        trainer, normalizer = ({}, {}) if not pieces else (_merged(fields, _TRAINER), _merged(fields, _NORMALIZER))
        model = replace(
            Model(pieces),
            type=ModelType(int(trainer.get(3, ModelType.UNIGRAM))),
            byte_fallback=bool(trainer.get(35, 0)),
            treat_whitespace_as_suffix=bool(trainer.get(24, 0)),
            unknown=_as_bytes(trainer.get(44, UNKNOWN)),
            rules=_as_bytes(normalizer.get(1, b"")).decode(),
            has_charsmap=bool(normalizer.get(2, b"")),
            add_dummy_prefix=bool(normalizer.get(3, 1)),
            remove_extra_whitespaces=bool(normalizer.get(4, 1)),
            escape_whitespaces=bool(normalizer.get(5, 1)),
        )
    except (ValueError, IndexError) as error:
        raise CorruptDataError(f"{where}: not a SentencePiece model ({error})") from error
    if not pieces:
        raise CorruptDataError(f"{where}: not a SentencePiece model: no pieces in it")
    return model


def rewrite_pieces(data: bytes, change: Callable[[int, Piece], Piece]) -> bytes:
    """Return the file of a model with changed pieces; scores and all other fields stay the same.

    Args:
        data: The file.
        change: Returns the new piece for an id and its piece.
    """
    out, number_of_piece = bytearray(), 0
    for number, wire, value in _fields(data):
        if number == _PIECES:
            value = _rewritten(_as_bytes(value), change(number_of_piece, _piece(_as_bytes(value))))
            number_of_piece += 1
        out += _written(number, wire, value)
    return bytes(out)


def _piece(data: bytes) -> Piece:
    fields = _last_values([data], _PIECES)
    text, kind = _as_bytes(fields.get(_TEXT, b"")).decode(), PieceType(int(fields.get(_TYPE, PieceType.NORMAL)))
    if kind is PieceType.BYTE and not _BYTE_PIECE.fullmatch(text):
        raise ValueError(f"the byte piece {text!r} names no byte")
    return Piece(text, kind)


def _rewritten(data: bytes, piece: Piece) -> bytes:
    """Return a piece's message with another text and type; other fields, such as the score, are copied."""
    kept = [field for field in _fields(data) if field[0] not in (_TEXT, _TYPE)]
    fields: list[Field] = [(_TEXT, _BYTES, piece.text.encode()), *kept]
    if piece.type is not PieceType.NORMAL:
        fields.append((_TYPE, _VARINT, int(piece.type)))
    return b"".join(_written(*field) for field in fields)


def _merged(fields: list[Field], message: int) -> dict[int, Value]:
    """Return the last value of each field of an embedded message, by number."""
    return _last_values((_as_bytes(data) for at, _, data in fields if at == message), message)


def _last_values(parts: Iterable[bytes], message: int) -> dict[int, Value]:
    """Return the last value of each field in the parts of a message, by number.

    Raises:
        ValueError: A field that is read has another wire type, so the `sentencepiece` package would not read it.
    """
    found: dict[int, Value] = {}
    for data in parts:
        for number, wire, value in _fields(data):
            if wire != _WIRES[message].get(number, wire):
                raise ValueError(f"field {message}.{number} has the wire type {wire}")
            found[number] = value
    return found


def _as_bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where text is expected")
    return value


def _fields(data: bytes) -> Iterator[Field]:
    """Yield the fields of a message.

    Raises:
        ValueError: The data is not a message, or cut short.
        IndexError: The data is cut short within a number.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire not in (_BYTES, *_WIDTHS):
            raise ValueError(f"wire type {wire} at byte {at}")
        length, at = (_WIDTHS[wire], at) if wire in _WIDTHS else _varint(data, at)
        if at + length > len(data):
            raise ValueError("it is cut short")
        yield number, wire, data[at : at + length]
        at += length


def _written(number: int, wire: int, value: Value) -> bytes:
    tag = _written_varint(number << 3 | wire)
    if isinstance(value, int):
        return tag + _written_varint(value)
    return tag + (_written_varint(len(value)) if wire == _BYTES else b"") + value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError(f"a number of more than 64 bits at byte {at}")


def _written_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
