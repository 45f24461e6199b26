"""Fill in the middle: a text's prefix, suffix and middle, rearranged so that a model learns to write the middle last.

"Efficient Training of Language Models to Fill in the Middle" (Bavarian and others, 2022): two places in the text are
chosen, each as likely as any other, and the three pieces are encoded by themselves. PSM: `<FIM_PREFIX>` prefix
`<FIM_SUFFIX>` suffix `<FIM_MIDDLE>` middle. SPM: `<FIM_PREFIX>` `<FIM_SUFFIX>` suffix `<FIM_MIDDLE>` prefix middle, the
paper's second variant, which shares its beginning with PSM.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import cppmill_core
import numpy as np
import pyarrow as pa
from cppmill_core import AnyTokenizer

from schemas.errors import ConfigError
from schemas.export_options import Fim, SequenceOptions
from transforms.tokens.shards import TokenIds

NAMES = ("<FIM_PREFIX>", "<FIM_SUFFIX>", "<FIM_MIDDLE>")
"""The control tokens, in the order in which PSM has them."""

_BATCH_TOKENS = 1 << 22
"""About how many tokens are decoded at once: their text is in memory."""


class FimChoice(NamedTuple):
    """How one segment is rearranged: a number for each place, of 64 bits, that the length of the text scales."""

    kind: Fim
    places: tuple[int, int]


class FimSplit(NamedTuple):
    """The kind, and where in the text, in bytes, the middle starts and ends."""

    kind: Fim
    start: int
    end: int


NOT_SPLIT = FimSplit(Fim.NONE, 0, 0)


def choose_fim(options: SequenceOptions, name: str, copy: int, first_token: int) -> FimChoice | None:
    """Return how a segment is rearranged, None if it stays as it is. The hash of all arguments decides.

    Args:
        options: `fim_rate`, `fim_spm_share`, `seed`.
        name: The document.
        copy: Which copy of it, from 0.
        first_token: Where in the document the segment begins.
    """
    digest = hashlib.sha256(f"fim/{options.seed}/{name}/{copy}/{first_token}".encode()).digest()
    taken, kind, *places = (int.from_bytes(digest[at : at + 8], "big") for at in range(0, 32, 8))
    if taken >= options.fim_rate * 2**64:
        return None
    return FimChoice(Fim.SPM if kind < options.fim_spm_share * 2**64 else Fim.PSM, (places[0], places[1]))


def split_text(text: bytes, choice: FimChoice) -> FimSplit:
    """Return where a text is split: at the two chosen places, moved back to where a UTF-8 character begins.

    A place is a number of bytes from 0 to the text's length. In bytes that are no UTF-8 it moves by three at most.
    """
    start, end = sorted(character_start(text, place * (len(text) + 1) >> 64) for place in choice.places)
    return FimSplit(choice.kind, start, end)


def cut_pieces(text: bytes, split: FimSplit) -> tuple[bytes, bytes, bytes]:
    """Return prefix, middle and suffix, which make the text."""
    return text[: split.start], text[split.start : split.end], text[split.end :]


def arrange(kind: Fim, pieces: Sequence[TokenIds], control: Sequence[int]) -> TokenIds:
    """Return the ids of a rearranged text.

    Args:
        kind: PSM or SPM.
        pieces: Ids of prefix, middle and suffix.
        control: Ids of `NAMES`.
    """
    prefix, middle, suffix = pieces
    before, behind, between = (np.array([number], prefix.dtype) for number in control)
    if kind == Fim.PSM:
        return np.concatenate([before, prefix, behind, suffix, between, middle])
    return np.concatenate([before, behind, suffix, between, prefix, middle])


def rearrange(
    texts: Sequence[TokenIds],
    choices: Sequence[FimChoice],
    tokenizer: AnyTokenizer,
    *,
    threads: int = 1,
) -> Iterator[tuple[FimSplit, TokenIds]]:
    """Yield the split and the new ids of each text, in order; some millions of tokens are decoded at once."""
    control = fim_ids(tokenizer)
    for batch in batches_of_texts(texts):
        yield from _rearrange_batch(texts[batch], choices[batch], tokenizer, control, threads)


def batches_of_texts(texts: Sequence[TokenIds]) -> Iterator[slice]:
    """Yield slices of texts that have some millions of tokens each, to decode at once."""
    start = tokens = 0
    for stop, ids in enumerate(texts, start=1):
        tokens += len(ids)
        if tokens >= _BATCH_TOKENS or stop == len(texts):
            yield slice(start, stop)
            start, tokens = stop, 0


def fim_ids(tokenizer: AnyTokenizer) -> list[int]:
    """Return the ids of `NAMES`.

    Raises:
        ConfigError: If the tokenizer lacks one of them.
    """
    try:
        return [tokenizer.control_id(name) for name in NAMES]
    except cppmill_core.InvalidInputError as error:
        raise ConfigError(f"--fim: {error}; fill in the middle needs {', '.join(NAMES)}") from error


def _rearrange_batch(
    texts: Sequence[TokenIds],
    choices: Sequence[FimChoice],
    tokenizer: AnyTokenizer,
    control: Sequence[int],
    threads: int,
) -> Iterator[tuple[FimSplit, TokenIds]]:
    decoded: list[Any] = tokenizer.decode_batch(list_array(texts), threads).to_pylist()
    splits = [split_text(text, choice) for text, choice in zip(decoded, choices, strict=True)]
    pieces = [piece for text, split in zip(decoded, splits, strict=True) for piece in cut_pieces(text, split)]
    encoded = tokenizer.encode_batch(pieces, threads)
    ids, ends = encoded.flatten().to_numpy(), encoded.offsets.to_numpy()
    for number, split in enumerate(splits):
        borders = ends[3 * number : 3 * number + 4]
        parts = [ids[start:end] for start, end in zip(borders[:-1], borders[1:], strict=True)]
        yield split, arrange(split.kind, parts, control)


def list_array(rows: Sequence[TokenIds]) -> pa.ListArray[Any]:
    """Return lists of ids as an Arrow array."""
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    values: pa.Array[Any] = pa.array(np.concatenate(rows))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def character_start(text: bytes, place: int) -> int:
    """Return the place, moved back over at most three bytes that continue a character."""
    for back in range(min(4, place + 1)):
        if place - back == len(text) or text[place - back] & 0xC0 != 0x80:
            return place - back
    return place
