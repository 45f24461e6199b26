"""Reads manifests of tokenizer directories and checks their files, for the kinds that the native core does not run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cppmill_core._native import CorruptDataError, InvalidInputError

__all__ = [
    "BOS",
    "EOS",
    "HUGGING_FACE",
    "LOSSY",
    "MANIFEST",
    "MANIFEST_FORMAT",
    "SENTENCEPIECE",
    "TOKENIZER",
    "describe_ids",
    "named_ids",
    "ranges",
    "read_manifest",
]

MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
MANIFEST_FORMAT = "cppmill-tokenizer-1"
BOS, EOS = "<BOS>", "<EOS>"

SENTENCEPIECE = "sentencepiece"
"""The kind of a SentencePiece model: `tokenizer.model`."""

HUGGING_FACE = "hugging-face"
"""The kind of an adopted byte-level BPE: `tokenizer.json`."""

LOSSY = "lossy"
"""The key of the reasons why an adopted tokenizer loses text; a lossless one has none."""


def read_manifest(folder: Path, digest: str | None) -> tuple[str, dict[str, Any]]:
    """Return the digest and the content of a manifest, after checking the digests of the files that it names.

    Args:
        folder: The tokenizer directory.
        digest: The digest that the manifest must have; any by default.

    Raises:
        OSError: A file cannot be read.
        CorruptDataError: The manifest has another digest or is damaged, or a file does not have the digest it gives.
        InvalidInputError: The format is newer.
    """
    data = (folder / MANIFEST).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if digest is not None and digest != found:
        raise CorruptDataError(f"{folder}: this is the tokenizer {found}, not {digest}")
    try:
        manifest: dict[str, Any] = json.loads(data)
        format_, files = manifest["format"], dict(manifest["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptDataError(f"{folder / MANIFEST}: not the manifest of a tokenizer ({error})") from error
    if format_ != MANIFEST_FORMAT:
        raise InvalidInputError(
            f"{folder / MANIFEST}: its format is {format_!r}, and this version knows {MANIFEST_FORMAT!r}: install the "
            "version of cppmill-core that wrote it"
        )
    for name, expected in files.items():
        _check_file(folder, name, expected)
    return found, manifest


def describe_ids(
    vocab_size: int, control: Mapping[str, int], unused: Iterable[int], roles: Mapping[str, int]
) -> dict[str, Any]:
    """Return the part of an adopted tokenizer's manifest that describes its ids.

    Args:
        vocab_size: Number of ids.
        control: The ids of the control tokens, by name.
        unused: The ids that have no token.
        roles: The ids of `<BOS>` and `<EOS>`; a role whose control token has that very name is left out.
    """
    return {
        "format": MANIFEST_FORMAT,
        "vocab_size": vocab_size,
        "tokens": [
            {"id": id_, "token": name, "strength": "control", "band": "control"}
            for name, id_ in sorted(control.items(), key=lambda entry: entry[1])
        ],
        "reserved": ranges(unused),
        "roles": {name: id_ for name, id_ in sorted(roles.items()) if control.get(name) != id_},
    }


def named_ids(manifest: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the ids of a manifest's control tokens by name, and the ids of its roles (`<BOS>`, `<EOS>`)."""
    control = {str(token["token"]): int(token["id"]) for token in manifest["tokens"] if token["strength"] == "control"}
    return control, dict(manifest.get("roles", {}))


def ranges(ids: Iterable[int]) -> list[list[int]]:
    """Return ids as sorted ranges `[first, last]`.

    Example:
        >>> ranges({3, 1, 2, 7})
        [[1, 3], [7, 7]]
    """
    found: list[list[int]] = []
    for id_ in sorted(ids):
        if found and found[-1][1] == id_ - 1:
            found[-1][1] = id_
        else:
            found.append([id_, id_])
    return found


def _check_file(folder: Path, name: str, expected: str) -> None:
    if Path(name).name != name:
        raise CorruptDataError(f"{folder / MANIFEST}: {name!r} is not a plain file name")
    found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    if found != expected:
        raise CorruptDataError(f"{folder / name}: SHA-256 is {found}, {MANIFEST} says {expected}")
