"""What every kind of tokenizer can do, and the one place that loads a tokenizer directory of any kind.

A tokenizer directory has a `manifest.json`, whose SHA-256 is the tokenizer's digest. Its key `kind` says what runs the
vocabulary; without it, the native core does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, Union

import pyarrow as pa

from cppmill_core._native import CorruptDataError, InvalidInputError, Tokenizer
from cppmill_core.manifests import MANIFEST

__all__ = ["HUGGING_FACE", "SENTENCEPIECE", "AnyTokenizer", "Documents", "load_tokenizer", "open_any"]

SENTENCEPIECE = "sentencepiece"
"""The kind of a SentencePiece model: `tokenizer.model`."""

HUGGING_FACE = "hugging-face"
"""The kind of an adopted byte-level BPE: `tokenizer.json`."""

Documents: TypeAlias = Union["pa.Array[Any]", "pa.ChunkedArray[Any]", Sequence[bytes | str]]
"""Texts: a binary or string array, chunked or not, without nulls, or a sequence of bytes or str."""


class AnyTokenizer(Protocol):
    """A loaded tokenizer of any kind: what `cppmill_core.Tokenizer` says of these calls holds for each.

    Encoding takes any bytes, and decoding gives the same bytes back. Control tokens in text are text. Calls may come
    from several threads.
    """

    @property
    def vocab_size(self) -> int:
        """The number of ids; every id is below it."""

    @property
    def digest(self) -> str:
        """The SHA-256 of `manifest.json`, in lower-case hexadecimal digits."""

    def encode(self, data: bytes | str) -> pa.Array[Any]:
        """Encode one text to a uint16 array, or uint32 if the vocabulary has more than 65,536 ids."""

    def encode_batch(
        self, documents: Documents, threads: int = 1, *, bos: int | None = None, eos: int | None = None
    ) -> pa.ListArray[Any]:
        """Encode many texts, in order, with the ids `bos` and `eos` around those of each."""

    def decode(self, ids: pa.Array[Any] | Sequence[int], *, skip_control: bool = False) -> bytes:
        """Decode ids to the bytes that they stand for; control and reserved ids are refused, or left out."""

    def decode_batch(
        self,
        ids: pa.Array[Any],
        threads: int = 1,
        *,
        bos: int | None = None,
        eos: int | None = None,
        skip_control: bool = False,
    ) -> pa.BinaryArray:
        """Decode each list of ids, which must have `bos` and `eos` at its ends if they are given."""

    def digest_batch(
        self, ids: pa.Array[Any], threads: int = 1, *, bos: int | None = None, eos: int | None = None
    ) -> pa.RecordBatch:
        """Tell the length (num_bytes, uint64) and digest (sha256, string) of what each list of ids decodes to."""

    def count_control(self, documents: Documents) -> dict[str, int]:
        """Count the control tokens whose characters stand in the texts: name to occurrences, by id."""

    def control_id(self, name: str) -> int:
        """Return the id of a control token by its name, `<EOS>` or `EOS`; InvalidInputError if there is none."""

    def token_bytes(self, id: int) -> bytes | None:
        """Return the bytes that an id stands for, None for control, reserved and unused ids."""


def load_tokenizer(path: str | os.PathLike[str], digest: str | None = None) -> AnyTokenizer:
    """Load a tokenizer directory of any kind.

    Args:
        path: The folder `tokenizer` of a run, what `cppmill adopt` made, or a copy of either.
        digest: Take no tokenizer but that of this digest, the one that a model was trained with, say.

    Raises:
        OSError: A file cannot be read, or there is no manifest.
        CorruptDataError: A file is not what its digest in the manifest says, or the tokenizer does not have the
            `digest`.
        InvalidInputError: A newer format, or something that this version does not know; the message names it.
    """
    kind = _kind(Path(path))
    if kind is None:
        return Tokenizer.from_dir(path, digest)
    if kind == SENTENCEPIECE:
        from cppmill_core.sentencepiece import load_sentencepiece

        return load_sentencepiece(path, digest)
    if kind == HUGGING_FACE:
        from cppmill_core.hugging_face import load_hugging_face

        return load_hugging_face(path, digest)
    raise InvalidInputError(f"{path}: a tokenizer of the kind {kind!r}, which this version does not know: update")


def open_any(path: str | os.PathLike[str]) -> AnyTokenizer:
    """Open a tokenizer of any program, with or without a manifest; nothing is written at its place.

    Args:
        path: A tokenizer directory, a SentencePiece `.model`, a `tokenizer.json` of a byte-level BPE, or a folder with
            one of these.

    Raises:
        OSError: There is no such file or folder, or it cannot be read.
        CorruptDataError: The file is no tokenizer.
        InvalidInputError: Nothing in the folder is known, or text would be lost; the message names by what.
    """
    if (Path(path) / MANIFEST).is_file():
        return load_tokenizer(path)
    from cppmill_core.adoption import open_source

    return open_source(path)


def _kind(folder: Path) -> str | None:
    """Return what the manifest says of the kind, None without a manifest: the native core says what to give."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    try:
        found = json.loads(file.read_bytes()).get("kind")
    except (ValueError, AttributeError) as error:
        raise CorruptDataError(f"{file}: not the manifest of a tokenizer ({error})") from error
    return None if found is None else str(found)
