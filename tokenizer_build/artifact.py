"""Writes a tokenizer directory: the Hugging Face files, the manifest and a readable table.

The bytes depend on the vocabulary, the merges and the template alone; manifest.json is written last, so a directory
with a manifest is complete.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cppmill_core import PATTERNS
from cppmill_core.byte_alphabet import spell
from cppmill_core.manifests import MANIFEST_FORMAT, SENTENCEPIECE, ranges
from cppmill_core.manifests.side_files import CONFIG as TOKENIZER_CONFIG_JSON
from cppmill_core.manifests.side_files import ROLES_FILE as SPECIAL_TOKENS_MAP_JSON
from cppmill_core.manifests.side_files import SETTINGS, roles_of
from cppmill_core.protocol import AnyTokenizer
from cppmill_core.sentencepiece import MODEL, piece_bytes
from cppmill_core.sentencepiece.proto import Model, read_model

from schemas.digests import canonical_json, parse_json, sha256_file
from schemas.options import HfTemplate
from tokenizer_build.bands import Strength, reserved_name
from tokenizer_build.layout import LEARNED, Slot, Slots
from tokenizer_build.templates import Json, apply_template
from tokenizer_build.vocabulary import VOCABULARY_JSON, read_vocabulary

TOKENIZER_JSON = "tokenizer.json"
MANIFEST_JSON = "manifest.json"
VOCAB_TSV = "vocab.tsv"
DIGESTED_FILES = (TOKENIZER_JSON, TOKENIZER_CONFIG_JSON, SPECIAL_TOKENS_MAP_JSON)
"""The files that an encoder needs, with their digests in the manifest."""

_UTF8 = "utf-8"
_RIGHT: set[tuple[str | None, ...]] = set()
"""Digests of a tokenizer and of its files, which this process has found to be what its manifest gives."""


@dataclass(frozen=True)
class TokenizerParts:
    """Everything that a tokenizer directory is made of.

    Attributes:
        slots: The plan of its ids.
        ids: Every id with its token, by id.
        merges: The merges in rank order.
        pattern_name: Name of the pre-token pattern.
        pattern_regex: Its regular expression.
        profile: Name of the profile.
        first_superword_merge: Number of the first merge that was learned in lines; None if there are no superwords.
        template: What `tokenizers` and `transformers` put around a text.
        vocabulary: SHA-256 of the vocabulary that it was built with; None for the one that comes with cppmill.
    """

    slots: Slots
    ids: Sequence[Slot]
    merges: Sequence[tuple[bytes, bytes]]
    pattern_name: str
    pattern_regex: str
    profile: str
    first_superword_merge: int | None = None
    template: HfTemplate = "none"
    vocabulary: str | None = None


def write_tokenizer(parts: TokenizerParts, out: Path) -> str:
    """Write the five files of a tokenizer directory.

    Returns:
        The tokenizer's digest: the SHA-256 of manifest.json, lower-case hex.
    """
    control = [(slot.id, slot.spelling) for slot in parts.ids if slot.strength is Strength.CONTROL]
    vocab = {slot.spelling: slot.id for slot in parts.ids}
    merges = [[spell(left), spell(right)] for left, right in parts.merges]
    contents = _contents(control, parts.pattern_regex, vocab, merges, parts.template)
    for name, content in contents.items():
        _write_json(out / name, content)
    (out / VOCAB_TSV).write_text("".join(_table_lines(map(_row, parts.ids))), encoding=_UTF8, newline="")
    return _write_manifest(_manifest(parts), parts.template, out)


def copy_with_template(source: Path, names: Iterable[str], template: HfTemplate, out: Path) -> str:
    """Write a copy of a tokenizer directory with another template: the bytes that a build with it would have written.

    Args:
        source: A directory that `write_tokenizer` wrote.
        names: The files of it to copy.
        template: What `tokenizers` and `transformers` are to put around a text.
        out: An existing, empty folder.

    Returns:
        The digest of the copy.

    Raises:
        VocabularyConfigError: If the tokenizer has no control token that the template needs.
    """
    changed = (TOKENIZER_JSON, TOKENIZER_CONFIG_JSON)
    for name in set(names).difference(changed):
        shutil.copyfile(source / name, out / name)
    contents = apply_template(template, *(parse_json((source / name).read_bytes()) for name in changed))
    for name, content in zip(changed, contents, strict=True):
        _write_json(out / name, content)
    return _write_manifest(parse_json((source / MANIFEST_JSON).read_bytes()), template, out)


def find_foreign_contents(folder: Path, tokenizer: AnyTokenizer) -> Iterator[tuple[str, str]]:
    """Yield the files of a directory that `write_tokenizer` wrote which are not what the manifest gives, and why.

    Of `tokenizer.json` vocabulary and merges are taken as they are. Of other kinds only a model has a table.

    Args:
        folder: The directory.
        tokenizer: The tokenizer that was loaded from it.
    """
    names = (MANIFEST_JSON, *DIGESTED_FILES, VOCAB_TSV, VOCABULARY_JSON, MODEL)
    files = [folder / name for name in names]
    looked_at = (tokenizer.digest, *(sha256_file(file) if file.is_file() else None for file in files))
    if looked_at in _RIGHT:
        return
    foreign = list(_find_foreign_contents(folder, tokenizer))
    yield from foreign
    if not foreign:
        _RIGHT.add(looked_at)


def _find_foreign_contents(folder: Path, tokenizer: AnyTokenizer) -> Iterator[tuple[str, str]]:
    manifest = parse_json((folder / MANIFEST_JSON).read_bytes())
    if "kind" in manifest:
        table = folder / VOCAB_TSV
        if table.is_file() and (manifest["kind"] != SENTENCEPIECE or table.read_bytes() != _table_of(folder / MODEL)):
            yield VOCAB_TSV, "not the table of the tokenizer's ids"
        return
    missing = [name for name in DIGESTED_FILES if name not in manifest["files"]]
    yield from ((name, "missing in the manifest; a build writes it") for name in missing)
    lacking = [key for key in ("bands", "pattern", "profile") if key not in manifest]
    yield from ((MANIFEST_JSON, f"it lacks {key!r}, which a build writes") for key in lacking)
    if missing or lacking:
        return
    found = {name: parse_json((folder / name).read_bytes()) for name in DIGESTED_FILES}
    control = [(token["id"], token["token"]) for token in manifest["tokens"] if token["strength"] == Strength.CONTROL]
    model = found[TOKENIZER_JSON]["model"]
    learned: Json = {name: type(model[name])() for name in ("vocab", "merges")}
    model.update(learned)
    regex, template = PATTERNS[manifest["pattern"]], manifest.get("hf_template", "none")
    expected = _contents(sorted(control), regex, learned["vocab"], learned["merges"], template)
    for name in DIGESTED_FILES:
        if _sorted_json(found[name]) != _sorted_json(expected[name]):
            yield name, "its content is not what the manifest gives"
    table = folder / VOCAB_TSV
    if table.is_file() and table.read_bytes() != "".join(derive_table(folder, tokenizer)).encode():
        yield VOCAB_TSV, "not the table of the tokenizer's ids"
    recorded = folder / VOCABULARY_JSON
    if recorded.is_file() and sha256_file(recorded) != manifest.get("vocabulary", {}).get("digest"):
        yield VOCABULARY_JSON, "not the vocabulary that the manifest records"
    elif recorded.is_file():
        named = read_vocabulary(folder).by_token
        other = [row for row in manifest["tokens"] if row["token"] not in named or named[row["token"]].id != row["id"]]
        yield from (
            (VOCABULARY_JSON, f"it has no {row['token']!r} with the manifest's id {row['id']}") for row in other[:1]
        )


def _sorted_json(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _contents(
    control: Sequence[tuple[int, str]], regex: str, vocab: Json, merges: Sequence[Any], template: HfTemplate
) -> dict[str, Json]:
    """Return the contents of the files that an encoder needs, by name.

    Args:
        control: Ids and names of the control tokens, by id.
        regex: The pre-token pattern.
        vocab: Ids by spelling.
        merges: Pairs of spellings in rank order.
        template: What goes around a text.
    """
    roles = roles_of(name for _, name in control)
    rules, config = apply_template(template, _tokenizer(control, regex, vocab, merges), {**SETTINGS, **roles})
    return {TOKENIZER_JSON: rules, TOKENIZER_CONFIG_JSON: config, SPECIAL_TOKENS_MAP_JSON: roles}


def _tokenizer(control: Sequence[tuple[int, str]], regex: str, vocab: Json, merges: Sequence[Any]) -> Json:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(id_, name) for id_, name in control],
        "normalizer": None,
        "pre_tokenizer": _pre_tokenizer(regex),
        "post_processor": None,
        "decoder": _byte_level(),
        "model": _model(vocab, merges),
    }


def _added_token(id_: int, name: str) -> Json:
    """Return a control token as a special added token: its id is the one that the model's vocabulary holds."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": id_, "content": name, **flags}


def _pre_tokenizer(regex: str) -> Json:
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, _byte_level()]}


def _byte_level() -> Json:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def _model(vocab: Json, merges: Sequence[Any]) -> Json:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": vocab,
        "merges": merges,
    }


def _manifest(parts: TokenizerParts) -> Json:
    first = parts.first_superword_merge
    return {
        **({} if first is None else {"superwords": {"first_merge": first}}),
        **({} if parts.vocabulary is None else {"vocabulary": {"digest": parts.vocabulary}}),
        "format": MANIFEST_FORMAT,
        "profile": parts.profile,
        "pattern": parts.pattern_name,
        **describe_slots(parts.slots),
    }


def describe_slots(slots: Slots) -> Json:
    """Return the part of a manifest that a plan of ids decides."""
    bands = slots.all_bands
    return {
        "vocab_size": slots.vocab_size,
        "bands": [{"name": b.name, "first": b.first, "last": b.last, "strength": b.strength.value} for b in bands],
        "tokens": [
            {"id": t.id, "token": t.token, "strength": t.strength.value, "band": t.band.name} for t in slots.fixed
        ],
        "reserved": ranges(slots.reserved),
    }


def _write_manifest(manifest: Json, template: HfTemplate, out: Path) -> str:
    """Write a manifest with the template and the digests of the files, and return its own digest."""
    kept = {key: value for key, value in manifest.items() if key != "hf_template"}
    recorded = {} if template == "none" else {"hf_template": template}
    files = {name: sha256_file(out / name) for name in DIGESTED_FILES}
    (out / MANIFEST_JSON).write_bytes(canonical_json({**kept, **recorded, "files": files}))
    return sha256_file(out / MANIFEST_JSON)


def _row(slot: Slot) -> tuple[int, bytes, str, str]:
    return slot.id, slot.token, slot.strength.value, slot.band


def _table_lines(rows: Iterable[tuple[int, bytes, str, str]]) -> Iterable[str]:
    yield "id\ttoken\tstrength\tband\n"
    for id_, token, strength, band in rows:
        yield f"{id_}\t{shown(token)}\t{strength}\t{band}\n"


def shown(token: bytes) -> str:
    r"""Return a token on one line of ASCII: bytes that are not printable, and the backslash, as Python writes them."""
    return repr(token)[2:-1]


def _table_of(file: Path) -> bytes:
    return model_table(read_model(file.read_bytes(), where=str(file)))


def model_table(model: Model) -> bytes:
    """Return the `vocab.tsv` of a SentencePiece model."""
    lines = ["id\ttoken\ttype\n"]
    for id_, (piece, token) in enumerate(zip(model.pieces, piece_bytes(model), strict=True)):
        lines.append(f"{id_}\t{shown(piece.text.encode() if token is None else token)}\t{piece.type.name.lower()}\n")
    return "".join(lines).encode()


def _write_json(path: Path, value: Json) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding=_UTF8, newline="")


def derive_table(folder: Path, tokenizer: AnyTokenizer) -> Iterable[str]:
    """Yield the lines of `vocab.tsv` from the other files of a directory that `write_tokenizer` wrote.

    Args:
        folder: The directory.
        tokenizer: The tokenizer that was loaded from it.
    """
    manifest = parse_json((folder / MANIFEST_JSON).read_bytes())
    bands = sorted((band["first"], band["last"], band["name"]) for band in manifest["bands"])
    tokens = [tokenizer.token_bytes(id_) or b"" for id_ in range(tokenizer.vocab_size)]
    strengths = [Strength.LEARNED.value] * len(tokens)
    for row in manifest["tokens"]:
        tokens[row["id"]], strengths[row["id"]] = row["token"].encode(), Strength(row["strength"]).value
    for first, last in manifest["reserved"]:
        for id_ in range(first, last + 1):
            tokens[id_], strengths[id_] = reserved_name(id_).encode(), Strength.RESERVED.value

    names = [LEARNED] * len(tokens)
    for first, last, name in reversed(bands):
        names[first : last + 1] = [name] * len(names[first : last + 1])
    yield from _table_lines(zip(range(len(tokens)), tokens, strengths, names, strict=True))
