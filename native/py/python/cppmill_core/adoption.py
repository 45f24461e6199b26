"""Adopts tokenizers of other programs: finds their files, makes a manifest, writes a tokenizer directory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cppmill_core._native import CoreError, CorruptDataError, InvalidInputError, Tokenizer
from cppmill_core.hugging_face import CONFIG, SPECIAL_TOKENS, describe_hugging_face, puts_in_nfc, read_rules
from cppmill_core.manifests import BOS, EOS, HUGGING_FACE, LOSSY, MANIFEST, SENTENCEPIECE, TOKENIZER
from cppmill_core.protocol import AnyTokenizer
from cppmill_core.sentencepiece import MODEL, describe_sentencepiece

__all__ = ["Source", "check_adopted", "find_source", "program_of", "write_directory"]

_WORDS_PATTERN = "cpp-words-1"
_PROGRAMS = (_NATIVE, _TOKENIZERS) = ("native", "tokenizers")
"""What runs a tokenizer of the Hugging Face format, by its manifest."""

_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What reading files that are not laid out as those of a tokenizer ends in."""

_FILES = {HUGGING_FACE: {TOKENIZER, CONFIG, SPECIAL_TOKENS}, SENTENCEPIECE: {MODEL}}


@dataclass(frozen=True)
class Source:
    """A tokenizer of another program.

    Attributes:
        files: Its files: the name in a tokenizer directory, and the path now.
        manifest: The content of its `manifest.json`, without the digests of the files.
        leaves_out_nfc: Whether it has the normaliser NFC, and is to run without, so that all text comes back.
        cuts: Whether its file tells `tokenizers` to truncate or to pad texts, which cppmill never does.
    """

    files: Mapping[str, Path]
    manifest: Mapping[str, Any]
    leaves_out_nfc: bool = False
    cuts: bool = False

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
    if file.exists() and not file.is_file():
        raise InvalidInputError(f"{file}: no regular file")
    if file.suffix != ".json":
        described = describe_sentencepiece(file.read_bytes(), where=str(file), allow_lossy=allow_lossy)
        return Source({MODEL: file}, described)
    beside = [name for name in (CONFIG, SPECIAL_TOKENS) if (file.parent / name).is_file()]
    files = {TOKENIZER: file, **{name: file.parent / name for name in beside}}
    rules = read_rules(file)
    try:
        described = _describe_rules(file, rules, allow_lossy=allow_lossy)
    except _MALFORMED as error:
        raise CorruptDataError(f"{file}: not laid out as the file of a tokenizer ({error!r})") from error
    cuts = bool(rules.get("truncation") or rules.get("padding"))
    return Source(files, described, leaves_out_nfc=puts_in_nfc(rules) and not allow_lossy, cuts=cuts)


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
        manifest["run"] = _NATIVE if _is_native(manifest, out) else _TOKENIZERS
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


def check_adopted(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Compare a manifest with the one that adopting the files gives.

    Args:
        folder: The tokenizer directory.
        manifest: Its manifest, whose digests of files are right.

    Raises:
        OSError: A file cannot be read.
        CorruptDataError: The manifest says something else, or a file is not one of a tokenizer.
        InvalidInputError: The files are those of a tokenizer that loses text, and the manifest does not say so.
    """
    try:
        problem = next(_find_false(folder, manifest), None)
    except _MALFORMED as error:
        raise CorruptDataError(f"{folder}: its files are not laid out as those of a tokenizer ({error!r})") from error
    if problem:
        raise CorruptDataError(f"{folder / MANIFEST}: {problem}; restore the directory, or adopt the tokenizer again")


def _find_false(folder: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    kind, is_built = manifest["kind"], manifest.get("kind") == SENTENCEPIECE and "trainer" in manifest
    name = MODEL if kind == SENTENCEPIECE else TOKENIZER
    if name not in manifest["files"]:
        yield f"it has no digest of {name}, so its own is not that of the tokenizer"
        return
    beside = sorted(_FILES[kind] - manifest["files"].keys())
    yield from (f"it has no digest of {name}, which is there" for name in beside if (folder / name).exists())
    described = _describe(folder, kind, allow_lossy=LOSSY in manifest)
    known = {*described, "files", "run"} if kind == HUGGING_FACE else {*described, "files"}
    known |= {"trainer", "profile", "pattern"} if is_built else set()
    yield from (f"it has the key {key!r}" for key in sorted(manifest.keys() - known))
    yield from (f"{name} is no file of such a tokenizer" for name in sorted(manifest["files"].keys() - _FILES[kind]))
    if kind == HUGGING_FACE and manifest.get("run") not in _PROGRAMS:
        yield f"its run is {manifest.get('run')!r}"
    yield from (f"{role} is no role" for role in sorted(manifest.get("roles", {}).keys() - {BOS, EOS}))
    compared = described.keys() - {"roles", *(("tokens", "reserved") if is_built else ())}
    if kind == SENTENCEPIECE:
        compared -= {LOSSY}  # loading says what differs
    for key in sorted(compared):
        if json.dumps(manifest.get(key), sort_keys=True) != json.dumps(described[key], sort_keys=True):
            yield f"its {key} are not those of the tokenizer"
    if is_built:
        yield from _find_false_names(manifest, described)


def _find_false_names(manifest: Mapping[str, Any], described: Mapping[str, Any]) -> Iterator[str]:
    """Compare the control tokens of a model that was trained here: its reserved ids are control tokens of the model."""
    said, found = ({(token["id"], token["token"]) for token in table["tokens"]} for table in (manifest, described))
    reserved = {id_ for first, last in manifest["reserved"] for id_ in range(first, last + 1)}
    if not said <= found or any(id_ not in reserved for id_, _ in found - said):
        yield "its tokens are not those of the tokenizer"


def _describe(folder: Path, kind: str, *, allow_lossy: bool) -> dict[str, Any]:
    if kind == SENTENCEPIECE:
        model = folder / MODEL
        return describe_sentencepiece(model.read_bytes(), where=str(model), allow_lossy=allow_lossy)
    return _describe_rules(folder / TOKENIZER, read_rules(folder / TOKENIZER), allow_lossy=allow_lossy)


def _describe_rules(file: Path, rules: Mapping[str, Any], *, allow_lossy: bool) -> dict[str, Any]:
    """Return the manifest of a `tokenizer.json`, whose ids are whole numbers."""
    vocab: Mapping[str, int] = rules["model"]["vocab"]
    if any(type(id_) is not int for id_ in vocab.values()):
        raise ValueError("an id is no whole number")
    return describe_hugging_face(file, rules, allow_lossy=allow_lossy)
