"""Cursors: where a completion is asked for, and what a tokenizer makes of the text before it.

A model that was trained on whole texts has seen a token border where the encoding of the whole text has one. If the
text before the cursor and the rest, encoded separately, give other ids, the prompt ends with ids that the model has
seldom seen there. `Tokenizer.stable_prefix` says how many leading ids of a prompt any text may follow.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Places = npt.NDArray[np.int64]

_SPAN = ("kind", "start", "end")
_NAME_PART = re.compile(rb"[A-Z]+(?![a-z\x80-\xff])|[A-Z]?[a-z\x80-\xff]+|[0-9]+|_+|.", re.S)


def any_places(text: bytes) -> Places:
    """Return every place between two characters, in bytes.

    Example:
        >>> any_places("é=1".encode()).tolist()
        [2, 3]
    """
    return np.flatnonzero(np.frombuffer(text, np.uint8) & 0xC0 != 0x80)[1:]


def name_places(text: bytes) -> Places:
    r"""Return the places within an identifier of code where one of its parts ends: `get|Value`, `my_|type`.

    Example:
        >>> name_places(b'getValue(my_type); // noPart').tolist()
        [3, 11, 12]
    """
    tokens, places = cppmill_core.lex(text), list[int]()
    spans: Any = zip(*(tokens[name].to_pylist() for name in _SPAN), strict=True)
    for kind, start, end in spans:
        if kind == "identifier":
            ends = [start + part.end() for part in _NAME_PART.finditer(text[start:end])]
            places += ends[:-1]
    return np.array(places, np.int64)


def line_places(text: bytes) -> Places:
    r"""Return the places before a newline.

    Example:
        >>> line_places(b"a;\nb\n").tolist()
        [2, 4]
    """
    return np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))


KINDS: Mapping[str, Callable[[bytes], Places]] = {
    "anywhere": any_places,
    "in a name": name_places,
    "line end": line_places,
}
"""The kinds of cursors: each function returns the places of a text where there can be one, ascending."""


@dataclass
class CursorTally:
    """What a tokenizer made of the text before cursors of one kind; a list has a number per cursor.

    Attributes:
        on_border: Whether the ids of the whole text have a border there.
        same: Whether both sides, encoded separately, give the ids of the whole text.
        changed_ids: How many of the prompt's last ids differ from those of the whole text.
        dropped_ids: How many of the prompt's last ids are not stable.
        dropped_bytes: Their bytes.
    """

    on_border: list[bool] = field(default_factory=list)
    same: list[bool] = field(default_factory=list)
    changed_ids: list[int] = field(default_factory=list)
    dropped_ids: list[int] = field(default_factory=list)
    dropped_bytes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Cursors:
    """The cursors of one kind in some texts: rows of the texts, and a place in each."""

    kind: str
    rows: Sequence[int]
    places: Sequence[int]


def measure_cursors(
    tokenizers: Sequence[cppmill_core.Tokenizer], documents: Iterable[pa.RecordBatch], *, seed: int, threads: int
) -> list[dict[str, CursorTally]]:
    """Put a cursor of each kind into each document, and tally what each tokenizer makes of the text before it.

    Args:
        tokenizers: What encodes.
        documents: Columns doc_id (string), content (binary).
        seed: Decides, with the doc_id, which place is taken; each is as likely as any other.
        threads: How many threads encode.

    Returns:
        The tally of each kind of `KINDS`, for each tokenizer.
    """
    tallies = [{kind: CursorTally() for kind in KINDS} for _ in tokenizers]
    for batch in documents:
        texts: list[Any] = batch["content"].to_pylist()
        cursors = list(_choose(batch["doc_id"].to_pylist(), texts, seed))
        for tokenizer, tally in zip(tokenizers, tallies, strict=True):
            whole = tokenizer.encode_batch(texts, threads)
            for found in cursors:
                _add(tally[found.kind], tokenizer, texts, whole, found, threads)
    return tallies


def _choose(names: Sequence[Any], texts: Sequence[bytes], seed: int) -> Iterator[_Cursors]:
    for kind, find in KINDS.items():
        rows, places = list[int](), list[int]()
        for row, (name, text) in enumerate(zip(names, texts, strict=True)):
            found = find(text)
            found = found[found > 0]
            if len(found):
                digest = hashlib.sha256(f"{kind}/{seed}/{name}".encode()).digest()
                rows.append(row)
                places.append(int(found[int.from_bytes(digest[:8], "big") * len(found) >> 64]))
        yield _Cursors(kind, rows, places)


def _add(
    tally: CursorTally,
    tokenizer: cppmill_core.Tokenizer,
    texts: Sequence[bytes],
    whole: pa.ListArray[Any],
    cursors: _Cursors,
    threads: int,
) -> None:
    cut = list(zip((texts[row] for row in cursors.rows), cursors.places, strict=True))
    prompts = tokenizer.encode_batch([text[:place] for text, place in cut], threads)
    rests = tokenizer.encode_batch([text[place:] for text, place in cut], threads)
    for number, (row, place) in enumerate(zip(cursors.rows, cursors.places, strict=True)):
        ids, prompt, rest = (_row(lists, at) for lists, at in ((whole, row), (prompts, number), (rests, number)))
        offsets = np.asarray(tokenizer.byte_offsets(pa.array(ids)))
        kept = _common(ids, prompt)
        stable = tokenizer.stable_prefix(pa.array(prompt))
        begins = np.asarray(tokenizer.byte_offsets(pa.array(prompt)))
        tally.on_border.append(bool(offsets[np.searchsorted(offsets, place)] == place))
        tally.same.append(kept == len(prompt) and np.array_equal(ids[kept:], rest))
        tally.changed_ids.append(len(prompt) - kept)
        tally.dropped_ids.append(len(prompt) - stable)
        tally.dropped_bytes.append(place - int(begins[stable]))


def _row(lists: pa.ListArray[Any], row: int) -> npt.NDArray[Any]:
    values: Any = lists[row].values
    ids: npt.NDArray[Any] = values.to_numpy()
    return ids


def _common(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> int:
    """Return how many leading ids are the same."""
    length = min(len(one), len(other))
    differs = np.flatnonzero(one[:length] != other[:length])
    return int(differs[0]) if len(differs) else length
