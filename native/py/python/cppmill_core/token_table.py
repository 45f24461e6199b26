"""The ids of a tokenizer that the native core does not run: their bytes and names, and decoding by look-up."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cppmill_core._native import InvalidInputError
from cppmill_core.protocol import Documents

__all__ = ["Integers", "TokenTable", "as_array"]

_MAX_OFFSET = (1 << 31) - 1

Integers = npt.NDArray[np.int64]
"""Token ids, row numbers, or offsets."""


def as_array(documents: Documents) -> pa.Array[Any]:
    """Return texts as a binary or large binary array.

    Raises:
        InvalidInputError: The texts have another type, a null, or a str with lone surrogates.
    """
    array: Any = documents.combine_chunks() if isinstance(documents, pa.ChunkedArray) else documents
    if not isinstance(array, pa.Array):
        try:
            array = pa.array([text.encode() if isinstance(text, str) else text for text in documents], pa.binary())
        except (UnicodeEncodeError, pa.ArrowException, AttributeError) as error:
            raise InvalidInputError(f"texts must be bytes or str of Unicode characters ({error})") from error
    if array.null_count:
        row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
        raise InvalidInputError(f"row {row}: null; give texts without nulls")
    large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    if not (large or pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        raise InvalidInputError(f"texts of the type {array.type}: a binary or string array is needed")
    texts: pa.Array[Any] = array.cast(pa.large_binary() if large else pa.binary())
    return texts


class TokenTable:
    """Every id of a tokenizer with its bytes.

    Decoding is a look-up: a text is the concatenation of the bytes of its tokens.
    """

    def __init__(self, tokens: Sequence[bytes | None], control: Mapping[str, int], roles: Mapping[str, int]) -> None:
        """Make the table.

        Args:
            tokens: The bytes of each id; None for an id without text.
            control: The ids of the control tokens, by name.
            roles: The ids of other names of control tokens, `<BOS>` and `<EOS>` for example.
        """
        self.tokens, self.control, self.roles = tuple(tokens), dict(control), dict(roles)
        self._bytes = pa.array([token or b"" for token in tokens], pa.large_binary())
        self._lengths = np.array([len(token or b"") for token in tokens], np.int64)
        self._silent = np.array([token is None for token in tokens], bool)
        self._names = {id_: name for name, id_ in sorted(control.items(), key=lambda entry: entry[1])}
        self._ids = {**control, **roles}

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return len(self.tokens)

    @property
    def id_type(self) -> pa.DataType:
        """The Arrow type of ids: uint16 for up to 65,536 ids, otherwise uint32."""
        return pa.uint16() if self.vocab_size <= 1 << 16 else pa.uint32()

    def token_bytes(self, id: int) -> bytes | None:
        """Return the bytes of an id, None for control, reserved and unused ids."""
        if not 0 <= id < len(self.tokens):
            raise InvalidInputError(f"token id {id} is not below the vocabulary size {len(self.tokens)}")
        return self.tokens[id]

    def control_id(self, name: str) -> int:
        """Return the id of a control token by its name, with angle brackets or without."""
        for known in (name, f"<{name}>"):
            if known in self._ids:
                return self._ids[known]
        near = get_close_matches(name, self._ids, n=3, cutoff=0.3) or sorted(self._ids)[:3]
        raise InvalidInputError(f"no control token {name!r}; there are {', '.join(near) or 'none'}")

    def count_control(self, documents: Documents) -> dict[str, int]:
        """Count how often the characters of each control token occur in the texts: name to occurrences, by id."""
        texts: Any = as_array(documents)
        any_name = "|".join(map(re.escape, self._names.values()))
        if not self._names or not pc.sum(pc.count_substring_regex(texts, pattern=any_name)).as_py():
            return {}
        counts = {name: int(pc.sum(pc.count_substring(texts, pattern=name)).as_py()) for name in self._names.values()}
        return {name: count for name, count in counts.items() if count}

    def decode(self, ids: pa.Array[Any] | Sequence[int], *, skip_control: bool = False) -> bytes:
        """Decode ids to bytes; control and reserved ids are refused, or left out with `skip_control`."""
        values = pa.array(ids, pa.int64()) if not isinstance(ids, pa.Array) else ids
        lists = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        decoded: bytes = self.decode_batch(lists, skip_control=skip_control)[0].as_py()
        return decoded

    def decode_batch(
        self,
        ids: pa.Array[Any],
        threads: int = 1,
        *,
        bos: int | None = None,
        eos: int | None = None,
        skip_control: bool = False,
    ) -> pa.BinaryArray:
        """Decode each list of ids, without the `bos` and `eos` that it must begin and end with, if they are given."""
        shares = _map_rows(partial(self._decoded, bos=bos, eos=eos, skip_control=skip_control), ids, threads)
        size = sum(len(data) for _, data in shares)
        offsets, start = [np.zeros(1, np.int64)], 0
        for ends, data in shares:
            offsets.append(ends[1:] + start)
            start += len(data)
        joined = pa.py_buffer(b"".join(data for _, data in shares))
        width, kind = (np.int32, pa.binary()) if size <= _MAX_OFFSET else (np.int64, pa.large_binary())
        places: Any = np.concatenate(offsets).astype(width)
        texts: Any = pa.Array.from_buffers(kind, len(ids), [None, pa.py_buffer(places), joined])
        return texts  # type: ignore[no-any-return]

    def digest_batch(
        self, ids: pa.Array[Any], threads: int = 1, *, bos: int | None = None, eos: int | None = None
    ) -> pa.RecordBatch:
        """Return the length (num_bytes, uint64) and SHA-256 (sha256, string) of each decoded list of ids."""

        def digest(start: int, rows: pa.Array[Any]) -> tuple[Integers, list[str]]:
            ends, data = self._decoded(start, rows, bos=bos, eos=eos)
            texts = (data[first:last] for first, last in zip(ends[:-1], ends[1:], strict=True))
            return np.diff(ends), [hashlib.sha256(text).hexdigest() for text in texts]

        shares = _map_rows(digest, ids, threads)
        lengths = np.concatenate([np.zeros(0, np.int64), *(lengths for lengths, _ in shares)])
        digests = [digest for _, share in shares for digest in share]
        columns: list[pa.Array[Any]] = [pa.array(lengths.astype(np.uint64)), pa.array(digests, pa.string())]
        return pa.RecordBatch.from_arrays(columns, names=["num_bytes", "sha256"])

    def _decoded(
        self, start: int, rows: pa.Array[Any], *, bos: int | None, eos: int | None, skip_control: bool = False
    ) -> tuple[Integers, memoryview]:
        """Return the offsets of the rows' bytes, from 0 on, and the bytes; `start` is the number of the first row."""
        offsets, values = _lists(rows)
        self._check_ids(values, offsets, start)
        kept = np.ones(len(values), bool)
        first, last = offsets[:-1], offsets[1:] - 1
        if bos is not None:
            _check_ends(bos, first, values, first <= last, f"row {{}}: it does not begin with the id {bos}", start)
            kept[first] = False
        if eos is not None:
            room = first + (bos is not None) <= last
            _check_ends(eos, last, values, room, f"row {{}}: it does not end with the id {eos}", start)
            kept[last] = False
        silent = self._silent[values] & kept
        if silent.any() and not skip_control:
            self._refuse(int(np.flatnonzero(silent)[0]), values, offsets, start)
        kept &= ~silent
        spelled = self._spellings(values, kept, offsets)
        ends = np.concatenate([[0], np.cumsum(np.where(kept, self._lengths[spelled], 0))])
        taken = self._bytes.take(spelled[kept])
        return ends[offsets], memoryview(_data(taken))

    def _spellings(self, values: Integers, kept: npt.NDArray[np.bool_], offsets: Integers) -> Integers:
        """Return for each id which entry of the tables of bytes it is decoded to: the one of the same number."""
        return values

    def _check_ids(self, values: Integers, offsets: Integers, start: int) -> None:
        if len(values) and (int(values.max()) >= self.vocab_size or int(values.min()) < 0):
            at = int(np.flatnonzero((values >= self.vocab_size) | (values < 0))[0])
            row = start + _row_of(at, offsets)
            raise InvalidInputError(
                f"row {row}: token id {values[at]} is not below the vocabulary size {self.vocab_size}"
            )

    def _refuse(self, at: int, values: Integers, offsets: Integers, start: int) -> None:
        id_ = int(values[at])
        name = self._names.get(id_, "unused")
        raise InvalidInputError(f"row {start + _row_of(at, offsets)}: id {id_} ({name}) has no text")


def _map_rows(work: Any, rows: pa.Array[Any], threads: int) -> list[Any]:  # noqa: ANN401 - any result
    """Cut rows into one share per thread and return `work(number of its first row, share)` of each, in order."""
    share = max(1, -(-len(rows) // max(threads, 1)))
    starts = range(0, len(rows), share)
    if len(starts) <= 1:
        return [work(start, rows.slice(start, share)) for start in starts]
    with ThreadPoolExecutor(len(starts)) as pool:
        return list(pool.map(lambda start: work(start, rows.slice(start, share)), starts))


def _lists(rows: Any) -> tuple[Integers, Integers]:  # noqa: ANN401 - the stubs lack the offsets of list arrays
    """Return the offsets, from 0 on, and the values of a list array of integers without nulls.

    Raises:
        InvalidInputError: `rows` is not such an array.
    """
    kind = rows.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not lists or not pa.types.is_integer(kind.value_type) or rows.null_count:
        raise InvalidInputError(f"ids of the type {kind}: a list array of integers without nulls is needed")
    offsets = rows.offsets.to_numpy().astype(np.int64)
    values = rows.values.slice(offsets[0], offsets[-1] - offsets[0])
    if values.null_count:
        raise InvalidInputError("ids with nulls among them: a list array of integers without nulls is needed")
    return offsets - offsets[0], values.to_numpy().astype(np.int64)


def _check_ends(
    id_: int, places: Integers, values: Integers, room: npt.NDArray[np.bool_], message: str, start: int
) -> None:
    """Raise InvalidInputError for the first row that is too short or has another id than `id_` at its place."""
    right = room.copy()
    right[room] = values[places[room]] == id_
    if not right.all():
        raise InvalidInputError(message.format(start + int(np.flatnonzero(~right)[0])))


def _row_of(at: int, offsets: Integers) -> int:
    return int(np.searchsorted(offsets, at, side="right")) - 1


def _data(taken: pa.Array[Any]) -> pa.Buffer:
    """Return the data buffer of a binary array without an offset."""
    buffer = taken.buffers()[2]
    return buffer if buffer is not None else pa.py_buffer(b"")
