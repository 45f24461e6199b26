"""Reads the manifest of a tokenizer directory and proves its files, for the kinds that the native core does not run."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cppmill_core._native import CorruptDataError, InvalidInputError

__all__ = ["MANIFEST", "MANIFEST_FORMAT", "read_manifest"]

MANIFEST = "manifest.json"
MANIFEST_FORMAT = "cppmill-tokenizer-1"


def read_manifest(folder: Path, digest: str | None) -> tuple[str, dict[str, Any]]:
    """Return the digest and the content of a manifest whose files are what it says.

    Args:
        folder: The tokenizer directory.
        digest: The digest that it must have; any by default.

    Raises:
        OSError: A file cannot be read.
        CorruptDataError: Another digest, no manifest, or a file that is not what it says.
        InvalidInputError: A newer format.
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
            "cppmill-core that goes with it"
        )
    for name, expected in files.items():
        _check_file(folder, name, expected)
    return found, manifest


def _check_file(folder: Path, name: str, expected: str) -> None:
    if Path(name).name != name:
        raise CorruptDataError(f"{folder / MANIFEST}: it names {name!r}, which is not a plain file name")
    found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    if found != expected:
        raise CorruptDataError(f"{folder / name}: SHA-256 is {found}, {MANIFEST} says {expected}")
