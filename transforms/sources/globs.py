"""Globs over folders: `*`, `?`, `[...]`, and `**` for any number of folders, as fsspec matches them on any store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_WILDCARDS = frozenset("*?[")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\[[0-9a-f:.%]*\]", re.I)


def is_glob(source: str) -> bool:
    """Return whether a source has a wildcard."""
    return not _WILDCARDS.isdisjoint(source[_path_start(source) :])


def split_glob(source: str) -> tuple[str, str]:
    """Return the folder before the first wildcard, and the pattern below it.

    Example:
        >>> split_glob("/data/pro*/src/*.h")
        ('/data/', 'pro*/src/*.h')
    """
    start = _path_start(source)
    first = min(place for place in (source.find(wildcard, start) for wildcard in _WILDCARDS) if place >= 0)
    border = source.rfind("/", 0, first) + 1
    return source[:border], source[border:]


def _path_start(source: str) -> int:
    """Return where the path of a source begins if its host is an address of IPv6, whose brackets are no wildcards."""
    host = _ADDRESS.match(source)
    return host.end() if host else 0


@dataclass(frozen=True)
class Glob:
    """A pattern for paths below a folder.

    Attributes:
        pattern: The pattern; `glob.escape` makes one of a literal name.
    """

    pattern: str

    def matches(self, path: str) -> bool:
        """Return whether a path matches."""
        return self._folders[-1].match(path) is not None

    def takes(self, path: str) -> bool:
        """Return whether a path, or a folder that it is in, matches: such a folder is taken whole."""
        parts = path.split("/")
        return any(self.matches("/".join(parts[:end])) for end in range(1, len(parts) + 1))

    def may_hold(self, path: str) -> bool:
        """Return whether a path below this one can match."""
        depth = min(path.count("/"), self._fixed)
        return depth < len(self._folders) and self._folders[depth].match(path) is not None

    @cached_property
    def _parts(self) -> list[str]:
        return [part if part == "**" else re.sub(r"\*+", "*", part) for part in self.pattern.split("/")]

    @cached_property
    def _fixed(self) -> int:
        """The depth from which on `**` matches everything."""
        return self._parts.index("**") if "**" in self._parts else len(self._parts)

    @cached_property
    def _folders(self) -> list[re.Pattern[str]]:
        """The pattern up to each of its components."""
        from fsspec.utils import glob_translate  # most sources are no globs, and fsspec loads asyncio

        ends = range(1, len(self._parts) + 1)
        return [re.compile(glob_translate("/".join(self._parts[:end]))) for end in ends]
