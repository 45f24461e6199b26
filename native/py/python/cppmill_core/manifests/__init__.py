"""Reads manifests of tokenizer directories, and checks that the files of a directory keep what its manifest promises.

The manifest has the digests of the files, so damage is found by these. What is checked besides is whether a directory
with true digests keeps its promises: a fixed token that has moved in `tokenizer.json` would be pinned for life by a
release. The checks read the two files and ask the loaded tokenizer; they take a fraction of a second.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.byte_alphabet import CHARACTERS, read_spelling
from cppmill_core.manifests.side_files import CONFIG, ROLES_FILE, find_added, find_false
from cppmill_core.protocol import AnyTokenizer

__all__ = [
    "BOS",
    "EOS",
    "HUGGING_FACE",
    "LOSSY",
    "MANIFEST",
    "MANIFEST_FORMAT",
    "MAX_IDS",
    "SENTENCEPIECE",
    "TOKENIZER",
    "check_agreement",
    "describe_ids",
    "named_ids",
    "parse_unique_json",
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

MAX_IDS = 1 << 24
"""Most ids of a tokenizer of another program: each that is unused takes time and memory."""

_SHOWN = 3
_FLAGS = {"special": True, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}
"""What an added token has in a `tokenizer.json` of ours."""

_KEYS = {"bands", "files", "format", "hf_template", "pattern", "profile", "reserved", "superwords", "tokens"} | {
    "vocab_size",
    "vocabulary",
}
"""The keys of the manifest of a build."""

_TOKEN_KEYS = {"id", "token", "strength", "band"}

_BAND_KEYS = {"name", "first", "last", "strength"}
_INNER_KEYS = {"superwords": {"first_merge"}, "vocabulary": {"digest"}}

_STRENGTHS = ("control", "pinned", "atomic")
"""What is promised about a fixed token."""

_BAND_STRENGTHS = (*_STRENGTHS, "reserved", "learned")
"""What is promised about the ids of a band."""

_PROMISED = {*((strength, strength) for strength in _STRENGTHS), ("pinned", "atomic")}
"""Strengths of fixed tokens with those of their bands; what is no identifier is only pinned in an atomic band."""

_ALPHABET = frozenset(CHARACTERS)
_AGREEING: set[str] = set()
"""Digests of tokenizers whose files this process found to agree; a digest stands for all bytes of a directory."""


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
        _check_reserved(folder / MANIFEST, manifest)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
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


def check_agreement(folder: str | os.PathLike[str], tokenizer: AnyTokenizer) -> None:
    """Check that the files of a tokenizer directory agree; those with digests once a process for each tokenizer.

    Args:
        folder: The directory that it was loaded from.
        tokenizer: The tokenizer.

    Raises:
        CorruptDataError: Naming the first promises of the manifest that `tokenizer.json` or a file beside it breaks.
    """
    folder = Path(folder)
    try:
        manifest = _parse_kept((folder / MANIFEST).read_bytes())
        problems = list(find_added(folder, manifest))
        if tokenizer.digest not in _AGREEING:
            problems += _find_problems(folder, manifest, tokenizer)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptDataError(f"{folder}: its files are not laid out as those of a tokenizer ({error!r})") from error
    if problems:
        more = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
        raise CorruptDataError(
            f"{folder / TOKENIZER}: not what {MANIFEST} says: {'; '.join(problems[:_SHOWN])}{more}; restore the "
            "directory, or build again"
        )
    _AGREEING.add(tokenizer.digest)


def parse_unique_json(data: bytes) -> dict[str, Any]:
    """Return the object of a JSON text in which no object has a key twice: readers differ on which of the two counts.

    Raises:
        ValueError: If it is not JSON, has a key twice, or is nested more deeply than Python reads.

    Example:
        >>> parse_unique_json(b'{"a": 1, "a": 2}')
        Traceback (most recent call last):
        ValueError: the key 'a' is there twice
    """
    try:
        found: dict[str, Any] = json.loads(data, object_pairs_hook=_take_once)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return found


_parse_kept = lru_cache(maxsize=2)(parse_unique_json)
"""The same for those who only read it: a command looks at the same manifest several times."""


def _take_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def _find_problems(folder: Path, manifest: Mapping[str, Any], tokenizer: AnyTokenizer) -> Iterator[str]:
    """Yield every promise of a manifest that a loaded tokenizer does not keep."""
    yield from _check_tokens(manifest, tokenizer)
    yield from _check_roles(manifest)
    if manifest.get("kind") != SENTENCEPIECE:
        rules = _read_rules(folder / TOKENIZER)
        yield from _check_names(manifest, rules)
        if manifest.get("kind") is None:
            if "pattern" in manifest and manifest["pattern"] != getattr(tokenizer, "pattern", None):
                yield f"its pattern is {getattr(tokenizer, 'pattern', None)}, not {manifest['pattern']}"
            yield from _check_keys(manifest)
            yield from _check_bands(manifest)
            yield from _check_ids(manifest, rules)
            yield from _check_merges(manifest, rules)
            yield from _check_flags(rules)
            yield from find_false(folder, manifest)


@dataclass(frozen=True)
class _Rules:
    """What is read of a `tokenizer.json`."""

    vocab: Mapping[str, int]
    merges: list[list[str]]
    added: Mapping[str, int]
    flags: Mapping[str, Mapping[str, Any]]
    """Of each added token, what it has besides id and content."""


def _read_rules(file: Path) -> _Rules:
    rules = parse_unique_json(file.read_bytes())
    merges = [merge if isinstance(merge, list) else merge.split(" ") for merge in rules["model"]["merges"]]
    added = {token["content"]: token["id"] for token in rules["added_tokens"] if token["special"]}
    unset: dict[str, Any] = dict.fromkeys(_FLAGS)
    flags = {token["content"]: {**unset, **token} for token in rules["added_tokens"]}
    for found in flags.values():
        del found["id"], found["content"]
    return _Rules(rules["model"]["vocab"], merges, added, flags)


def _check_tokens(manifest: Mapping[str, Any], tokenizer: AnyTokenizer) -> Iterator[str]:
    """Compare ids and tokens: control and reserved ids stand for no text, fixed ones for theirs, alone too."""
    if tokenizer.vocab_size != manifest["vocab_size"]:
        yield f"it has {tokenizer.vocab_size} ids, not {manifest['vocab_size']}"
        return
    fixed = []
    for token in manifest["tokens"]:
        id_, name = token["id"], token["token"]
        expected = None if token["strength"] == "control" else name.encode()
        if tokenizer.token_bytes(id_) != expected:
            yield f"id {id_} is {_shown(tokenizer, id_)}, not {name!r}"
        elif expected is not None:
            fixed.append((id_, name))
    silent = chain.from_iterable(range(first, last + 1) for first, last in manifest["reserved"])
    yield from (f"id {i} is reserved, and is {_shown(tokenizer, i)}" for i in silent if tokenizer.token_bytes(i))
    ids = tokenizer.encode_batch([name.encode() for _, name in fixed]).to_pylist() if fixed else []
    for (id_, name), found in zip(fixed, ids, strict=True):
        if found != [id_]:
            yield f"{name!r} alone is encoded to {found}, not to its id {id_}"


def _check_roles(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Check that the roles of an adopted tokenizer are control tokens: text that begins documents would be text."""
    control, roles = named_ids(manifest)
    for role, id_ in roles.items():
        if type(id_) is not int or id_ not in control.values():
            yield f"{MANIFEST}: the role {role} has id {id_}, which is no control token"


def _check_keys(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Check that the manifest of a build has only keys that a build writes; others are of adopted tokenizers."""
    yield from (f"{MANIFEST} has the key {key!r}, which no build writes" for key in sorted(manifest.keys() - _KEYS))
    strange = sorted(manifest["files"].keys() - {TOKENIZER, CONFIG, ROLES_FILE})
    yield from (f"{MANIFEST} lists {name}, which no build writes" for name in strange)
    for token in manifest["tokens"]:
        yield from (f"{MANIFEST}: id {token['id']} has the key {key!r}" for key in sorted(token.keys() - _TOKEN_KEYS))
    for name, known in _INNER_KEYS.items():
        inner = manifest.get(name, {})
        yield from (f"{MANIFEST}: {name} has the key {key!r}" for key in sorted(inner.keys() - known))
    for band in manifest.get("bands", ()):
        yield from (
            f"{MANIFEST}: the band {band['name']!r} has the key {key!r}" for key in sorted(band.keys() - _BAND_KEYS)
        )
    if not isinstance(manifest.get("profile", ""), str):
        yield f"{MANIFEST}: the profile {manifest['profile']!r} is no name"


def _check_bands(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Check that fixed tokens are listed once each, with a strength that they can have, in a band that has their id."""
    ids = Counter(token["id"] for token in manifest["tokens"])
    yield from (f"{MANIFEST} lists id {id_} twice" for id_, count in ids.items() if count > 1)
    if "bands" not in manifest:
        return
    yield from _check_borders(manifest)
    bands = {band["name"]: band for band in manifest["bands"]}
    for token in manifest["tokens"]:
        band = bands.get(token["band"], {"first": 0, "last": -1, "strength": None})
        if not band["first"] <= token["id"] <= band["last"]:
            yield f"{MANIFEST}: id {token['id']} is not in the band {token['band']!r}"
        if token["strength"] not in _STRENGTHS:
            yield f"{MANIFEST}: id {token['id']} has the strength {token['strength']!r}"
        elif (token["strength"], band["strength"]) not in _PROMISED:
            yield f"{MANIFEST}: id {token['id']} is {token['strength']}, and its band {band['strength']}"


def _check_borders(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Check that bands ascend without overlapping, each with a name of its own, and hold ids that there are."""
    names, following = set[str](), 0
    for band in manifest["bands"]:
        if band["name"] in names:
            yield f"{MANIFEST} has two bands {band['name']!r}"
        if not following <= band["first"] <= band["last"] < manifest["vocab_size"]:
            yield f"{MANIFEST}: the band {band['name']!r} is out of place, from {band['first']} to {band['last']}"
        if band["strength"] not in _BAND_STRENGTHS:
            yield f"{MANIFEST}: the band {band['name']!r} has the strength {band['strength']!r}"
        names.add(band["name"])
        following = max(following, band["last"] + 1)


def _shown(tokenizer: AnyTokenizer, id_: int) -> str:
    token = tokenizer.token_bytes(id_)
    return "no text" if token is None else repr(token)[1:]


def _check_names(manifest: Mapping[str, Any], rules: _Rules) -> Iterator[str]:
    """Compare the names of control tokens with the special tokens, which `tokenizers` and `transformers` go by."""
    control, _ = named_ids(manifest)
    for name in sorted(control.keys() | rules.added.keys()):
        if control.get(name) != rules.added.get(name):
            yield f"the control token {name!r} has id {rules.added.get(name)}, not {control.get(name)}"


def _check_ids(manifest: Mapping[str, Any], rules: _Rules) -> Iterator[str]:
    """Check that each id has one token, names have theirs, and every byte is a token."""
    named = _names(manifest)
    for name, id_ in named.items():
        if rules.vocab.get(name) != id_:
            yield f"{name} has id {rules.vocab.get(name)}, not {id_}"
    if sorted(rules.vocab.values()) != list(range(manifest["vocab_size"])):
        yield f"its tokens do not have the ids 0 to {manifest['vocab_size'] - 1}, each once"
    yield from (f"no token for the byte {read_spelling(c)[0]}" for c in CHARACTERS if c not in rules.vocab)
    texts = rules.vocab.keys() - named.keys()
    if not _ALPHABET.issuperset("".join(texts)):
        strange = (text for text in texts if not _ALPHABET.issuperset(text))
        yield from (f"{text!r} is not spelled in the byte alphabet" for text in strange)


def _check_merges(manifest: Mapping[str, Any], rules: _Rules) -> Iterator[str]:
    """Check that merges lead from tokens to tokens, and that each token of two bytes and more has one."""
    texts = rules.vocab.keys() - _names(manifest).keys()
    made = {left + right for left, right in rules.merges}
    if not texts.issuperset(made.union(*rules.merges)):
        for left, right in rules.merges:
            strange = [text for text in (left, right, left + right) if text not in texts]
            if strange:
                yield f"the merge of {left!r} and {right!r}: {strange[0]!r} is no token of text"
    yield from (f"no merge makes {text!r}" for text in sorted(texts - made) if len(text) > 1)


def _check_flags(rules: _Rules) -> Iterator[str]:
    """Check that control tokens are taken as they are: a flag would let `tokenizers` eat the space around them."""
    for token, flags in rules.flags.items():
        wrong = [name for name, value in flags.items() if value is not _FLAGS.get(name)]
        if wrong:
            yield f"the added token {token!r} has {wrong[0]} = {flags[wrong[0]]}"


def _names(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Return the ids that stand for no text, by the names that `tokenizer.json` has for them."""
    named, _ = named_ids(manifest)
    for first, last in manifest["reserved"]:
        named |= {f"<RESERVED_{id_}>": id_ for id_ in range(first, last + 1)}
    return named


def _check_reserved(file: Path, manifest: Mapping[str, Any]) -> None:
    """Check that the reserved ranges ascend and hold only ids that there are: others could be walked for ever."""
    following = 0
    for first, last in manifest.get("reserved", ()):
        if not following <= first <= last < manifest["vocab_size"]:
            raise CorruptDataError(f"{file}: the reserved range [{first}, {last}] is out of place")
        following = last + 1


def _check_file(folder: Path, name: str, expected: str) -> None:
    if Path(name).name != name:
        raise CorruptDataError(f"{folder / MANIFEST}: {name!r} is not a plain file name")
    if not (folder / name).is_file():
        raise CorruptDataError(f"{folder / name}: there is no such file, and {MANIFEST} names it")
    found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    if found != expected:
        raise CorruptDataError(f"{folder / name}: SHA-256 is {found}, {MANIFEST} says {expected}")
