"""Adopts tokenizers of other programs: finds their files, makes a manifest, writes a tokenizer directory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cppmill_core._native import CoreError, InvalidInputError, Tokenizer
from cppmill_core.hugging_face import CONFIG, SPECIAL_TOKENS, describe_hugging_face, puts_in_nfc, read_rules
from cppmill_core.manifests import BOS, EOS, HUGGING_FACE, MANIFEST, TOKENIZER
from cppmill_core.protocol import AnyTokenizer
from cppmill_core.sentencepiece import MODEL, describe_sentencepiece

__all__ = ["Source", "find_source", "program_of", "write_directory"]

_WORDS_PATTERN = "cpp-words-1"


@dataclass(frozen=True)
class Source:
    """A tokenizer of another program.

    Attributes:
        files: Its files: the name in a tokenizer directory, and the path now.
        manifest: The content of its `manifest.json`, without the digests of the files.
        leaves_out_nfc: Whether it has the normaliser NFC, and is to run without, so that all text comes back.
    """

    files: Mapping[str, Path]
    manifest: Mapping[str, Any]
    leaves_out_nfc: bool = False

    def with_ends(self, ends: Mapping[str, str | None]) -> Source:
        """Return the source with other control tokens as `<BOS>` and `<EOS>`.

        Args:
            ends: The name of a control token for `<BOS>` and for `<EOS>`; None keeps the present one.

        Raises:
            InvalidInputError: The tokenizer has no control token of that name.
        """
        control = {token["token"]: token["id"] for token in self.manifest["tokens"]}
        roles = dict(self.manifest["roles"])
        for role, name in ends.items():
            if name is not None:
                if name not in control:
                    shown = ", ".join(list(control)[:8]) or "none"
                    raise InvalidInputError(f"{name}: no control token of the tokenizer; it has {shown}")
                roles[role] = control[name]
        return replace(self, manifest={**self.manifest, "roles": roles})


def find_source(path: str | os.PathLike[str], *, allow_lossy: bool = False) -> Source:
    """Find a tokenizer of another program.

    Args:
        path: A SentencePiece `.model`, a `tokenizer.json`, or a folder with one of them.
        allow_lossy: Take a SentencePiece model that loses text, and keep the normaliser NFC of a `tokenizer.json`; the
            manifest then says what is lost.

    Raises:
        OSError: There is no such file or folder, or it cannot be read.
        CorruptDataError: The file is not a tokenizer.
        InvalidInputError: The folder has no known file, or the tokenizer would lose text; the message names the cause.
    """
    place = Path(path)
    file = _tokenizer_file(place) if place.is_dir() else place
    if file.suffix != ".json":
        described = describe_sentencepiece(file.read_bytes(), where=str(file), allow_lossy=allow_lossy)
        return Source({MODEL: file}, described)
    beside = [name for name in (CONFIG, SPECIAL_TOKENS) if (file.parent / name).is_file()]
    files = {TOKENIZER: file, **{name: file.parent / name for name in beside}}
    rules = read_rules(file)
    described = describe_hugging_face(file, rules, allow_lossy=allow_lossy)
    return Source(files, described, leaves_out_nfc=puts_in_nfc(rules) and not allow_lossy)


def write_directory(source: Source, out: Path) -> None:
    """Write a tokenizer directory: copies of the source's files, then `manifest.json`.

    Args:
        source: The tokenizer.
        out: An existing, empty folder.
    """
    for name, file in source.files.items():
        (out / name).write_bytes(file.read_bytes())
    digests = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in source.files}
    manifest = {**source.manifest, "files": digests}
    if source.manifest["kind"] == HUGGING_FACE:
        manifest["run"] = "native" if _is_native(manifest, out) else "tokenizers"
    _write_manifest(manifest, out)


def program_of(tokenizer: AnyTokenizer) -> str:
    """Return what runs a tokenizer, for messages; if that is not the native core, why."""
    return str(getattr(tokenizer, "program", "the native core"))


def _tokenizer_file(folder: Path) -> Path:
    models = sorted(folder.glob("*.model"))
    if (folder / TOKENIZER).is_file():
        return folder / TOKENIZER
    if len(models) != 1:
        found = f"{len(models)} .model files" if models else f"neither a {TOKENIZER} nor a .model file"
        raise InvalidInputError(f"{folder}: {found} in it; name the file of the tokenizer")
    return models[0]


def _is_native(manifest: Mapping[str, Any], out: Path) -> bool:
    """Return whether a tokenizer has the form of ours, with the names that it has.

    The core knows no roles, and for a pattern of lines it must know which merges are superwords.
    """
    if set(manifest["roles"]) & {BOS, EOS}:
        return False
    _write_manifest({**manifest, "run": "native"}, out)
    try:
        return Tokenizer.from_dir(out).pattern == _WORDS_PATTERN
    except CoreError:
        return False


def _write_manifest(manifest: Mapping[str, Any], out: Path) -> None:
    (out / MANIFEST).write_text(
        json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False), "utf-8"
    )
