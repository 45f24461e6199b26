"""Checks that the manifest of an adopted tokenizer says what its files give: adopting them again gives the same.

Only the ids of `<BOS>` and `<EOS>`, which people may choose among the control tokens, and who trained a model are taken
as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cppmill_core._native import CorruptDataError
from cppmill_core.manifests import BOS, EOS, HUGGING_FACE, LOSSY, MANIFEST, SENTENCEPIECE, TOKENIZER
from cppmill_core.manifests.side_files import CONFIG, ROLES_FILE

__all__ = ["check_adopted"]

_MODEL = "tokenizer.model"
_FILES = {HUGGING_FACE: {TOKENIZER, CONFIG, ROLES_FILE}, SENTENCEPIECE: {_MODEL}}


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
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptDataError(f"{folder}: its files are not laid out as those of a tokenizer ({error!r})") from error
    if problem:
        raise CorruptDataError(f"{folder / MANIFEST}: {problem}; restore the directory, or adopt the tokenizer again")


def _find_false(folder: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    kind, is_built = manifest["kind"], manifest.get("kind") == SENTENCEPIECE and "trainer" in manifest
    described = _describe(folder, kind, allow_lossy=LOSSY in manifest)
    known = {*described, "files", "run"} if kind == HUGGING_FACE else {*described, "files"}
    known |= {"trainer", "profile", "pattern"} if is_built else set()
    yield from (f"it has the key {key!r}" for key in sorted(manifest.keys() - known))
    yield from (f"{name} is no file of such a tokenizer" for name in sorted(manifest["files"].keys() - _FILES[kind]))
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
        from cppmill_core.sentencepiece import describe_sentencepiece

        model = folder / _MODEL
        return describe_sentencepiece(model.read_bytes(), where=str(model), allow_lossy=allow_lossy)
    from cppmill_core.hugging_face import describe_hugging_face, read_rules

    rules = read_rules(folder / TOKENIZER)
    vocab: Mapping[str, int] = rules["model"]["vocab"]
    if any(type(id_) is not int for id_ in vocab.values()):
        raise ValueError("an id is no whole number")
    if len(set(vocab.values())) < len(vocab):
        raise ValueError("two tokens have the same id")
    return describe_hugging_face(folder / TOKENIZER, rules, allow_lossy=allow_lossy)
