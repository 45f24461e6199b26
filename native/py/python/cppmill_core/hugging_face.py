"""Byte-level BPE of other programs: a folder or a `tokenizer.json` that `tokenizers` or `transformers` wrote.

The native core runs those whose pre-tokenizer and settings it knows (`FOREIGN_PATTERNS`). For any other, the
`tokenizers` package cuts documents into words by the tokenizer's own rules, and each distinct word is encoded once.
Either way the ids are those of the package, with three exceptions, so that text comes back as it was: special tokens in
text are ordinary text, bytes that are not UTF-8 become single-byte tokens, and the normaliser NFC is left out. One that
is adopted as lossy has its normaliser, which only the native core applies.

Needs the `tokenizers` package for tokenizers that the native core does not run.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cppmill_core._native import CoreError, CorruptDataError, InvalidInputError, Tokenizer
from cppmill_core.byte_alphabet import CHARACTERS, read_spelling, spell
from cppmill_core.manifests import (
    BOS,
    EOS,
    HUGGING_FACE,
    LOSSY,
    MAX_IDS,
    TOKENIZER,
    describe_ids,
    named_ids,
    read_manifest,
)
from cppmill_core.protocol import AnyTokenizer
from cppmill_core.segments import ADDED, MAX_SEGMENT_BYTES, WORD, Bytes, Marks, SegmentTokenizer, invalid_bytes
from cppmill_core.token_table import Integers, TokenTable

__all__ = [
    "CONFIG",
    "SPECIAL_TOKENS",
    "describe_hugging_face",
    "load_hugging_face",
    "lossy_rules",
    "puts_in_nfc",
    "read_rules",
    "surrounding_tokens",
]

CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS = "special_tokens_map.json"

_ENDS = {BOS: "bos_token", EOS: "eos_token"}
_WINDOW = 1 << 20
"""Characters that are cut into words at a time: each word is a Python object, which bounds memory."""

_MARGIN = 1 << 12
"""Characters at the end of a window whose words may change with more text; the next window cuts them again."""

_NFC = "it puts text in NFC (`normalizer`)"
"""What the manifest of a lossy tokenizer says."""

_KEEPING = {"ByteLevel", "Digits", "FixedLength", "Punctuation", "Split"}
"""The pre-tokenizers that keep all characters of a text; others remove white space, or put other characters there."""

_REFUSED = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")
"""Settings of a model with which the tokens of a word vary or are not its bytes."""


def load_hugging_face(path: str | os.PathLike[str], digest: str | None = None) -> AnyTokenizer:
    """Load a tokenizer directory of the kind `hugging-face`.

    Args:
        path: The directory, as `cppmill adopt` writes it.
        digest: Refuse a tokenizer with another digest.

    Raises:
        ImportError: The `tokenizers` package is needed and not installed.
        OSError: A file cannot be read.
        CorruptDataError: A file contradicts the manifest.
        InvalidInputError: The format is newer, or only the native core could run the tokenizer, and does not know it.
    """
    folder = Path(path)
    found, manifest = read_manifest(folder, digest)
    try:
        return Tokenizer.from_dir(path, digest)
    except CoreError as error:
        if manifest.get("run") == "native":
            raise
        reason = str(error).removeprefix(f"{folder / TOKENIZER}: ")
    rules = read_rules(folder / TOKENIZER)
    if LOSSY in manifest:
        raise InvalidInputError(
            f"{folder / TOKENIZER}: only the native core puts text in NFC, and it does not know this tokenizer: "
            f"{reason}; adopt it without --allow-lossy"
        )
    if any(step.get("behavior") == "Removed" for step in _steps(rules.get("pre_tokenizer"), "pretokenizers")):
        raise InvalidInputError(
            f"{folder / TOKENIZER}: it removes what lies between its matches, and the native core does not know that "
            f"they are all of a text: {reason}"
        )
    control, roles = named_ids(manifest)
    table = TokenTable(token_bytes(rules, manifest["vocab_size"]), control, roles)
    segmenter = WordSegmenter(rules)
    program = f"tokenizers, because the native core does not know it: {reason}"
    return SegmentTokenizer(path, found, table, segmenter, load_hugging_face, program=program)


def describe_hugging_face(file: Path, rules: Mapping[str, Any], *, allow_lossy: bool = False) -> dict[str, Any]:
    """Return an adopted tokenizer's manifest, without digests of files: kind, vocab_size, tokens, reserved, roles.

    That of one that puts text in NFC has the reason, under `lossy`; without it, the normaliser is left out.

    Args:
        file: The `tokenizer.json`; `<BOS>` and `<EOS>` are looked up in the two other files beside it.
        rules: What it says.
        allow_lossy: Keep the normaliser NFC.

    Raises:
        CorruptDataError: A file beside it is not JSON.
        InvalidInputError: The tokenizer is not a byte-level BPE, or loses text; the message has every reason.
    """
    lossy = lossy_rules(rules)
    if lossy:
        raise InvalidInputError(f"{file}: not a byte-level BPE that gives any text back as it was: {'; '.join(lossy)}")
    added = rules["added_tokens"]
    for token, id_ in zip(added, _assigned_ids(rules), strict=True):
        if token["id"] != id_:
            raise InvalidInputError(
                f"{file}: its added token {token['content']!r} has the id {token['id']}, but tokenizers gives it {id_}"
            )
    control = {str(token["content"]): int(token["id"]) for token in added if token["special"]}
    used = {*rules["model"]["vocab"].values(), *(int(token["id"]) for token in added)}
    size = max(used) + 1
    if not 0 < size <= MAX_IDS:
        raise InvalidInputError(f"{file}: its largest id is {size - 1}; a tokenizer may have {MAX_IDS:,} ids")
    unused = [id_ for id_ in range(size) if id_ not in used]
    return {
        "kind": HUGGING_FACE,
        **describe_ids(size, control, unused, _ends(file.parent, control)),
        **({LOSSY: [_NFC]} if allow_lossy and puts_in_nfc(rules) else {}),
    }


def puts_in_nfc(rules: Mapping[str, Any]) -> bool:
    """Return whether a tokenizer has the normaliser NFC."""
    return any(step.get("type") == "NFC" for step in _steps(rules.get("normalizer"), "normalizers"))


def read_rules(file: Path) -> dict[str, Any]:
    """Read a `tokenizer.json`.

    Raises:
        OSError: The file cannot be read.
        CorruptDataError: It is not a `tokenizer.json`.
    """
    try:
        rules: dict[str, Any] = json.loads(file.read_bytes())
        dict(rules["model"])["vocab"], list(rules["added_tokens"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptDataError(f"{file}: not a tokenizer of the Hugging Face format ({error})") from error
    return rules


def lossy_rules(rules: Mapping[str, Any]) -> list[str]:
    """Return the reasons why a tokenizer loses text; empty for a lossless one."""
    model, steps = rules["model"], _steps(rules.get("pre_tokenizer"), "pretokenizers")
    normalizers = _steps(rules.get("normalizer"), "normalizers")
    kind = str(model.get("type", "BPE"))
    if kind != "BPE":
        return [f"its model is {kind}, not BPE"]
    byte_levels = [step for step in steps if step.get("type") == "ByteLevel"]
    kinds = {str(step.get("type")) for step in steps}
    special = {token["content"] for token in rules["added_tokens"] if token["special"]}
    ids = {**model["vocab"], **{token["content"]: token["id"] for token in rules["added_tokens"]}}
    wrong = [
        ("it has no ByteLevel pre-tokenizer", not byte_levels),
        ("it has two ByteLevel pre-tokenizers", len(byte_levels) > 1),
        *((f"its pre-tokenizer {name} removes or replaces text", True) for name in sorted(kinds - _KEEPING)),
        (
            "it puts a space before text (add_prefix_space = true)",
            any(step.get("add_prefix_space", True) for step in byte_levels),
        ),
        ("it removes what it splits at", any(_removes(step) for step in steps)),
        ("it normalises text (`normalizer` is set)", any(step.get("type") != "NFC" for step in normalizers)),
        *((f"`model.{name}` is set", bool(model.get(name))) for name in _REFUSED),
        ("it has no token for some byte", any(character not in model["vocab"] for character in CHARACTERS)),
        ("an added token is empty", not all(token["content"] for token in rules["added_tokens"])),
        ("two of its tokens have the same id", len(set(ids.values())) < len(ids)),
        *(_lost_by(token, model["vocab"]) for token in rules["added_tokens"] if not token["special"]),
        *(
            (f"its special token {name!r} is also a token of text, which would have none then", True)
            for name in sorted(_made_tokens(model) & special)
        ),
    ]
    return [message for message, is_wrong in wrong if is_wrong]


def _assigned_ids(rules: Mapping[str, Any]) -> list[int]:
    """Return the ids that `tokenizers` gives the added tokens, whatever the file says.

    A token of the model keeps its id; the others have the ids from the number of the model's tokens on, in order.
    """
    vocab: dict[str, int] = rules["model"]["vocab"]
    others = dict.fromkeys(token["content"] for token in rules["added_tokens"] if token["content"] not in vocab)
    assigned = {**vocab, **{name: len(vocab) + place for place, name in enumerate(others)}}
    return [assigned[token["content"]] for token in rules["added_tokens"]]


def _removes(step: Mapping[str, Any]) -> bool:
    """Return whether a step removes text; one that removes what lies between its matches is checked by the core."""
    return step.get("behavior") == "Removed" and not step.get("invert")


def _lost_by(token: Mapping[str, Any], vocab: Mapping[str, int]) -> tuple[str, bool]:
    """Return how an added token that is not special loses text, and whether it does."""
    name = token["content"]
    flag = next((flag for flag in ("lstrip", "rstrip") if token.get(flag)), None)
    if flag is not None:
        return f"its added token {name!r} takes white space beside it ({flag} = true)", True
    spelled = name in vocab and spell(name.encode()) != name
    return f"its added token {name!r} is also the token of other bytes", spelled


def _made_tokens(model: Mapping[str, Any]) -> set[str]:
    """Return the tokens that text can become: those of bytes, and those that merges make."""
    merges = (merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"])
    return {*CHARACTERS, *("".join(merge) for merge in merges)}


def surrounding_tokens(file: Path) -> dict[str, int]:
    """Return the tokens that `tokenizers` puts around a text by default, with their ids.

    Args:
        file: A `tokenizer.json`.

    Raises:
        ImportError: The `tokenizers` package is not installed.
        OSError: The file cannot be read.
    """
    rules = json.loads(file.read_bytes())
    steps = _steps(rules.get("post_processor"), "processors")
    if all(step["type"] == "ByteLevel" for step in steps):
        return {}
    found = open_tokenizer(json.dumps({**_without_words(rules), "post_processor": rules["post_processor"]})).encode("")
    return dict(zip(found.tokens, found.ids, strict=True))


def _without_words(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules of a tokenizer that has no tokens."""
    empty = {"type": "BPE", "vocab": {}, "merges": []}
    version = {name: rules[name] for name in ("version",) if name in rules}
    return {**version, "model": empty, "added_tokens": []}


def _without_special(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules of a tokenizer whose model has no special tokens.

    With `ignore_merges`, a word with the characters of one would become it.
    """
    special = {token["content"] for token in rules["added_tokens"] if token["special"]}
    vocab = {token: id_ for token, id_ in rules["model"]["vocab"].items() if token not in special}
    return {**rules, "model": {**rules["model"], "vocab": vocab}}


def token_bytes(rules: Mapping[str, Any], vocab_size: int) -> list[bytes | None]:
    """Return the bytes of each id; None for special tokens, unused ids and tokens not in the byte alphabet."""
    added = {token["id"]: token for token in rules["added_tokens"]}
    tokens: list[bytes | None] = [None] * vocab_size
    alphabet = frozenset(CHARACTERS)
    for token, id_ in rules["model"]["vocab"].items():
        if id_ not in added and alphabet.issuperset(token):
            tokens[id_] = read_spelling(token)
    for id_, token in added.items():
        if not token["special"]:
            tokens[id_] = token["content"].encode()
    return tokens


class WordSegmenter:
    """Cuts texts into added tokens and words, and encodes the words, all with the `tokenizers` package."""

    max_bytes: int | None = MAX_SEGMENT_BYTES

    def __init__(self, rules: Mapping[str, Any]) -> None:
        """Make a segmenter from a `tokenizer.json`."""
        tokenizer = open_tokenizer(json.dumps(_without_special(rules)))
        self._pre_tokenizer, self._model = tokenizer.pre_tokenizer, tokenizer.model
        self._finder = open_tokenizer(json.dumps({**_without_words(rules), "added_tokens": rules["added_tokens"]}))
        self._finder.encode_special_tokens = True
        self.added = {
            token["content"].encode(): int(token["id"]) for token in rules["added_tokens"] if not token["special"]
        }

    def borders(self, text: Bytes, documents: pa.Array[Any], starts: Integers) -> Marks:
        """Mark where words and added tokens begin in runs of valid UTF-8; each other byte is a word by itself."""
        begins = np.zeros(len(text), np.uint8)
        invalid = invalid_bytes(text, documents, starts)
        begins[invalid] = WORD
        runs = np.unique(np.concatenate([starts, invalid, invalid + 1]))
        alone = set(invalid.tolist())
        for start, end in zip(runs[:-1].tolist(), runs[1:].tolist(), strict=True):
            if start not in alone:
                lengths, marks = zip(*self._parts(text[start:end].tobytes().decode()), strict=True)
                begins[start + np.cumsum([0, *lengths[:-1]])] = marks
        return begins

    def encode(self, segments: Sequence[bytes]) -> list[Sequence[int]]:
        """Return the ids of each word."""
        tokenize = self._model.tokenize
        return [[token.id for token in tokenize(spell(segment))] for segment in segments]

    def _parts(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the length of each word and added token in bytes, and its mark."""
        at = 0
        for first, last in self._finder.encode(text, add_special_tokens=False).offsets if self.added else ():
            yield from ((length, WORD) for length in self._word_lengths(text[at:first]))
            yield len(text[first:last].encode()), ADDED
            at = last
        yield from ((length, WORD) for length in self._word_lengths(text[at:]))

    def _word_lengths(self, text: str) -> Iterator[int]:
        """Yield the length of each word in bytes, which is the number of characters in the byte alphabet."""
        at = 0
        while at < len(text):
            window = text[at : at + _WINDOW]
            words: list[tuple[str, tuple[int, int]]] = self._pre_tokenizer.pre_tokenize_str(window)
            if at + _WINDOW < len(text):
                words = [word for word in words if word[1][1] <= _WINDOW - _MARGIN] or words
            yield from (len(spelled) for spelled, _ in words)
            at += words[-1][1][1]


def open_tokenizer(content: str) -> Any:  # noqa: ANN401 - an optional package
    """Return the `tokenizers.Tokenizer` of a `tokenizer.json`.

    Raises:
        ImportError: The package is not installed.
        CorruptDataError: The package does not read it.
    """
    try:
        package = importlib.import_module("tokenizers")
    except ImportError as error:
        raise ImportError(f"a tokenizer of the kind {HUGGING_FACE!r} needs tokenizers: install it") from error
    try:
        return package.Tokenizer.from_str(content)
    except Exception as error:  # of no class of its own
        raise CorruptDataError(f"not a tokenizer that tokenizers reads ({error})") from error


def _steps(rule: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    """Return the steps of a rule, which may be a sequence, of sequences too."""
    if not rule:
        return []
    return [step for part in rule[name] for step in _steps(part, name)] if rule.get("type") == "Sequence" else [rule]


def _ends(folder: Path, control: Mapping[str, int]) -> dict[str, int]:
    """Return the ids of `<BOS>` and `<EOS>`, by their names in the files beside a `tokenizer.json`."""
    named: dict[str, Any] = {}
    for name in (SPECIAL_TOKENS, CONFIG):
        if (folder / name).is_file():
            try:
                named |= json.loads((folder / name).read_bytes())
            except (ValueError, TypeError) as error:
                raise CorruptDataError(f"{folder / name}: not a JSON object ({error})") from error
    tokens = {role: named.get(key) for role, key in _ENDS.items()}
    names = {role: token["content"] if isinstance(token, dict) else token for role, token in tokens.items()}
    found = {role: role if name is None and role in control else name for role, name in names.items()}
    return {role: control[str(name)] for role, name in found.items() if name in control}
