"""Loads tokenizers: a tokenizer directory of any kind, or the files of another program.

A tokenizer directory has a `manifest.json`, whose SHA-256 is the tokenizer's digest. The manifest's key `kind` says
which program runs the vocabulary; without that key, the native core does. The modules of the kinds are imported when
they are needed, because they need numpy and `cppmill_core` alone does not.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from cppmill_core._native import CorruptDataError, InvalidInputError, Tokenizer
from cppmill_core.manifests import HUGGING_FACE, MANIFEST, SENTENCEPIECE, check_agreement, read_manifest
from cppmill_core.protocol import AnyTokenizer

__all__ = ["load_tokenizer", "open_any"]

_AS_ADOPTED: set[str] = set()
"""The digests of tokenizers with the manifest that adopting their files gives."""


def load_tokenizer(path: str | os.PathLike[str], digest: str | None = None) -> AnyTokenizer:
    """Load a tokenizer directory of any kind.

    Args:
        path: The folder `tokenizer` of a run, the output of `cppmill adopt`, or a copy of either.
        digest: Refuse a tokenizer with another digest; pass the digest that a model was trained with, for example.

    Raises:
        OSError: A file cannot be read, or there is no manifest.
        CorruptDataError: A file does not have the digest that the manifest gives, the tokenizer does not have the
            `digest`, or `tokenizer.json` does not keep what the manifest promises of ids.
        InvalidInputError: The format is newer, or uses something that this version does not know; the message names it.
    """
    tokenizer = _load(path, digest)
    if not isinstance(tokenizer, Tokenizer):  # whose `from_dir` has looked
        check_agreement(path, tokenizer)
    return tokenizer


def open_any(path: str | os.PathLike[str]) -> AnyTokenizer:
    """Open a tokenizer of any program, with or without a manifest; nothing is written beside it.

    Args:
        path: A tokenizer directory, a SentencePiece `.model`, a `tokenizer.json` of a byte-level BPE, or a folder with
            one of these.

    Raises:
        OSError: There is no such file or folder, or it cannot be read.
        CorruptDataError: The file is not a tokenizer.
        InvalidInputError: The folder has no known file, or the tokenizer would lose text; the message names the cause.
    """
    if (Path(path) / MANIFEST).is_file():
        return load_tokenizer(path)
    from cppmill_core.adoption import find_source, write_directory

    source = find_source(path)
    with tempfile.TemporaryDirectory(prefix="cppmill-adopt-") as folder:
        write_directory(source, Path(folder))
        return load_tokenizer(folder)


def _load(path: str | os.PathLike[str], digest: str | None) -> AnyTokenizer:
    """Load a tokenizer directory by its kind."""
    kind = _kind(Path(path))
    if kind is None:
        return Tokenizer.from_dir(path, digest)
    if kind not in (SENTENCEPIECE, HUGGING_FACE):
        raise InvalidInputError(f"{path}: a tokenizer of the kind {kind!r}, which this version does not know: update")
    _check_adopted(Path(path), digest)
    if kind == SENTENCEPIECE:
        from cppmill_core.sentencepiece import load_sentencepiece

        return load_sentencepiece(path, digest)
    from cppmill_core.hugging_face import load_hugging_face

    return load_hugging_face(path, digest)


def check_native(path: str | os.PathLike[str], tokenizer: Tokenizer) -> None:
    """Check that the files agree from which the native core has read a tokenizer, also if it was adopted.

    Raises:
        CorruptDataError: If they do not.
        InvalidInputError: If it was adopted and loses text, and the manifest does not say so.
    """
    check_agreement(path, tokenizer)
    if tokenizer.digest not in _AS_ADOPTED and _kind(Path(path)) is not None:
        _check_adopted(Path(path), tokenizer.digest)


def _check_adopted(folder: Path, digest: str | None) -> None:
    from cppmill_core.adoption import check_adopted

    found, manifest = read_manifest(folder, digest)
    check_adopted(folder, manifest)
    _AS_ADOPTED.add(found)


def _kind(folder: Path) -> str | None:
    """Return the kind in the manifest. None without a manifest too: the core's error then says what to pass."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    try:
        kind = json.loads(file.read_bytes()).get("kind")
    except (ValueError, AttributeError, RecursionError) as error:
        raise CorruptDataError(f"{file}: not the manifest of a tokenizer ({error})") from error
    return None if kind is None else str(kind)
