"""Filters on the content of documents, as distributions declare them: the entry points of the group `cppmill.filters`.

The filters that come with cppmill are declared like those of others. A filter is chosen by its name, which is its
reason in the ledger too. What a filter finds must depend on its options and on each document alone, not on the other
rows of a batch, because batches end wherever a unit does; `transforms.filters.properties` checks that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from schemas.errors import ConfigError, FilterError

FILTERS_GROUP = "cppmill.filters"
"""The group of the entry points."""

Find = Callable[[pa.RecordBatch], "pa.Array[Any] | Iterable[str | None]"]
"""A filter at work: from a batch of `schemas.tables.FILTER_INPUT` to a text for each row, null for what is kept."""


class NoOptions(BaseModel):
    """The options of a filter that has none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What an entry point of the group `cppmill.filters` names.

    Attributes:
        make: Called once per worker process with the options; returns what finds the documents to drop.
        version: To be changed when the filter comes to another verdict on the same document; only then are the sources
            read again. Empty for filters that change with cppmill alone.
        options: The model of the options; unknown keys are refused.
        packages: Distributions whose installed version decides too.

    Example:
        >>> from schemas.filters import Filter, each_document
        >>> tiny = Filter(version="1", make=lambda _: each_document(lambda text: "tiny" if len(text) < 9 else None))
        >>> list(tiny.make(tiny.options())(pa.record_batch({"content": [b"int a;", b"int main() {}"]})))
        ['tiny', None]
    """

    make: Callable[[Any], Find]
    version: str = ""
    options: type[BaseModel] = NoOptions
    packages: tuple[str, ...] = ()

    def read_options(self, name: str, given: Mapping[str, Any]) -> BaseModel:
        """Return the options of a table, checked.

        Raises:
            ConfigError: Naming the filter, the key and what is wrong.
        """
        fields = self.options.model_fields
        for key in given:
            if key not in fields:
                known = ", ".join(fields) or "none"
                raise ConfigError(f"filter {name!r} has no option {key!r} (known: {known})")
        try:
            return self.options.model_validate(dict(given))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"]))
            raise ConfigError(f"filter {name!r}: option {key!r}: {first['msg']}") from error

    def versions(self) -> dict[str, str]:
        """Return the installed versions of the packages that decide."""
        return {package: version(package) for package in self.packages}


def each_document(find: Callable[[bytes], str | None]) -> Find:
    """Return a filter of batches that looks at the content of one document at a time."""

    def find_each(documents: pa.RecordBatch) -> Iterable[str | None]:
        contents: list[Any] = documents.column("content").to_pylist()
        return map(find, contents)

    return find_each


def find_filter(name: str) -> Filter:
    """Return the filter of a name.

    Raises:
        ConfigError: If it is not installed here, if several distributions have one, or if it is not usable.
    """
    found = _installed().get(name, ())
    if not found:
        others = ", ".join(sorted(_installed()))
        raise ConfigError(
            f"filter {name!r} is not installed for {_here()}: install the distribution that has it, on workers too "
            f"(entry points of {FILTERS_GROUP}: {others or 'none; install cppmill again'})"
        )
    if len(found) > 1:
        homes = ", ".join(sorted(map(_home, found)))
        raise ConfigError(f"filter {name!r} comes with several distributions: {homes}; uninstall all but one")
    return _load(found[0])


def describe_filter(name: str) -> str:
    """Return how messages show a filter: with its version and its distribution if it is installed."""
    points = _installed().get(name)
    if not points:
        return f"filter {name!r}"
    return " ".join(filter(None, (f"filter {name!r}", find_filter(name).version, f"({_home(points[0])})")))


@cache
def _installed() -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points by name; a distribution that is found twice counts once."""
    found = dict[str, dict[str, EntryPoint]]()
    for point in entry_points(group=FILTERS_GROUP):
        found.setdefault(point.name, {})[f"{_home(point)} {point.value}"] = point
    return {name: tuple(points.values()) for name, points in found.items()}


def forget_installed() -> None:
    """Look at the installed distributions again when a filter is needed next."""
    _installed.cache_clear()
    _load.cache_clear()


@cache
def _load(point: EntryPoint) -> Filter:
    try:
        loaded = point.load()
    except Exception as error:
        raise FilterError(
            f"filter {point.name!r} ({_home(point)}): {point.value} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(loaded, Filter):
        raise FilterError(f"filter {point.name!r} ({_home(point)}): {point.value} is no cppmill.Filter")
    return loaded


def _home(point: EntryPoint) -> str:
    """Return the distribution of an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _here() -> str:
    """Return this Python, which on a worker is another one than where the command was given."""
    import platform
    import sys

    return f"{sys.executable} on {platform.node()}"
