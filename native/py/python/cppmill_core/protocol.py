"""The interface that every kind of tokenizer has, whatever program it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, Union

import pyarrow as pa

__all__ = ["AnyTokenizer", "Documents"]

Documents: TypeAlias = Union["pa.Array[Any]", "pa.ChunkedArray[Any]", Sequence[bytes | str]]
"""Texts: a binary or string array, chunked or not, without nulls, or a sequence of bytes or str."""


class AnyTokenizer(Protocol):
    """A loaded tokenizer of any kind; each method does what the method of `cppmill_core.Tokenizer` does.

    Encoding takes any bytes, and decoding returns the same bytes, unless it `is_lossy`. The characters of a control
    token in text are ordinary text. Methods may be called from several threads.
    """

    @property
    def vocab_size(self) -> int:
        """The number of ids; every id is below it."""

    @property
    def digest(self) -> str:
        """The SHA-256 of `manifest.json`, in lower-case hexadecimal digits."""

    @property
    def is_lossy(self) -> bool:
        """Whether it loses text, so that a document need not come back as it was; false unless that was allowed."""

    def encode(self, data: bytes | str) -> pa.Array[Any]:
        """Encode one text to a uint16 array, or uint32 if the vocabulary has more than 65,536 ids."""

    def encode_batch(
        self, documents: Documents, threads: int = 1, *, bos: int | None = None, eos: int | None = None
    ) -> pa.ListArray[Any]:
        """Encode many texts, in order, with the id `bos` before and `eos` after the ids of each."""

    def decode(self, ids: pa.Array[Any] | Sequence[int], *, skip_control: bool = False) -> bytes:
        """Decode ids to bytes; control and reserved ids are refused, or left out with `skip_control`."""

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

    def digest_batch(
        self, ids: pa.Array[Any], threads: int = 1, *, bos: int | None = None, eos: int | None = None
    ) -> pa.RecordBatch:
        """Return the length (num_bytes, uint64) and SHA-256 (sha256, string) of each decoded list of ids."""

    def count_control(self, documents: Documents) -> dict[str, int]:
        """Count how often the characters of each control token occur in the texts: name to occurrences, by id."""

    def control_id(self, name: str) -> int:
        """Return the id of a control token by its name, `<EOS>` or `EOS`; InvalidInputError if there is none."""

    def token_bytes(self, id: int) -> bytes | None:
        """Return the bytes of an id, None for control, reserved and unused ids."""
