"""Globs over folders, matched a path component at a time: `*`, `?`, `[...]`, and `**` for any number of folders."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass, field

_WILDCARDS = frozenset("*?[")


def is_glob(source: str) -> bool:
    """Tell whether a source has a wildcard."""
    return not _WILDCARDS.isdisjoint(source)


def split_glob(source: str) -> tuple[str, str]:
    """Return the folder before the first wildcard, and the pattern below it.

    Example:
        >>> split_glob("/data/pro*/src/*.h")
        ('/data/', 'pro*/src/*.h')
    """
    first = min(place for place in map(source.find, _WILDCARDS) if place >= 0)
    border = source.rfind("/", 0, first) + 1
    return source[:border], source[border:]


@dataclass(frozen=True)
class Glob:
    """A pattern that paths are followed along; a state is the set of places in the pattern that a path may stand at.

    Attributes:
        parts: The pattern's components.
        literal: Take wildcards for the characters that they are.
    """

    parts: tuple[str, ...]
    literal: bool = False
    _patterns: tuple[re.Pattern[str] | None, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the components."""
        compiled = tuple(None if part == "**" and not self.literal else self._compile(part) for part in self.parts)
        object.__setattr__(self, "_patterns", compiled)

    def _compile(self, part: str) -> re.Pattern[str]:
        return re.compile(re.escape(part) if self.literal else fnmatch.translate(part), re.DOTALL)

    def start(self) -> frozenset[int]:
        """Return the state before the first component."""
        return self._closure({0})

    def advance(self, state: frozenset[int], name: str) -> frozenset[int]:
        """Return the state after a component; empty if no path that goes on from here can match."""
        after = set()
        for place in state:
            if place < len(self._patterns):
                pattern = self._patterns[place]
                if pattern is None:
                    after.add(place)
                elif pattern.fullmatch(name):
                    after.add(place + 1)
        return self._closure(after)

    def accepts(self, state: frozenset[int]) -> bool:
        """Tell whether a path in this state matches."""
        return len(self.parts) in state

    def _closure(self, state: set[int]) -> frozenset[int]:
        """Add the places that `**` reaches by standing for no folder."""
        for place, pattern in enumerate(self._patterns):
            if pattern is None and place in state:
                state.add(place + 1)
        return frozenset(state)
