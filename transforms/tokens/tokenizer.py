"""The tokenizer of a run: loaded once for each process, with the ids that begin and end a document."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import cppmill_core
from cppmill_core.manifests import BOS, EOS, MANIFEST

from schemas.digests import parse_json
from schemas.errors import IntegrityError
from schemas.options import TokenizeOptions
from schemas.tables import PLATFORM_VOCAB_SIZE
from transforms.storage.folder import OutputFolder

FOLDER = "tokenizer"
"""The folder of the tokenizer, relative to OUT."""

_MANIFEST_TYPES = {"vocab_size": int, "tokens": list, "files": dict}
"""What the manifest of every kind of tokenizer has."""

_LOADING = threading.Lock()
"""Units that begin at the same time wait for one tokenizer."""

_LOADED: dict[tuple[OutputFolder, str, str], cppmill_core.AnyTokenizer] = {}
_MAX_LOADED = 2
"""The tokenizers of this process, by place, folder and digest: of a run, and of the one it is compared with."""


@dataclass(frozen=True, kw_only=True)
class TokenizeSettings:
    """What a worker needs to tokenize, or to read tokens.

    Attributes:
        out: The output folder, with the tokenizer in its `tokenizer/`.
        tokenizer_digest: SHA-256 of the manifest that the plan was made for.
        options: BOS, EOS and prefix policy.
        threads: Threads of the native core.
        platform_vocab_size: Number of platform ids that the run has, padding included.
    """

    out: OutputFolder
    tokenizer_digest: str
    options: TokenizeOptions
    threads: int = 1
    platform_vocab_size: int = PLATFORM_VOCAB_SIZE


class DocumentEnds(NamedTuple):
    """The ids of BOS and EOS, each None if the policy puts none around documents."""

    bos: int | None
    eos: int | None


def open_tokenizer(settings: TokenizeSettings) -> cppmill_core.AnyTokenizer:
    """Load the tokenizer of OUT and check that it is the planned one.

    Raises:
        IntegrityError: If it is gone, its digest differs, or its files do not agree.
    """
    return load_pinned(settings.out, settings.tokenizer_digest, folder=FOLDER)


def load_pinned(
    place: OutputFolder,
    digest: str,
    *,
    folder: str = "",
    otherwise: str = "the plan was made for {digest}; it changed during the run: run again",
) -> cppmill_core.AnyTokenizer:
    """Load a tokenizer once for all threads of a process, and check that it is the planned one.

    Args:
        place: Where it is.
        digest: The digest of its manifest when the plan was made.
        folder: The tokenizer's folder in the place; empty for the place itself.
        otherwise: What the error says of another digest.

    Raises:
        IntegrityError: If it is gone, its digest differs, or its files do not agree.
    """
    name = f"{folder}/{MANIFEST}".lstrip("/")
    found = manifest_digest(place, name)
    if not found:
        raise IntegrityError(f"{place.where(name)}: missing; restore it, or run again")
    with _LOADING:
        tokenizer = _load_tokenizer(place, folder, found)
    if tokenizer.digest != digest:
        said = otherwise.format(digest=digest)
        raise IntegrityError(f"{place.where(folder)}: the tokenizer's digest is {tokenizer.digest}, {said}")
    return tokenizer


def manifest_digest(out: OutputFolder, name: str = f"{FOLDER}/{MANIFEST}") -> str:
    """Return the SHA-256 of a tokenizer's manifest, which is the tokenizer's digest; empty if there is none."""
    try:
        return hashlib.sha256(out.read_bytes(name)).hexdigest()
    except FileNotFoundError:
        return ""


def check_tokenizer(out: OutputFolder, receipt: Mapping[str, Any]) -> None:
    """Check that the tokenizer of OUT is the one that a receipt names, and has as many ids as the receipt says.

    Raises:
        IntegrityError: If it is another one, or has another number.
    """
    found, said = manifest_digest(out), receipt["tokenizer"]
    if found != said["digest"]:
        raise IntegrityError(
            f"{out.where(FOLDER)}: the tokenizer's digest is {found or 'none'}, the receipt says {said['digest']}; put "
            "that one back, or run again"
        )
    size, number = read_manifest(out)["vocab_size"], said["vocab_size"]
    if size != number:
        raise IntegrityError(f"{out.where(FOLDER)}: it has {size} ids, the receipt says {number}; see `cppmill verify`")


def read_manifest(out: OutputFolder, name: str = f"{FOLDER}/{MANIFEST}") -> dict[str, Any]:
    """Return the manifest of a tokenizer, by default of that of OUT.

    Raises:
        IntegrityError: If it is missing or damaged.
    """
    try:
        manifest = parse_json(out.read_bytes(name))
        if not all(isinstance(manifest[key], kind) for key, kind in _MANIFEST_TYPES.items()):
            raise TypeError("a value of another type")
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"{out.where(name)}: not the manifest of a tokenizer ({type(error).__name__}: {error}); restore it, copy "
            "the tokenizer again with --tokenizer DIR, or build another with --rebuild-tokenizer, which moves learned "
            "ids"
        ) from error
    return dict(manifest)


def document_ends(tokenizer: cppmill_core.AnyTokenizer, policy: TokenizeOptions) -> DocumentEnds:
    """Return the ids that a policy puts around documents.

    Raises:
        InvalidInputError: If the tokenizer lacks one of them.
    """
    return DocumentEnds(
        tokenizer.control_id(BOS) if policy.bos else None,
        tokenizer.control_id(end_name(tokenizer, policy)) if policy.eos else None,
    )


def end_name(tokenizer: cppmill_core.AnyTokenizer, policy: TokenizeOptions) -> str:
    """Return the name of the control token that a policy puts after documents."""
    if policy.eos_token is not None:
        try:
            tokenizer.control_id(policy.eos_token)
        except cppmill_core.InvalidInputError:
            return EOS
        return policy.eos_token
    return EOS


def keep_loaded(out: OutputFolder, tokenizer: cppmill_core.AnyTokenizer) -> None:
    """Take a loaded tokenizer for that of OUT, whose files were found to be the same: loading it takes 0.1 s."""
    with _LOADING:
        _keep((out, FOLDER, tokenizer.digest), tokenizer)


def _keep(key: tuple[OutputFolder, str, str], tokenizer: cppmill_core.AnyTokenizer) -> cppmill_core.AnyTokenizer:
    while len(_LOADED) >= _MAX_LOADED:
        del _LOADED[next(iter(_LOADED))]
    return _LOADED.setdefault(key, tokenizer)


def _load_tokenizer(out: OutputFolder, folder: str, digest: str) -> cppmill_core.AnyTokenizer:
    """Load a tokenizer once for all units of a process that find the same manifest; its cache of words stays warm."""
    found = _LOADED.get((out, folder, digest))
    if found is not None:
        return found
    with out.open_local_folder(folder) as directory:
        if not (directory / MANIFEST).is_file():  # it was just read, by its name
            raise IntegrityError(
                f"{out.where(f'{folder}/{MANIFEST}'.lstrip('/'))}: a list of the files there lacks it; if the store "
                "lists what was there before, run again later"
            )
        try:
            return _keep((out, folder, digest), cppmill_core.load_tokenizer(directory))
        except cppmill_core.CoreError as error:
            raise IntegrityError(f"{out.where(folder)}: {error}; restore it, or run again") from error
