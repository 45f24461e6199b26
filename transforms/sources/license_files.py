"""The files that hold the licences of folders: which they are, which of them bear on a unit, and what is in them.

A plan finds those of loose files by their names, in the listing, so that a unit depends on nothing that another one
reads. An archive is one unit, and a reading of its own finds those in it. Tables have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from schemas.options import IngestOptions
from schemas.reasons import Column, Filtered
from schemas.units import Unit
from transforms.sources.document import Archive, Document, accepts_extension, display_path
from transforms.sources.files import naming_input, open_input, os_error_reason
from transforms.sources.listing import GROUPED, Input, Kind
from transforms.sources.readers import read_members

LICENSE_FILES = "license_files"
"""Names, in a unit's payload, the files that bear on it: a list of path, listed bytes and version."""

LICENSE_LINKS = "license_links"
"""Names, in a unit's payload, the links among them, which nobody follows: a list of paths."""

_MAX_BYTES = 256 << 10
"""No licence is so long; what is longer is not looked at, and so not identified."""

_HOLDERS = "copyright"
_NAME = re.compile(rf"(?:(?:un)?licen[cs]es?|copying|{_HOLDERS})(?:[-._][^/]*)?", re.IGNORECASE)


def is_license_file(path: str, options: IngestOptions) -> bool:
    """Return whether a file holds a licence by its name: LICENSE, COPYING.LESSER, licence.txt, and no source of code.

    Example:
        >>> [is_license_file(name, IngestOptions()) for name in ("a/LICENSE-MIT", "a/license.cpp", "a/relicense")]
        [True, False, False]
    """
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None and not accepts_extension(path, options)


def names_holders(path: str) -> bool:
    """Return whether a licence file may say who has the rights, and nothing of a licence, by its name."""
    return path.rpartition("/")[2].lower().startswith(_HOLDERS)


def folder_of(path: str) -> str:
    """Return the folder that a file is in, empty for the top one."""
    return path.rpartition("/")[0]


def enclosing_folders(path: str) -> Iterator[str]:
    """Yield the folders that a file is in, the nearest first.

    Example:
        >>> list(enclosing_folders("a/b/c.h"))
        ['a/b', 'a', '']
    """
    while path:
        path = folder_of(path)
        yield path


def license_files_by_folder(inputs: Iterable[Input], options: IngestOptions) -> dict[str, list[Input]]:
    """Return the licence files of a source by folder."""
    found = dict[str, list[Input]]()
    for item in inputs:
        if is_license_file(item.path, options):
            found.setdefault(folder_of(item.path), []).append(item)
    return found


def unknown_links(links: Iterable[tuple[str, str | None]], files: Collection[str]) -> list[str]:
    """Return which links named like licence files are some that nobody knows: what they lead to is not read.

    A link to a licence file that holds in its folder without it, as a file there or in the nearest folder above that
    has any, says nothing new.

    Args:
        links: The path of each, and of what it leads to, if that is known.
        files: The paths of the licence files.

    Example:
        >>> unknown_links([("a/LICENSE", "LICENSE"), ("b/COPYING", "gpl.txt"), ("c/COPYING", None)], ["LICENSE"])
        ['b/COPYING', 'c/COPYING']
    """
    folders = set(map(folder_of, files))

    def says_nothing_new(path: str, target: str | None) -> bool:
        return target is not None and target in files and folder_of(target) == nearest_folder(path, folders)

    return [path for path, target in links if not says_nothing_new(path, target)]


def nearest_folder(path: str, folders: Container[str]) -> str | None:
    """Return the nearest of some folders that a file is in."""
    return next((folder for folder in enclosing_folders(path) if folder in folders), None)


def nearest_license_files(
    inputs: Iterable[Input], by_folder: Mapping[str, list[Input]], links: Sequence[str]
) -> dict[str, list[Any]]:
    """Return what a payload says of the licence files, and of the links among them, that are nearest to some inputs."""
    folders = {*by_folder, *map(folder_of, links)}
    if not folders:
        return {}
    nearest = {nearest_folder(path, folders) for path in {folder_of(item.path): item.path for item in inputs}.values()}
    files = [item for folder in nearest if folder is not None for item in by_folder.get(folder, ())]
    found: dict[str, list[Any]] = {
        LICENSE_FILES: sorted([item.path, item.num_bytes, item.version] for item in files),
        LICENSE_LINKS: sorted(path for path in links if folder_of(path) in nearest),
    }
    return {name: values for name, values in found.items() if values}


def read_license_files(unit: Unit, options: IngestOptions) -> Iterator[tuple[str, bytes | None]]:
    """Yield path, as documents show theirs, and content of the licence files that bear on a unit.

    The content is None if it cannot be read, is too long to be a licence, or is behind a link. In each folder of a
    damaged archive there is one that is None.
    """
    if unit.payload["kind"] in GROUPED:
        for path, num_bytes, _ in unit.payload.get(LICENSE_FILES, ()):
            yield display_path(path), _read(unit.payload["root"], path, num_bytes)
        yield from ((display_path(path), None) for path in unit.payload.get(LICENSE_LINKS, ()))
    elif unit.payload["kind"] in (Kind.TAR, Kind.ZIP):
        yield from _read_members(unit, options)


def _read(root: str, path: str, num_bytes: int) -> bytes | None:
    if num_bytes > _MAX_BYTES:
        return None
    try:
        with naming_input(root, path), open_input(root, path) as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        os_error_reason(error)
        return None
    return content if len(content) <= _MAX_BYTES else None


def _read_members(unit: Unit, options: IngestOptions) -> Iterator[tuple[str, bytes | None]]:
    changes: dict[str, Any] = {"limit": None, "max_document_bytes": _MAX_BYTES}
    for path, num_bytes, _, reason in unit.payload["inputs"]:
        archive = _LicenseFiles(path, num_bytes, unit.payload["project"], options.model_copy(update=changes))
        if not reason:
            files, is_damaged = set(), False
            with closing(read_members(unit, archive)) as members:
                for member in members:
                    if isinstance(member, Document) and is_license_file(member.path, options):
                        files.add(member.path)
                        yield member.path, member.content
                    is_damaged |= isinstance(member, Document) and member.column == Column.DEAD
            unknown = unknown_links(archive.links, files)
            if is_damaged:  # any folder may have lost a licence file
                unknown.extend(f"{folder}/LICENSE" for folder in {display_path(path), *map(folder_of, files)})
            yield from ((name, None) for name in unknown)


@dataclass
class _LicenseFiles(Archive):
    """An archive of which the licence files are read, and nothing else.

    Attributes:
        links: Links named like licence files: the path of each, and of what it leads to, if that is in the archive.
    """

    links: list[tuple[str, str | None]] = field(default_factory=list, init=False)

    def drops(self, member: str, *, has_extension: bool = True) -> Filtered | None:
        """Return that a member is dropped unless it holds a licence."""
        return None if has_extension and is_license_file(member, self.options) else Filtered.EXTENSION

    def leave_alone(self, member: str, find_target: Callable[[], str | None]) -> None:
        """Note it if it is named like a licence file."""
        if is_license_file(member, self.options):
            target = find_target()
            self.links.append((self.name(member), target and self.name(target)))

    def log(self) -> None:
        """Say nothing: the reading of the documents does."""
