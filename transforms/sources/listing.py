"""The inputs to read below the sources, in an order that does not depend on the machine.

A source is a folder, a file, a glob (`*`, `?`, `[...]`, `**`) or any of these as an fsspec URL. Regular files only:
links and special files are left alone, hidden folders are not walked, and the log says so.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import partial
from typing import Any, BinaryIO, NamedTuple, cast

import cppmill_core

from schemas.errors import ConfigError
from schemas.logs import module_logger
from schemas.options import IngestOptions
from schemas.passwords import split_chain, url_identity, with_query
from schemas.places import is_remote, plain_place
from schemas.reasons import Dead
from transforms.sources.document import display_path, raw_path
from transforms.sources.files import local_version, open_archive, os_error_reason
from transforms.sources.globs import Glob, is_glob, split_glob
from transforms.storage.urls import (
    HUB,
    forget_archives,
    is_web,
    lists_at_once,
    open_url,
    path_below,
    store_errors,
    store_failure,
    walk_folder,
)

logger = module_logger(__name__)


class Kind(StrEnum):
    """What an input is, by its name."""

    FILE = "file"
    TAR = "tar"
    ZIP = "zip"
    PARQUET = "parquet"
    JSONL = "jsonl"
    TEXT = "text"
    OTHER = "other"


GROUPED = (Kind.FILE, Kind.TEXT)
"""The kinds of which a unit has several; of the others each is a unit by itself."""

_TEXT_SUFFIX = ".txt"

_SUFFIXES: dict[str, tuple[Kind, str]] = {
    ".tar": (Kind.TAR, ""),
    ".tar.gz": (Kind.TAR, "gz"),
    ".tgz": (Kind.TAR, "gz"),
    ".tar.xz": (Kind.TAR, "xz"),
    ".txz": (Kind.TAR, "xz"),
    ".tar.zst": (Kind.TAR, "zst"),
    ".tzst": (Kind.TAR, "zst"),
    ".tar.bz2": (Kind.TAR, "bz2"),
    ".tbz2": (Kind.TAR, "bz2"),
    ".zip": (Kind.ZIP, ""),
    ".parquet": (Kind.PARQUET, ""),
    ".jsonl": (Kind.JSONL, ""),
    ".ndjson": (Kind.JSONL, ""),
    ".jsonl.gz": (Kind.JSONL, "gz"),
    ".jsonl.zst": (Kind.JSONL, "zst"),
}
_LAST_PARTS = frozenset(suffix.rpartition(".")[2] for suffix in _SUFFIXES)
_IS_FILE, _IS_FOLDER, _IS_LINK = range(3)
_FOLDERS_AT_ONCE = 16
"""Folders that are listed at the same time: on a cold disk or a network each is a wait."""

_FOLDERS_PER_CALL = 1024
"""Folders whose entries are in memory at the same time."""

_NOTHING = "source {!r} is no regular file and matches none; check the name or pattern"
_NO_SIZE = 1 << 53
"""No file has so many bytes; records have only numbers below it."""

_SETTLED_SECONDS = 2
"""How old the date of a file must be to tell it from a later one; a tag is often made of it."""

UNPROVEN = " unproven"
"""How the version of a file ends that does not tell it from a later one: the next run reads it again."""

_VERSION_KEYS = (
    "ETag",
    "etag",
    "blob_id",
    "md5Hash",
    "generation",
    "mtime",
    "LastModified",
    "Last-Modified",
    "last_modified",
    "updated",
    "created",
)


class Input(NamedTuple):
    """One regular file below a source.

    Attributes:
        source: Index of the source.
        path: Path relative to the source's root; bytes that are not UTF-8 as surrogate escapes.
        num_bytes: Size when it was listed.
        version: What `local_version` makes of its times and inode, or what the store calls a version.
        kind: What it is.
        reason: Why it cannot be read, if that is known already (a reason of the ledger), else empty.
    """

    source: int
    path: str
    num_bytes: int
    version: str
    kind: Kind
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Root:
    """A source, resolved.

    Attributes:
        location: The folder or URL that paths are relative to.
        name: Project of the files directly in it.
        is_file: Whether the source is one file, and `location` the folder that it is in.
    """

    location: str
    name: str
    is_file: bool = False


@dataclass(kw_only=True)
class Listing:
    """All inputs: by source in the given order, within a source by path, bytewise.

    Attributes:
        roots: One a source.
        inputs: The regular files.
        links: Sources, by number, and paths of links, left alone.
        special: Paths of pipes, sockets and devices, left alone.
        hidden: Paths of hidden folders, not walked.
    """

    roots: list[Root] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    links: list[tuple[int, str]] = field(default_factory=list)
    special: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    @property
    def num_bytes(self) -> int:
        """Bytes of all inputs."""
        return sum(item.num_bytes for item in self.inputs)


def kind_of(path: str) -> Kind:
    """Return the kind of an input by its extension, without regard to case.

    Example:
        >>> kind_of("a/Src.TAR.GZ"), kind_of("a/x.cpp")
        (<Kind.TAR: 'tar'>, <Kind.FILE: 'file'>)
    """
    if path.rpartition(".")[2].lower() not in _LAST_PARTS:
        return Kind.FILE  # most files are no archives
    return _SUFFIXES.get(_suffix(path), (Kind.FILE, ""))[0]


def codec_of(path: str) -> str:
    """Return the compression of an archive by its extension: gz, xz, zst, bz2 or none."""
    return _SUFFIXES.get(_suffix(path), (Kind.FILE, ""))[1]


def stem_of(path: str) -> str:
    """Return an archive's name without its extensions, its project."""
    name = path.rpartition("/")[2]
    return display_path(name[: len(name) - len(_suffix(path))] or name)


def _suffix(path: str) -> str:
    """Return the known suffix that a path ends in, lower case; empty if none."""
    parts = path.rpartition("/")[2].lower().split(".")
    for count in (2, 1):
        suffix = "".join(f".{part}" for part in parts[-count:])
        if len(parts) > count and suffix in _SUFFIXES:
            return suffix
    return ""


def list_inputs(sources: Sequence[str], options: IngestOptions) -> Listing:
    """List the regular files of all sources.

    Args:
        sources: Folders, files, globs, or fsspec URLs of these.
        options: Whether archives in folders are opened; a source that is an archive always is.

    Raises:
        ConfigError: If a source does not exist or a glob matches nothing.
        StoreError: If a store fails, or refuses the credentials.
    """
    listing = Listing()
    forget_archives()
    for index, source in enumerate(sources):
        source = plain_place(source)
        if is_remote(source):
            with store_errors(source):
                found = list(_list_remote(source, index, listing, options))
        else:
            found = list(_list_local(source, index, listing))
        is_file = listing.roots[index].is_file
        if not found and (is_file or is_glob(source)):
            raise ConfigError(_NOTHING.format(source))
        if not options.open_archives and not is_file:
            found = [_as(item, Kind.FILE) for item in found]
        if options.document_separator is not None:
            found = [_as(item, Kind.TEXT) if item.path.lower().endswith(_TEXT_SUFFIX) else item for item in found]
        if options.readers:
            found = [_as(item, Kind.OTHER) if _is_other(item, options.readers) else item for item in found]
        listing.inputs.extend(sorted(found, key=lambda item: raw_path(item.path)))
    _log(listing)
    return listing


def _is_other(item: Input, readers: Sequence[str]) -> bool:
    """Return whether a reader of another distribution reads a file."""
    return item.kind is Kind.FILE and not item.reason and extension_of(item.path) in readers


def extension_of(path: str) -> str:
    """Return what is behind the last dot of a path, in lower case."""
    return path.rpartition(".")[2].lower()


def _as(item: Input, kind: Kind) -> Input:
    return Input(item.source, item.path, item.num_bytes, item.version, kind, item.reason)


def _list_local(source: str, index: int, listing: Listing) -> Iterator[Input]:
    """Yield the files of a local source and note its root."""
    absolute = os.path.abspath(source)  # noqa: PTH100 - names need not be UTF-8
    pattern = None
    is_file = False
    if os.path.isdir(absolute):  # noqa: PTH112
        root = absolute
    elif os.path.exists(absolute):  # noqa: PTH110
        root, name = os.path.split(os.path.realpath(absolute))
        pattern, is_file = Glob(glob.escape(name)), True
    elif is_glob(source):
        root, below = split_glob(absolute)
        pattern = Glob(below)
        if _is_missing(root):
            raise ConfigError(_NOTHING.format(source))
    else:
        raise ConfigError(f"source {source!r} does not exist; give a folder, a file, a glob or an fsspec URL")
    root = root.rstrip("/")
    listing.roots.append(Root(location=root, name=_root_name(root), is_file=is_file))
    yield from _Walk(root, index, listing).files(pattern)


def _is_missing(folder: str) -> bool:
    """Return whether a folder is not there; one that may not be looked at is, and goes into the ledger."""
    try:
        os.stat(folder)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _root_name(root: str) -> str:
    return display_path(root.rpartition("/")[2]) or "source"


class _Walk:
    """One walk over a local folder."""

    def __init__(self, root: str, source: int, listing: Listing) -> None:
        self._root, self._source, self._listing = root, source, listing
        self._folders: list[tuple[str, bool]] = []

    def files(self, pattern: Glob | None) -> Iterator[Input]:
        """Yield the files that a pattern matches, all without one; a folder that it matches is taken whole."""
        self._folders = [("", pattern is None)]
        while self._folders:
            wave = self._folders[-_FOLDERS_PER_CALL:]
            del self._folders[-_FOLDERS_PER_CALL:]
            names, root = [prefix for prefix, _ in wave], os.fsencode(self._root)
            listed = cppmill_core.list_folders(root, names, threads=_FOLDERS_AT_ONCE)
            for (prefix, whole), entries in zip(wave, listed, strict=True):
                if isinstance(entries, int):
                    yield self._dead(prefix.rstrip("/") or ".", entries)
                else:
                    yield from self._files(prefix, entries, None if whole else pattern)

    def _files(
        self, prefix: str, entries: list[tuple[str, int, int, tuple[int, int, int], int]], pattern: Glob | None
    ) -> Iterator[Input]:
        """Yield the files of a folder that a pattern matches, and note what is no file."""
        for name, kind, num_bytes, version, error in entries:
            path = prefix + name
            taken = pattern is None or pattern.matches(path)
            if kind != _IS_FILE:
                if taken or (pattern is not None and pattern.may_hold(path)):
                    self._note(name, path, kind, taken=taken)
            elif taken:
                yield (
                    self._dead(path, error)
                    if error
                    else Input(self._source, path, num_bytes, local_version(*version), kind_of(path))
                )

    def _note(self, name: str, path: str, kind: int, *, taken: bool) -> None:
        """Note an entry that is no file."""
        if kind == _IS_LINK:
            self._listing.links.append((self._source, path))
        elif kind != _IS_FOLDER:
            self._listing.special.append(path)
        elif name.startswith("."):
            self._listing.hidden.append(path)
        else:
            self._folders.append((f"{path}/", taken))

    def _dead(self, path: str, error: int) -> Input:
        """Return the entry of a folder or file that cannot be looked at."""
        reason, _ = os_error_reason(OSError(error, os.strerror(error)))
        return Input(self._source, path, 0, "", Kind.FILE, reason)


def _list_remote(source: str, index: int, listing: Listing, options: IngestOptions) -> Iterator[Input]:
    """Yield the files of an fsspec URL and note its root.

    Raises:
        ConfigError: If it does not exist, or has members of an archive, of which some would be lost.
    """
    archive = _archive_behind(source)  # before it is opened, so that a later one has another version
    system, path = open_url(source)
    links = _links_in_archive(source, archive, options) if archive else frozenset()
    system.invalidate_cache()  # a branch of the Hub may have moved since this process listed it
    root, is_file = path.rstrip("/"), False
    if is_glob(source):
        folder, pattern = split_glob(path)
        root = folder.rstrip("/")
        found = _find(system, root, Glob(pattern))
    else:
        described = _describe(system, path if is_page(source) else root, source)
        is_file = described["type"] == "file" and not is_page(str(described.get("url", "")))
        found = {root: described} if is_file else _find(system, root)
        root = root.rpartition("/")[0] if is_file else root
    name = _root_name(root).partition("@")[0] if source.startswith(f"{HUB}://") else _root_name(root)
    listing.roots.append(Root(location=_location(source, path, root), name=name, is_file=is_file))
    hidden = set()
    for name, info in found.items():
        relative = path_below(root, name)
        if "?" in relative and is_web(source):
            continue  # a page's own links, as those that sort its list
        folder = _hidden_folder(relative)
        if folder:
            hidden.add(folder)
        elif relative.endswith("/"):
            if info["size"]:  # others are what a console makes for a folder
                yield Input(index, relative, _size(name, info), "", Kind.FILE, Dead.UNREADABLE)
        elif name in links:
            listing.links.append((index, relative))
        elif info["type"] == "file":
            try:
                known = info if info["size"] is not None else _info(system, name)  # a web page lists names alone
            except FileNotFoundError as error:
                yield Input(index, relative, 0, "", Kind.FILE, os_error_reason(error)[0])
                continue
            identity = url_identity(name) if is_web(name) else ""
            version = archive.version if archive else _version(known, identity)
            yield Input(index, relative, _size(name, known), version, kind_of(relative))
        elif info["type"] == "link":
            listing.links.append((index, relative))
        elif info["type"] != "directory":
            listing.special.append(relative)
    listing.hidden.extend(sorted(hidden))


def _find(system: Any, root: str, pattern: Glob | None = None) -> dict[str, dict[str, Any]]:  # noqa: ANN401
    """Return the files below a folder: all, or those that a pattern matches and those in folders that it matches.

    No `glob` of fsspec is asked: it takes a folder that it cannot list for an empty one.
    """

    def enters(folder: str) -> bool:
        return pattern is None or pattern.takes(folder) or pattern.may_hold(folder)

    try:
        found = system.find(root, detail=True) if lists_at_once(system) else dict(walk_folder(system, root, enters))
    except FileNotFoundError:
        return {}
    return {
        name: info
        for name, info in found.items()
        if pattern is None or pattern.takes(path_below(root, name).rstrip("/"))
    }


def _size(name: str, known: Mapping[str, Any]) -> int:
    """Return the bytes that a store says a file has.

    Raises:
        ValueError: If no file has so many.
    """
    num_bytes = int(known["size"] or 0)
    if not 0 <= num_bytes < _NO_SIZE:
        raise ValueError(f"{name} is said to have {num_bytes:,} bytes")
    return num_bytes


def is_page(url: str) -> bool:
    """Return whether a URL is of a web page that lists a folder."""
    return is_web(url) and url.endswith("/")


def _location(source: str, path: str, root: str) -> str:
    """Return the URL of a root in the file system of a source.

    What is before the path of a URL is kept as it is: it may name a host, a repository, or hold an archive's file
    system together with the one in which the archive is (`zip://*.cpp::s3://bucket/a.zip`).
    """
    url, *archive = split_chain(source)
    url, path = url if url.endswith("://") else url.rstrip("/"), path.rstrip("/")
    before = url.removesuffix(path) if url.endswith(path) else f"{url.partition('://')[0]}://"
    return "::".join([f"{before}{root}", *archive])


def check_source(source: str) -> None:
    """Check that a remote source can be read, with one request.

    Raises:
        ConfigError: If it does not exist; for a glob only the bucket is asked.
        StoreError: If the store fails, or refuses the credentials.
    """
    with store_errors(source):
        source = plain_place(source)
        if not is_remote(source):
            return  # a file of this machine, named by a URL
        system, path = open_url(source)
        if is_glob(source):
            system.exists(split_glob(path)[0].rstrip("/"))
        else:
            _describe(system, path if is_page(source) else path.rstrip("/"), source)


def _describe(system: Any, path: str, source: str) -> dict[str, Any]:  # noqa: ANN401 - fsspec has no annotations
    try:
        return _info(system, with_query(path))
    except FileNotFoundError as error:
        raise ConfigError(f"source {source!r} does not exist; give a folder, a file or a glob") from error


def _info(system: Any, name: str) -> dict[str, Any]:  # noqa: ANN401
    """Return what a store says of a file.

    Raises:
        FileNotFoundError: If there is none; fsspec takes any other answer of a web server for this too.
    """
    try:
        return dict(system.info(name))
    except FileNotFoundError as error:
        failure = store_failure(error)
        if failure is not None:
            raise failure from None
        raise


def _hidden_folder(path: str) -> str:
    """Return the first hidden folder that a path goes through, empty if none."""
    parts = path.split("/")[:-1]
    return next(("/".join(parts[: place + 1]) for place, part in enumerate(parts) if part.startswith(".")), "")


class _Archive(NamedTuple):
    """The archive whose members a URL names.

    What an archive says of a member is what its packer wrote there: the same moment for all of them, in many archives.
    So members have the version of the archive.

    Attributes:
        place: Its path or URL.
        num_bytes: Its size; 0 if it is not known.
        version: What tells it from a later one.
    """

    place: str
    num_bytes: int
    version: str


def _archive_behind(source: str) -> _Archive | None:
    """Look at the archive whose members a URL names; None if it names no members."""
    _, *archive = split_chain(source)
    if not archive:
        return None
    place = plain_place("::".join(archive))
    try:
        if not is_remote(place):
            return _Archive(place, os.stat(place).st_size, UNPROVEN)  # noqa: PTH116 - names need not be UTF-8
        outer = _archive_behind(place)
        system, path = open_url(place)
        system.invalidate_cache()
        known = _info(system, with_query(path))
    except FileNotFoundError:
        return _Archive(place, 0, UNPROVEN)  # whoever opens the archive says so
    version = outer.version if outer else _version(known, f".{known['size']}{url_identity(source)}")
    return _Archive(place, _size(place, known), version)


def _links_in_archive(source: str, archive: _Archive, options: IngestOptions) -> frozenset[str]:
    """Return the links among the members of an archive that a URL names, after reading the archive itself.

    Raises:
        ConfigError: If it is damaged, or fsspec does not list all its members.
    """
    scheme, place = source.partition("://")[0], archive.place
    if scheme not in (Kind.TAR, Kind.ZIP):
        return frozenset()
    from transforms.sources.archives.members import Members  # most sources have none, and what reads them loads slowly

    outer = _archive_behind(place)
    if outer:
        _links_in_archive(place, outer, options)
    members = Members(place.rpartition("/")[2], archive.num_bytes, "", options, is_timed=False)
    is_zip = scheme == Kind.ZIP
    read = partial(_open_archive, place, is_zip=is_zip)
    wrong = members.find_damage(read, is_zip=is_zip, codec=codec_of(members.path))
    if not wrong:
        found = _find(open_url(f"{scheme}://::{place}")[0], "")
        wrong = members.find_lost(name for name, info in found.items() if info["type"] != "directory")
    if wrong:
        raise ConfigError(f"source {source!r}: not all of the archive can be read in this way ({wrong}); give {place}")
    return frozenset(members.links)


def _open_archive(place: str, *, is_zip: bool) -> BinaryIO:
    if len(split_chain(place)) > 1:
        system, path = open_url(place)
        return cast(BinaryIO, system.open(path, "rb"))
    root, path = place.rsplit("/", 1) if is_remote(place) else os.path.split(os.path.realpath(place))
    return open_archive(root, path, is_stream=not is_zip)


def _version(info: Mapping[str, object], identity: str) -> str:
    """Return what a store says that tells a file from a later one of its size, and what the URL adds to it.

    Nothing may tell them: no version is said, or a web server says whole seconds, of which this is still the one.
    """
    found = next((str(info[key]) for key in _VERSION_KEYS if info.get(key) is not None), "")
    return found + identity + UNPROVEN * (not found or _is_young(info))


def _is_young(info: Mapping[str, object]) -> bool:
    try:
        date = parsedate_to_datetime(str(info["Last-Modified"])).timestamp()
    except KeyError:
        return False
    except (ValueError, OverflowError):
        return True  # what is no date shows nothing
    return time.time() - date < _SETTLED_SECONDS


def _log(listing: Listing) -> None:
    """Say what was left alone: one line a kind."""
    for what, paths in (
        ("links left alone", [path for _, path in listing.links]),
        ("pipes, sockets and devices left alone", listing.special),
        ("hidden folders not walked", listing.hidden),
    ):
        if paths:
            logger.info("%d %s: %s", len(paths), what, ", ".join(sorted(map(display_path, paths))))
