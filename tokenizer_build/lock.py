"""The lock file: which ids are pinned for life.

`ids.lock` is append-only text, one line per id: the token as a JSON string, the id, and the first version that had it,
separated by tabs. A locked id is never moved or reused. `releases.lock` beside it has one line per release: version and
tokenizer digest. A comment under it says how many lines `ids.lock` had then, and the SHA-256 of these and of all
releases, so that no line of either file is lost, exchanged or edited. Only `release_vocabulary` writes the two files.

Releases of a user bind builds too: what they lock, a scan never cuts. Releases of the vocabulary that comes with
cppmill (`cppmill-1`) only pin ids, as every user's scan decides for itself which tokens are worth one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from schemas.digests import HEX_DIGEST, parse_json, sha256_file, sha256_json
from schemas.errors import VocabularyConfigError
from schemas.files import write_file
from tokenizer_build.bands import BANDS, DOMAIN, MORPHEMES, Strength
from tokenizer_build.vocabulary import INHERITED, Vocabulary, parse_id, read_vocabulary

LOCK_NAME = "ids.lock"
RELEASES_NAME = "releases.lock"
LOCKS = (LOCK_NAME, RELEASES_NAME)
"""What goes with a recorded vocabulary: its pinned ids and its releases."""
UNRELEASED = "unreleased"
"""The revision of a tokenizer that no release has."""

PUBLISHED = "published"
"""The first version of the ids that are locked before any release."""

SHIPPED = "cppmill-"
"""How the names of releases of the vocabulary begin that comes with cppmill."""

_FEW_BANDS = 2
"""How many bands a build has without fixed names: those of control tokens and of learned ones."""

_FIXED = ("control", "pinned", "atomic")
"""The strengths of bands of fixed tokens."""

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,99}")

_SHOWN = 80
"""How many characters of a line that is not of the form messages show."""

_HELD = re.compile(
    r"# after (?P<version>\S+): (?P<count>\d{1,9}) lines of ids\.lock, with all releases SHA-256 "
    r"(?P<digest>[0-9a-f]{64})"
)
"""What a release says of both locks; those of earlier versions of cppmill do not have it."""

_AFTER = "# after "


@dataclass(frozen=True)
class LockedId:
    """One line of the lock: a token, its id for life, the first version that had it, and where the line is."""

    token: str
    id: int
    version: str
    source: str

    @property
    def binds_builds(self) -> bool:
        """Whether every build has the token; if not, it has this id or none."""
        return not self.version.startswith(SHIPPED)

    def binds_again(self, earlier: LockedId) -> bool:
        """Return whether this line binds builds to a token whose id an earlier line has only pinned."""
        same = (self.token, self.id) == (earlier.token, earlier.id)
        return same and self.binds_builds and not earlier.binds_builds


@dataclass(frozen=True)
class Lock:
    """The lock of a vocabulary folder, in the order of its lines.

    Example:
        >>> Lock.from_entries([LockedId("<PAD>", 0, "1.0", "ids.lock:1")]).by_id[0].token
        '<PAD>'
    """

    entries: tuple[LockedId, ...]
    by_id: Mapping[int, LockedId]
    by_token: Mapping[str, LockedId]

    @cached_property
    def binding(self) -> Lock:
        """The lines that bind builds: their tokens are never cut, and their ids never learned."""
        return Lock.from_entries(entry for entry in self.entries if entry.binds_builds)

    @classmethod
    def from_entries(cls, entries: Iterable[LockedId]) -> Lock:
        """Index the lines of a lock.

        Raises:
            VocabularyConfigError: If an id or a token is locked twice.
        """
        ordered = tuple(entries)
        by_id: dict[int, LockedId] = {}
        by_token: dict[str, LockedId] = {}
        for entry in ordered:
            earlier = by_id.get(entry.id) or by_token.get(entry.token)
            if earlier is not None and not entry.binds_again(earlier):
                raise VocabularyConfigError(
                    f"{entry.source}: {entry.token!r} = {entry.id} was locked before: {earlier.token!r} = {earlier.id} "
                    f"at {earlier.source}; restore the file from version control"
                )
            by_id[entry.id] = by_token[entry.token] = entry
        return cls(ordered, by_id, by_token)


def read_lock(directory: Path) -> Lock:
    """Read the lock of a vocabulary folder.

    Raises:
        VocabularyConfigError: If it is missing, not UTF-8, a line is not of the form, something is locked twice, or its
            lines are not those that releases left.
    """
    path = directory / LOCK_NAME
    if not path.is_file():
        raise VocabularyConfigError(f"{path}: missing; restore it from version control: without it ids could move")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is not UTF-8"
        raise VocabularyConfigError(f"{path}: {where}; restore it from version control") from error
    lock = _parse(text)
    _check_held(path, text)
    return lock


def _check_held(path: Path, text: str) -> None:
    """Refuse a lock that does not begin with the lines that it had after each release, or has more lines of one.

    Releases of earlier versions of cppmill have no comment; those after the first that has one have theirs.
    """
    releases, lines = path.with_name(RELEASES_NAME), _entries(text)
    if not releases.is_file():
        return
    advice = f"restore both {LOCK_NAME} and {RELEASES_NAME} from version control"
    last, commented, count, released = "", "", 0, list[str]()
    for line in filter(None, releases.read_bytes().decode("utf-8", "replace").splitlines()):
        held = _HELD.fullmatch(line)
        if held is None and line.startswith("#") and not line.startswith(_AFTER):
            continue
        if held is None and not line.startswith("#"):
            _check_commented(releases, last, commented, advice)
            last = line.partition("\t")[0]
            released.append(line)
            continue
        if held is None or held["version"] != last or last == commented or int(held["count"]) < count:
            raise VocabularyConfigError(
                f"{releases}: {line[:_SHOWN]!r} is not what the release before it left; {advice}"
            )
        commented, count = last, int(held["count"])
        if len(lines) < count or _digest(lines[:count] + released) != held["digest"]:
            raise VocabularyConfigError(
                f"{path}: its first {count:,} lines, or those of {RELEASES_NAME}, are not those that there were after "
                f"the release {held['version'][:_SHOWN]}; {advice}"
            )
    _check_commented(releases, last, commented, advice)
    versions = {line.partition("\t")[0] for line in released}
    added = {line.rpartition("\t")[2] for line in lines[count:]} & {*versions, PUBLISHED} if commented else set()
    if added:
        raise VocabularyConfigError(f"{path}: it has got lines of {min(added)} since that was released; {advice}")


def _check_commented(releases: Path, last: str, commented: str, advice: str) -> None:
    if commented and last != commented:
        raise VocabularyConfigError(
            f"{releases}: the release {last[:_SHOWN]} has no line that says what {LOCK_NAME} had after it; {advice}"
        )


def _entries(text: str) -> list[str]:
    """Return the lines that lock something."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


@lru_cache(maxsize=2)
def _parse(text: str) -> Lock:
    numbered = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line and not line.startswith("#"))
    return Lock.from_entries(_parse_line(line, f"{LOCK_NAME}:{number}") for number, line in numbered)


def check_lock(lock: Lock, vocabulary: Vocabulary) -> None:
    """Check that no file of the vocabulary moves or reuses a locked id, and that each is in a band.

    A locked token that no file holds any more is legal: its id is reserved from then on.

    Raises:
        VocabularyConfigError: Naming each token, its id, and both places.
    """
    problems = [
        f"{entry.source}: {entry.token!r} has id {entry.id}, which is in no band; restore the file from version control"
        for entry in lock.entries
        if entry.id > BANDS[-1].last
    ]
    for token in vocabulary.tokens:
        by_token, by_id = lock.by_token.get(token.token), lock.by_id.get(token.id)
        if by_token is not None and by_token.id != token.id:
            problems.append(
                f"{token.source}: {token.token!r} is moved to {token.id}; its id is {by_token.id} for life since "
                f"{by_token.version} ({by_token.source}); give it that id"
            )
        if by_id is not None and by_id.token != token.token:
            problems.append(
                f"{token.source}: id {token.id} is reused for {token.token!r}; it belongs to {by_id.token!r} since "
                f"{by_id.version} ({by_id.source}); choose a free id"
            )
    if problems:
        raise VocabularyConfigError("\n".join(problems))


def release_vocabulary(directory: Path, tokenizer: Path, version: str) -> int:
    """Lock every fixed token of a built tokenizer under a new version, and record the tokenizer as that release.

    Lines are added at the end of both files, each rewritten atomically; a release that was interrupted can be repeated.
    Another release in the same folder waits for this one.

    Args:
        directory: The vocabulary folder.
        tokenizer: The tokenizer directory to release; only its manifest is read.
        version: Name of the release, not used before.

    Returns:
        The number of ids that became locked.

    Raises:
        VocabularyConfigError: If the version was used before or is malformed, the tokenizer disagrees with the lock, or
            its manifest has a token that is not where its band is.
    """
    with alone(directory):
        return _release(directory, tokenizer, version)


def _release(directory: Path, tokenizer: Path, version: str) -> int:
    lock, releases = read_lock(directory), read_releases(directory)
    if not _VERSION.fullmatch(version) or version in (*releases, PUBLISHED, UNRELEASED):
        taken = ", ".join(releases) or "none"
        raise VocabularyConfigError(f"version {version!r}: taken, or not of letters, digits, `.+_-`; taken: {taken}")
    check_versions(lock, {version, *releases})
    manifest = parse_json((tokenizer / "manifest.json").read_bytes())
    if version.startswith(SHIPPED) and (directory / INHERITED).is_dir():
        raise VocabularyConfigError(f"version {version!r}: {SHIPPED}… are releases of cppmill; choose another name")
    _check_bands(manifest, tokenizer)
    found = lock if version.startswith(SHIPPED) else lock.binding
    known = {(entry.token, entry.id) for entry in found.entries}
    rows = sorted((token["id"], token["token"]) for token in manifest["tokens"])
    _check_repeated(lock, version, frozenset(rows), tokenizer)
    added = [LockedId(token, i, version, f"{tokenizer}/manifest.json") for i, token in rows if (token, i) not in known]
    Lock.from_entries((*lock.entries, *added))
    _append(directory / LOCK_NAME, (f"{json.dumps(entry.token)}\t{entry.id}\t{version}" for entry in added))
    release = f"{version}\t{sha256_file(tokenizer / 'manifest.json')}"
    held = _entries((directory / LOCK_NAME).read_text(encoding="utf-8"))
    digest = _digest([*held, *(f"{name}\t{found}" for name, found in releases.items()), release])
    comment = f"{_AFTER}{version}: {len(held)} lines of {LOCK_NAME}, with all releases SHA-256 {digest}"
    _append(directory / RELEASES_NAME, [release, comment])
    return len(added)


def _check_repeated(lock: Lock, version: str, rows: frozenset[tuple[int, str]], tokenizer: Path) -> None:
    """Refuse lines of the release that is made now which are not of its tokenizer: no repeated release left them."""
    for entry in lock.entries:
        if entry.version == version and (entry.id, entry.token) not in rows:
            raise VocabularyConfigError(
                f"{entry.source}: {entry.token!r} = {entry.id} is of {version!r}, and no fixed token of {tokenizer}; "
                "release the tokenizer that was interrupted, else restore the file from version control"
            )


def check_versions(lock: Lock, releases: Collection[str]) -> None:
    """Refuse a lock with a line of a release that there was none of: it may no longer bind what it bound.

    Raises:
        VocabularyConfigError: Naming the line.
    """
    for entry in lock.entries:
        if entry.version not in (PUBLISHED, *releases):
            raise VocabularyConfigError(
                f"{entry.source}: {entry.token!r} is of {entry.version!r}, which {RELEASES_NAME} does not name; repeat "
                "that release if it was interrupted, else restore both files from version control"
            )


def _check_bands(manifest: Mapping[str, Any], tokenizer: Path) -> None:
    """Refuse a manifest with a token outside its band: a learned one, say, that was written among the fixed ones."""
    bands = {band["name"]: band for band in manifest.get("bands", ())}
    for token in manifest["tokens"] if bands else ():
        band = bands.get(token["band"])
        if band is None or not band["first"] <= token["id"] <= band["last"] or band["strength"] not in _FIXED:
            raise VocabularyConfigError(
                f"{tokenizer}: {token['token']!r} has id {token['id']}, which is not in the band {token['band']!r}; "
                "restore the tokenizer, or build it again"
            )
    _check_band_table(manifest, tokenizer)


def _check_band_table(manifest: Mapping[str, Any], tokenizer: Path) -> None:
    """Refuse bands that no build writes: others than those of the vocabulary, or ids at the end that are in none.

    A build without fixed names has one band below the learned ones, of any size.
    """
    known = {band.name: band for band in BANDS}
    for said in manifest.get("bands", ()):
        band = known.get(said["name"])
        strength = Strength.LEARNED if band is None else band.strength
        is_moved = band is not None and (said["first"], said["last"]) != (band.first, band.last)
        if said["strength"] != strength or (is_moved and len(manifest["bands"]) > _FEW_BANDS):
            raise VocabularyConfigError(
                f"{tokenizer}: no build writes the band {said['name']!r} from {said['first']} to {said['last']}, "
                f"{said['strength']}; restore the tokenizer, or build it again"
            )
    if manifest.get("bands") and manifest["bands"][-1]["last"] != manifest["vocab_size"] - 1:
        raise VocabularyConfigError(
            f"{tokenizer}: its last ids are in no band; restore the tokenizer, or build it again"
        )


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Wait for others that change a vocabulary folder; the lock is the folder's own, so it leaves no file."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def check_built_from(directory: Path, tokenizer: Path) -> None:
    """Refuse a tokenizer that disagrees with a vocabulary's files on the id of a token or the token of an id.

    Args:
        directory: The vocabulary folder.
        tokenizer: The tokenizer directory; only its manifest is read.

    Raises:
        VocabularyConfigError: For the first token that has another id or is not there, or the first id that has another
            token; for a tokenizer that records another vocabulary of the user's own, or lacks one where this is one.
    """
    vocabulary = read_vocabulary(directory)
    manifest = parse_json((tokenizer / "manifest.json").read_bytes())
    recorded = manifest.get("vocabulary", {}).get("digest")
    if (recorded is not None or vocabulary.own) and recorded != vocabulary_digest(vocabulary):
        raise VocabularyConfigError(
            f"{tokenizer}: built with the vocabulary {recorded or 'that comes with cppmill'}, and that of {directory} "
            f"is {vocabulary_digest(vocabulary)}; build with --vocab {directory} again"
        )
    for token in manifest["tokens"]:
        for fixed in (vocabulary.by_token.get(token["token"]), vocabulary.by_id.get(token["id"])):
            if fixed is not None and (fixed.id, fixed.token) != (token["id"], token["token"]):
                raise VocabularyConfigError(
                    f"{tokenizer}: {token['token']!r} has id {token['id']}, but {fixed.source} = {fixed.token!r}; "
                    f"release a tokenizer that was built from {directory}"
                )
        if token["token"] not in vocabulary.by_token:
            raise VocabularyConfigError(
                f"{tokenizer}: {token['token']!r}, id {token['id']}, is no token of {directory}; release a tokenizer "
                f"that was built from {directory}"
            )


def check_complete(
    directory: Path, tokenizer: Path, token_bytes: Callable[[int], bytes | None], *, kept: Collection[str] = ()
) -> None:
    """Refuse a tokenizer whose manifest leaves out a fixed token that it has: its id would not be pinned.

    In bands that a scan may cut, a learned token can have the id of a name that was cut. There, only tokens are looked
    for that cannot be cut, of earlier releases or by the vocabulary, and those that the decisions beside the tokenizer
    keep.

    Args:
        directory: The vocabulary folder.
        tokenizer: The tokenizer directory.
        token_bytes: Returns the bytes of an id of the loaded tokenizer.
        kept: The tokens that its build kept, by its decisions.

    Raises:
        VocabularyConfigError: For the first token that is left out.
    """
    named = {token["id"] for token in parse_json((tokenizer / "manifest.json").read_bytes())["tokens"]}
    vocabulary = read_vocabulary(directory)
    uncut = {*kept, *vocabulary.kept, *read_lock(directory).binding.by_token}
    for token in vocabulary.tokens:
        is_cut = token.band.name in (DOMAIN, MORPHEMES) and token.token not in uncut
        if token.id not in named and not is_cut and token_bytes(token.id) == token.token.encode():
            raise VocabularyConfigError(
                f"{tokenizer}: id {token.id} is {token.token!r}, and its manifest leaves it out of the fixed tokens; "
                "restore the tokenizer, or build it again"
            )


@lru_cache(maxsize=4)
def vocabulary_digest(vocabulary: Vocabulary) -> str:
    """Return the SHA-256 of a vocabulary as canonical JSON: of its tokens, ids, categories and morphemes."""
    return sha256_json(vocabulary.to_json())


def read_releases(directory: Path) -> dict[str, str]:
    """Return version to tokenizer digest of every release of a vocabulary folder, oldest first.

    Raises:
        VocabularyConfigError: If a line is not of the form.
    """
    path = directory / RELEASES_NAME
    if path.exists() and not path.is_file():
        raise VocabularyConfigError(f"{path}: not a file; restore it from version control")
    return parse_releases(path.read_bytes() if path.is_file() else b"", where=str(path))


def parse_releases(data: bytes, *, where: str) -> dict[str, str]:
    """Return version to tokenizer digest of every release in the bytes of a `releases.lock`, oldest first.

    Raises:
        VocabularyConfigError: If a line is not of the form, or names a version again.
    """
    lines = data.decode("utf-8", "replace").splitlines()
    pairs = [line.split("\t") for line in lines if line and not line.startswith("#")]
    releases: dict[str, str] = {}
    for pair in pairs:
        if len(pair) != 2 or not _VERSION.fullmatch(pair[0]) or not HEX_DIGEST.fullmatch(pair[1]):
            shown = "\t".join(pair)[:_SHOWN]
            raise VocabularyConfigError(
                f"{where}: {shown!r}: not a version and a digest; restore it from version control"
            )
        if pair[0] in releases:
            raise VocabularyConfigError(f"{where}: {pair[0]} was released before; restore it from version control")
        releases[pair[0]] = pair[1]
    return releases


def revision(releases: Mapping[str, str], digest: str) -> str:
    """Return the last release that a tokenizer digest was given, or `unreleased`."""
    versions = [version for version, released in releases.items() if released == digest]
    return versions[-1] if versions else UNRELEASED


def _parse_line(line: str, source: str) -> LockedId:
    try:
        text, number, version = line.split("\t")
        token = parse_json(text)
        if not isinstance(token, str):
            raise ValueError("the token is no string")
        token.encode()
        if not _VERSION.fullmatch(version):
            raise ValueError(f"{version[:_SHOWN]!r} is no version")
        return LockedId(token, parse_id(number), version, source)
    except ValueError as error:
        shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
        raise VocabularyConfigError(
            f"{source}: {shown!r}: not a token, an id and a version ({error}); restore it from version control"
        ) from error


def _append(path: Path, lines: Iterable[str]) -> None:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    ended = text if not text or text.endswith("\n") else f"{text}\n"  # people's editors may leave the last line open
    write_file(path, (ended + "".join(f"{line}\n" for line in lines)).encode())
