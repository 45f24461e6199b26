"""Encoding for the kinds that the native core does not run: each distinct segment of a batch is encoded once.

A segment is a stretch of text that the other program encodes to the same ids alone as within the whole text. Segments
repeat often, so the distinct ones are a small part of a batch. Each byte that the program does not accept, such as one
that is not UTF-8, is a segment by itself and has its own token.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cppmill_core._native import InvalidInputError
from cppmill_core.protocol import AnyTokenizer, Documents
from cppmill_core.token_table import Integers, TokenTable, as_array

__all__ = ["ADDED", "WORD", "Bytes", "Marks", "SegmentTokenizer", "Segmenter", "invalid_bytes"]

MAX_SEGMENT_BYTES = 1 << 16
"""What `Segmenter.max_bytes` is for a program whose ids do not depend on where a text is cut that much later."""

_MAX_TOKENS = (1 << 31) - 1

Bytes = npt.NDArray[np.uint8]
Marks = npt.NDArray[np.uint8]
WORD, ADDED = 1, 2
"""Marks of a byte that begins a segment: one that the program encodes, or an added token."""

Load = Callable[[str | os.PathLike[str], str | None], AnyTokenizer]
"""Loads a tokenizer directory from its path, and checks the digest if one is given."""


class Segmenter(Protocol):
    """What each program must provide: where to cut texts, and the ids of segments.

    Attributes:
        max_bytes: A longer segment is cut, to bound the program's time and memory; None cuts none.
        added: The ids of added tokens that are cut out of text, by their bytes. The same bytes may also be a word.
    """

    @property
    def max_bytes(self) -> int | None:
        """The most bytes of a segment."""

    @property
    def added(self) -> Mapping[bytes, int]:
        """The ids of added tokens."""

    def borders(self, text: Bytes, documents: pa.Array[Any], starts: Integers) -> Marks:
        """Mark each byte that begins a segment as `WORD` or `ADDED`; the caller marks the first byte of each document.

        Args:
            text: The concatenated bytes of all documents; at least one byte.
            documents: The documents.
            starts: The offset of each document in `text`, and the end.
        """

    def encode(self, segments: Sequence[bytes]) -> list[Sequence[int]]:
        """Return the ids of each segment."""


@dataclass(frozen=True)
class _Encoded:
    """The concatenated ids of documents, and the offset of each document in them; one more for the end."""

    ids: Integers
    offsets: Integers


class SegmentTokenizer(TokenTable):
    """A tokenizer of segments, an `AnyTokenizer`; its pickle has the path and digest of its directory."""

    is_lossy = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        digest: str,
        table: TokenTable,
        segmenter: Segmenter,
        load: Load,
        *,
        program: str,
    ) -> None:
        """Make a tokenizer from the parts of its directory.

        Args:
            path: The directory.
            digest: The digest of its manifest.
            table: Its tokens.
            segmenter: What cuts and encodes text.
            load: The function that loads such a directory; unpickling calls it.
            program: What runs it, and why the native core does not, for messages.
        """
        super().__init__(table.tokens, table.control, table.roles)
        self.digest, self.program = digest, program
        self._path, self._segmenter, self._load = path, segmenter, load

    def encode(self, data: bytes | str) -> pa.Array[Any]:
        """Encode one text to a uint16 array, or uint32 if the vocabulary has more than 65,536 ids."""
        return self.encode_batch([data]).values

    def encode_batch(
        self, documents: Documents, threads: int = 1, *, bos: int | None = None, eos: int | None = None
    ) -> pa.ListArray[Any]:
        """Encode many texts, in order, with the id `bos` before and `eos` after the ids of each.

        Raises:
            InvalidInputError: The texts have another type or a null, `bos` or `eos` is not below `vocab_size`, or there
                are more than 2^31 - 1 tokens.
        """
        for id_ in (bos, eos):
            if id_ is not None:
                self.token_bytes(id_)
        shares = _shares(as_array(documents), threads)
        if len(shares) <= 1:
            encoded = [self._encode_share(share) for share in shares]
        else:
            with ThreadPoolExecutor(len(shares)) as pool:
                encoded = list(pool.map(self._encode_share, shares))
        return self._lists(_surrounded(_joined(encoded), bos, eos))

    def _encode_share(self, documents: pa.Array[Any]) -> _Encoded:
        text, starts = _flat(documents)
        if not len(text):
            return _Encoded(np.zeros(0, np.int64), np.zeros(len(starts), np.int64))
        begins = self._segmenter.borders(text, documents, starts)
        firsts = starts[starts < len(text)]
        begins[firsts] = np.maximum(begins[firsts], WORD)
        places = _bounded(text, np.flatnonzero(begins), self._segmenter.max_bytes)
        segments = _slices(text, np.append(places, len(text))).dictionary_encode()
        distinct: list[Any] = segments.dictionary.to_pylist()
        added = self._segmenter.added
        lists = [
            *self._segmenter.encode(distinct),
            *([added[segment]] if segment in added else [] for segment in distinct),
        ]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        ids = np.fromiter(chain.from_iterable(lists), np.int64, int(lengths.sum()))
        which = segments.indices.to_numpy() + len(distinct) * (begins[places] == ADDED)
        offsets = np.append(0, np.cumsum(lengths[which]))[np.searchsorted(places, starts)]
        return _Encoded(_repeated(ids, lengths, which), offsets)

    def _lists(self, encoded: _Encoded) -> pa.ListArray[Any]:
        if len(encoded.ids) > _MAX_TOKENS:
            raise InvalidInputError(
                f"{len(encoded.ids):,} tokens: a list array holds {_MAX_TOKENS:,}; give fewer texts"
            )
        offsets: Any = pa.array(encoded.offsets.astype(np.int32))
        lists: pa.ListArray[Any] = pa.ListArray.from_arrays(offsets, pa.array(encoded.ids).cast(self.id_type))
        return lists

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path and digest."""
        return self._load, (self._path, self.digest)


def invalid_bytes(text: Bytes, documents: pa.Array[Any], starts: Integers) -> Integers:
    """Return the ascending offsets of the bytes that are not UTF-8, document by document.

    A document is cut into its maximal valid runs; every byte between them is returned.
    """
    try:
        documents.cast(pa.large_string())
    except pa.ArrowInvalid:
        offsets = (
            start + _invalid_in(text[start:end].tobytes()) for start, end in zip(starts[:-1], starts[1:], strict=True)
        )
        return np.concatenate([np.zeros(0, np.int64), *offsets])
    return np.zeros(0, np.int64)


def _invalid_in(document: bytes) -> Integers:
    try:
        document.decode()
    except UnicodeDecodeError:
        characters = document.decode(errors="surrogateescape").encode("utf-32-le", "surrogatepass")
        codes = np.frombuffer(characters, "<u4")
        escaped = (codes >= 0xDC80) & (codes <= 0xDCFF)
        widths = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
        ends = np.cumsum(np.where(escaped, 1, widths))
        return ends[escaped] - 1
    return np.zeros(0, np.int64)


def _shares(documents: pa.Array[Any], threads: int) -> list[pa.Array[Any]]:
    """Cut documents into runs of about equally many bytes, one per thread."""
    _, starts = _flat(documents)
    wanted = np.linspace(0, starts[-1], max(threads, 1) + 1)[1:-1]
    cuts = [0, *np.searchsorted(starts[1:], wanted).tolist(), len(documents)]
    runs = (documents.slice(first, last - first) for first, last in zip(cuts[:-1], cuts[1:], strict=True))
    return [run for run in runs if len(run)]


def _flat(documents: pa.Array[Any]) -> tuple[Bytes, Integers]:
    """Return the bytes of all documents, without a copy, and the offset of each document, then the end."""
    width = np.int64 if pa.types.is_large_binary(documents.type) else np.int32
    buffers: list[Any] = documents.buffers()
    _, places, data = buffers
    offsets = np.frombuffer(places, width)[documents.offset : documents.offset + len(documents) + 1].astype(np.int64)
    text = np.frombuffer(data if data is not None else b"", np.uint8)
    return text[offsets[0] : offsets[-1]], offsets - offsets[0]


def _bounded(text: Bytes, places: Integers, max_bytes: int | None) -> Integers:
    """Add borders between characters within segments that are too long."""
    if max_bytes is None:
        return places
    ends = np.append(places[1:], len(text))
    more: list[int] = []
    for number in np.flatnonzero(ends - places > max_bytes).tolist():
        at = int(places[number]) + max_bytes
        while at < ends[number]:
            while text[at] & 0xC0 == 0x80:
                at -= 1
            more.append(at)
            at += max_bytes
    return np.sort(np.append(places, more)).astype(np.int64) if more else places


def _slices(text: Bytes, places: Integers) -> Any:  # noqa: ANN401 - dictionary_encode has no types
    """Return the bytes between consecutive places as a binary array, without a copy."""
    width, kind = (np.int32, pa.binary()) if len(text) <= _MAX_TOKENS else (np.int64, pa.large_binary())
    offsets: Any = places.astype(width)
    data: Any = text
    return pa.Array.from_buffers(kind, len(places) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _repeated(ids: Integers, lengths: Integers, which: npt.NDArray[Any]) -> Integers:
    """Return the concatenated ids of the segments numbered `which`."""
    starts = np.cumsum(lengths) - lengths
    taken = lengths[which]
    ends = np.cumsum(taken)
    within = np.arange(int(taken.sum())) - np.repeat(ends - taken, taken)
    repeated: Integers = ids[np.repeat(starts[which], taken) + within]
    return repeated


def _joined(shares: Sequence[_Encoded]) -> _Encoded:
    offsets, start = [np.zeros(1, np.int64)], 0
    for share in shares:
        offsets.append(share.offsets[1:] + start)
        start += len(share.ids)
    ids = np.concatenate([np.zeros(0, np.int64), *(share.ids for share in shares)])
    return _Encoded(ids, np.concatenate(offsets))


def _surrounded(encoded: _Encoded, bos: int | None, eos: int | None) -> _Encoded:
    """Put `bos` before and `eos` after the ids of each document."""
    ids, offsets = encoded.ids, encoded.offsets
    if eos is not None:
        ids = np.insert(ids, offsets[1:], eos)
        offsets = offsets + np.arange(len(offsets))
    if bos is not None:
        ids = np.insert(ids, offsets[:-1], bos)
        offsets = offsets + np.arange(len(offsets))
    return _Encoded(ids, offsets)
