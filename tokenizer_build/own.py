"""A vocabulary of the user's own: begun as a copy of the one that comes with cppmill, with files and ids of its own.

    DIR/inherited/   the files that it was begun with, which stay as they are
    DIR/*.toml       what it adds and cuts
    DIR/ids.lock     its own pinned ids, from the published ones on; releases.lock beside it

New tokens get free ids from the end of their band downwards, because the vocabulary that comes with cppmill grows
upwards.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import canonical_json, parse_json, sha256_file
from schemas.errors import VocabularyConfigError
from schemas.files import new_folder, write_file
from tokenizer_build.artifact import MANIFEST_JSON, VOCAB_TSV
from tokenizer_build.bands import BANDS, DOMAIN, RESERVED_IDS
from tokenizer_build.decision_files import DECISIONS_PARQUET, DECISIONS_TXT
from tokenizer_build.findings import FINDINGS_MD
from tokenizer_build.lint import Finding, Severity, Split, lint_vocabulary, load_vocabulary
from tokenizer_build.lock import LOCK_NAME, LOCKS, PUBLISHED, alone, read_lock, read_releases
from tokenizer_build.vocabulary import INHERITED, VOCABULARY_JSON, Match, Vocabulary, band_file_paths, nearest

OWN_TOML = "own.toml"

_BEGINNING = """\
# What this vocabulary adds to the one in `inherited/`, and what it leaves out of it.
#
#     cppmill vocab add DIR --category acme --keep --from names.txt    adds names with free ids at the end of this file
#     cppmill vocab lint --vocab DIR                                   checks all files
#
# Every *.toml of this folder is read. `inherited/` stays as it is; a newer one takes its place as a whole.

band = "domain"

# Tokens of `inherited/` to leave out; their ids become learned tokens, or stay reserved once they are locked.
cut = []

# The same for whole categories.
cut_categories = []

# A category: `keep = true` names are never cut by a scan. `match = "prefix"` counts names that begin with them too.
#
# [[candidates]]
# category = "acme"
# match = "ident"
# api_prefixes = ["acme_"]
# keep = true
# [candidates.tokens]
# 6999 = "acme_init"
#
# A morpheme is counted in one position of the words of identifiers, and needs an id among the tokens.
#
# [[morphemes]]
# position = "prefix"
# terms = ["acme"]
"""


def init_vocabulary(source: Path, directory: Path) -> int:
    """Begin a vocabulary of the user's own, and return how many tokens it inherits.

    Args:
        source: The vocabulary folder to inherit; only the ids that were published before any release are locked.
        directory: The folder to make; it may be there if it is empty.

    Raises:
        VocabularyConfigError: If it is there and not empty.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise VocabularyConfigError(f"{directory}: it exists and is not empty; name a new folder")
    with new_folder(directory, lambda reason: VocabularyConfigError(f"{directory}: {reason}")) as part:
        _fill(source, part)
        return len(load_vocabulary(part)[0].tokens)


def _fill(source: Path, directory: Path) -> None:
    """Write the files of a vocabulary that inherits another."""
    _copy(band_file_paths(source), source, directory / INHERITED)
    write_file(directory / OWN_TOML, _BEGINNING.encode())
    lines = (source / LOCK_NAME).read_text(encoding="utf-8").splitlines(keepends=True)
    published = (line for line in lines if line.startswith("#") or line.rstrip("\n").endswith(f"\t{PUBLISHED}"))
    write_file(directory / LOCK_NAME, "".join(published).encode())


@dataclass(frozen=True)
class Addition:
    """What became of names that were to be added.

    Attributes:
        added: The new ones by id.
        newly_kept: Those that the vocabulary had already, and that a scan can no longer cut.
        known: The others that it had already; nothing changed for them.
    """

    added: dict[int, str]
    newly_kept: tuple[str, ...]
    known: tuple[str, ...]


def add_tokens(
    directory: Path,
    names: Iterable[str],
    *,
    category: str,
    split: Split,
    match: Match = "ident",
    api_prefixes: Sequence[str] = (),
    keep: bool = False,
    band: str = DOMAIN,
) -> Addition:
    """Give names free ids and add them to a vocabulary of the user's own; return what became of each.

    A name that the vocabulary has already stays as it is, but is kept from then on if that is asked for. Nothing is
    written unless all names can be used.

    Args:
        directory: The vocabulary folder.
        names: The names; order decides the ids, repetitions are ignored.
        category: Their category in the counts and decisions.
        split: Cuts a text as the pattern does that the vocabulary is for.
        match: How the scan counts them.
        api_prefixes: Prefixes that make a name distinctive.
        keep: Whether a scan never cuts them.
        band: The band that gives the ids.

    Raises:
        VocabularyConfigError: If the folder is not one of the user's own, the band has too few free ids, or a name
            breaks a rule: the pattern cuts it, say.
    """
    if not (directory / INHERITED).is_dir():
        raise VocabularyConfigError(f"{directory}: not made by `cppmill vocab init`; begin one with it")
    head = {"category": category, "match": match, "api_prefixes": list(api_prefixes)}
    with alone(directory):  # each reads what is there, so of two at once one would be lost
        return _add_tokens(directory, names, split, keep=keep, band=band, head=head)


def _add_tokens(
    directory: Path, names: Iterable[str], split: Split, *, keep: bool, band: str, head: Mapping[str, Any]
) -> Addition:
    vocabulary, lock = load_vocabulary(directory)
    given = dict.fromkeys(names)
    new = [name for name in given if name not in vocabulary.by_token]
    known = [name for name in given if name in vocabulary.by_token]
    elsewhere = [name for name in known if keep and _can_be_cut(name, vocabulary)]
    locked = {name: lock.by_token[name].id for name in new if name in lock.by_token}
    free = _enough_ids(free_ids(vocabulary, lock.by_id, band), band, len(new) - len(locked))
    added = {locked[name] if name in locked else next(free): name for name in new}
    if added or elsewhere:
        _append_checked(directory, _group({**head, "elsewhere": elsewhere, "keep": keep}, added), band, split)
    return Addition(added, tuple(elsewhere), tuple(name for name in known if name not in elsewhere))


def _can_be_cut(name: str, vocabulary: Vocabulary) -> bool:
    return vocabulary.by_token[name].band.name == DOMAIN and name not in vocabulary.kept


def write_vocabulary(vocabulary: Vocabulary, out: Path) -> str:
    """Write a vocabulary and its locks into a tokenizer directory; return the SHA-256 of `VOCABULARY_JSON`."""
    (out / VOCABULARY_JSON).write_bytes(canonical_json(vocabulary.to_json()))
    for name in LOCKS:
        if (vocabulary.directory / name).is_file():
            shutil.copyfile(vocabulary.directory / name, out / name)
    return sha256_file(out / VOCABULARY_JSON)


def split_files(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of the files of a tokenizer directory that belong to it, and of whatever else lies in it.

    The manifest, the files that it lists, the locks, and what only a build writes belong to it. Anything else could be
    read by a program that looks for it: a chat template, code, another vocabulary.
    """
    known = names_of_tokenizer(parse_json((folder / MANIFEST_JSON).read_bytes()))
    ours = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name in known)
    others = {path.name for path in folder.iterdir() if not path.name.startswith("_unit-")}
    return ours, sorted(others.difference(ours))


def names_of_tokenizer(manifest: Mapping[str, Any]) -> set[str]:
    """Return the names that the files of a tokenizer directory with a manifest may have."""
    known = names_of_build(manifest) | set(LOCKS)
    return known if "kind" in manifest else known | {VOCABULARY_JSON}


def names_of_build(manifest: Mapping[str, Any]) -> set[str]:
    """Return the names of the files that every build writes of a tokenizer with a manifest."""
    written = {MANIFEST_JSON, *manifest["files"], VOCAB_TSV, FINDINGS_MD}
    return written if "kind" in manifest else written | {DECISIONS_PARQUET, DECISIONS_TXT}


def check_side_files(folder: Path) -> None:
    """Check the files of a tokenizer directory of which its manifest says nothing: locks and decisions.

    Raises:
        VocabularyConfigError: If one cannot be read.
    """
    if (folder / LOCK_NAME).is_file():
        read_lock(folder)
    read_releases(folder)
    path = folder / DECISIONS_PARQUET
    if path.is_file():
        try:
            pq.read_schema(path)
        except pa.ArrowInvalid as error:
            raise VocabularyConfigError(f"{path}: not a Parquet file; restore it, or remove it") from error


def free_ids(vocabulary: Vocabulary, locked: Iterable[int], band: str) -> list[int]:
    """Return the ids of a band that a vocabulary of the user's own may give out, from the end of the band downwards.

    Args:
        vocabulary: The vocabulary; its ids are taken.
        locked: Ids that the lock holds.
        band: Name of the band.

    Raises:
        VocabularyConfigError: If there is no such band.
    """
    names = [known.name for known in BANDS]
    if band not in names:
        raise VocabularyConfigError(f"band {band!r}: no such band; {nearest(band, names)}")
    found = next(known for known in BANDS if known.name == band)
    taken = {*vocabulary.by_id, *locked, *RESERVED_IDS}
    return [i for i in range(found.last, found.first - 1, -1) if i not in taken]


def _enough_ids(free: Sequence[int], band: str, count: int) -> Iterator[int]:
    if len(free) < count:
        raise VocabularyConfigError(
            f"{count:,} new names, and the band {band} has {len(free):,} free ids; leave out tokens that you do not "
            "need (cut, cut_categories), or give some of the names ids of the band library, where a scan cuts nothing"
        )
    return iter(free)


def _group(head: dict[str, Any], tokens: dict[int, str]) -> str:
    """Return a group of candidates as TOML, whose strings JSON's are; keys without a value are left out."""
    keys = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in head.items() if value]
    rows = [f"{token_id} = {json.dumps(token, ensure_ascii=False)}" for token_id, token in tokens.items()]
    return "\n".join(["", "[[candidates]]", *keys, "[candidates.tokens]", *rows, ""])


def _append_checked(directory: Path, group: str, band: str, split: Split) -> None:
    """Add a group to the file of its band, unless the vocabulary would break a rule."""
    path = directory / (OWN_TOML if band == DOMAIN else f"own_{band}.toml")
    before = path.read_bytes() if path.is_file() else f'band = "{band}"\n'.encode()
    with tempfile.TemporaryDirectory() as folder:  # so that nothing is changed if this is stopped
        copy = Path(folder) / "vocabulary"
        _copy(_read_files(directory), directory, copy)
        write_file(copy / path.name, before + group.encode())
        try:
            errors = [found for found in lint_vocabulary(copy, split) if found.severity is Severity.ERROR]
            if errors:
                raise VocabularyConfigError(_messages(errors))
        except VocabularyConfigError as error:
            raise VocabularyConfigError(str(error).replace(str(copy), str(directory))) from error
    write_file(path, before + group.encode())


def _read_files(directory: Path) -> Iterator[Path]:
    """Yield what a vocabulary is read from; its folder may hold anything else, as that of a version control."""
    yield from band_file_paths(directory)
    for folder in (directory, directory / INHERITED):
        yield from filter(Path.is_file, (folder / name for name in (*LOCKS, VOCABULARY_JSON)))


def _copy(paths: Iterable[Path], source: Path, directory: Path) -> None:
    """Copy files of a folder to the same places in another."""
    for path in paths:
        place = directory / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


def _messages(errors: Iterable[Finding]) -> str:
    return "\n".join(found.message for found in errors)
