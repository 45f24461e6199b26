"""The byte-level alphabet that GPT-2 published: one printable character for each byte.

Printable bytes are spelled as themselves, the 68 others for U+0100 upwards in byte order.
"""

from __future__ import annotations

__all__ = ["BYTES_IN_ORDER", "CHARACTERS", "read_spelling", "spell"]


def _alphabet() -> tuple[str, ...]:
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in printable]
    return tuple(chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256))


CHARACTERS = _alphabet()
"""The character of each byte."""

BYTES_IN_ORDER = tuple(sorted(range(256), key=CHARACTERS.__getitem__))
"""Every byte, in the order of the characters: the published order of the initial alphabet."""


def spell(token: bytes) -> str:
    r"""Return a token as tokenizer.json spells it.

    Example:
        >>> spell(b" a\n")
        'ĠaĊ'
    """
    return token.decode("latin-1").translate(CHARACTERS)


_BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}


def read_spelling(text: str) -> bytes:
    r"""Return the token that tokenizer.json spells so.

    Raises:
        KeyError: For a character that is not of the alphabet.

    Example:
        >>> read_spelling('ĠaĊ')
        b' a\n'
    """
    return bytes(_BYTES[character] for character in text)
