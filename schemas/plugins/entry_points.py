"""Filters and readers that distributions declare: entry points of the groups `cppmill.filters` and `cppmill.readers`.

The filters that come with cppmill are declared like those of others. A filter is chosen by its name, which is its
reason in the ledger too. What a filter finds must depend on its options and on each document alone, not on the other
rows of a batch, because batches end wherever a unit does; `transforms.filters.properties` checks that.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from itertools import chain
from math import isfinite
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError
from rfc8785 import CanonicalizationError

from schemas.digests import canonical_json
from schemas.errors import ConfigError, CppmillError, PluginError, ResourceError
from schemas.passwords import redacted
from schemas.printing import one_line, printing_aside
from schemas.resources import explain_refusal

FILTERS_GROUP, READERS_GROUP = "cppmill.filters", "cppmill.readers"
"""The groups of the entry points."""

Find = Callable[[pa.RecordBatch], "pa.Array[Any] | Iterable[str | None]"]
"""A filter at work: from a batch of `schemas.tables.FILTER_INPUT` to a text for each row, null for what is kept."""


Plugin = TypeVar("Plugin", bound="Filter | Reader")

_PARTS = (Mapping, list, tuple, set, frozenset)


@contextmanager
def plugin_code(what: Callable[[], str], *, known: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Name a plug-in in whatever its code raises, and end a process that it forked and does not end.

    What it raises may be no Exception: one that leaves the program would end a run as if it were finished. What it
    prints goes to the error stream.

    Args:
        what: Returns what failed, for the message.
        known: What passes as it is, besides Ctrl-C and errors of cppmill.

    Raises:
        PluginError: In place of all else.
        ResourceError: If it got no more memory.
    """
    process = os.getpid()
    passed: tuple[type[BaseException], ...] = (KeyboardInterrupt, CppmillError, *known)
    try:
        with printing_aside():
            yield
    except passed:
        raise
    except MemoryError as error:
        raise ResourceError(explain_refusal(error, where=what())) from error
    except BaseException as error:
        raise PluginError(f"{what()}: {describe_raised(error)}") from error
    finally:
        if os.getpid() != process:
            os._exit(1)


def describe_raised(error: BaseException) -> str:
    """Return what a plug-in raised, in a line."""
    return f"{type(error).__name__}: {one_line(describe_text(error))}"


def describe_text(error: BaseException) -> str:
    """Return the text of what a plug-in raised; code of the plug-in gives it, which may raise too."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as other:
        return f"its text raises {type(other).__name__}"


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
        >>> from schemas.plugins.entry_points import Filter, each_document
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
            PluginError: If the model of the options fails.
        """
        with plugin_code(lambda: f"filter {name!r}: its options cannot be read"):
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

    def record_options(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a table with the defaults of the others, as a receipt has them.

        Raises:
            ConfigError: As `read_options` does, and for a value that no receipt can or may have.
            PluginError: If the model of the options fails.
        """
        found = self.read_options(name, given)
        with plugin_code(lambda: f"filter {name!r}: its options cannot be written"):
            values, as_python = found.model_dump(mode="json"), found.model_dump()
        for key, value in as_python.items():
            if not _is_recorded(value, values.get(key)):
                reason = "not allowed; a receipt has no number beyond 2^53, no nan and no inf"
                raise ConfigError(f"filter {name!r}: option {key!r}: {reason}")
            if redacted(text := json.dumps(values.get(key))) != text:
                reason = "a password does not belong here, as receipts are published; the filter may read it elsewhere"
                raise ConfigError(f"filter {name!r}: option {key!r}: {reason}")
        return values

    def versions(self) -> dict[str, str]:
        """Return the installed versions of the packages that decide.

        Raises:
            PluginError: If one is not installed.
        """
        try:
            return {package: version(package) for package in self.packages}
        except PackageNotFoundError as error:
            raise PluginError(f"a filter needs {error.name}, which is not installed") from error


def _is_recorded(value: object, as_json: object) -> bool:
    """Return whether a value is what its JSON says: a number beyond 2^53 is none, and nan and inf are null there."""
    try:
        canonical_json(as_json)
    except CanonicalizationError:
        return False
    level = [value]
    while level:
        if not all(isfinite(entry) for entry in level if isinstance(entry, float)):
            return False
        parts = [entry for entry in level if isinstance(entry, _PARTS)]
        level = [*chain.from_iterable(part.values() if isinstance(part, Mapping) else part for part in parts)]
    return True


def each_document(find: Callable[[bytes], str | None]) -> Find:
    """Return a filter of batches that looks at the content of one document at a time."""

    def find_each(documents: pa.RecordBatch) -> Iterable[str | None]:
        contents: list[Any] = documents.column("content").to_pylist()
        return map(find, contents)

    return find_each


@dataclass(frozen=True, kw_only=True)
class Reader:
    """What an entry point of the group `cppmill.readers` names: it reads files with the extension of that name.

    Attributes:
        read: From an open file to (name, bytes) of each document in it, in order. It raises ValueError for a damaged
            file; what it gave before is kept.
        version: To be changed when the reader gives other documents for the same file; only then are these files read
            again.
    """

    read: Callable[[BinaryIO], Iterable[tuple[str, bytes]]]
    version: str


def find_filter(name: str) -> Filter:
    """Return the filter of a name.

    Raises:
        ConfigError: If it is not installed here, or if several distributions have one.
        PluginError: If it cannot be imported.
    """
    return _find(FILTERS_GROUP, name, Filter)


def find_reader(extension: str) -> Reader:
    """Return the reader of files with an extension; else as `find_filter`."""
    return _find(READERS_GROUP, extension, Reader)


def describe_filter(name: str) -> str:
    """Return how messages show a filter: with its version and its distribution if it is installed."""
    return _describe(FILTERS_GROUP, str(name), find_filter)


def describe_reader(extension: str) -> str:
    """Return how messages show a reader."""
    return _describe(READERS_GROUP, extension, find_reader)


def forget_installed() -> None:
    """Look at the installed distributions again when a filter or reader is needed next."""
    _installed.cache_clear()
    _load.cache_clear()


def _find(group: str, name: str, kind: type[Plugin]) -> Plugin:
    installed = _installed(group)
    points, what = installed.get(name, ()), _what(group, name)
    if not points:
        others = ", ".join(sorted(installed)) or "none; install cppmill again"
        raise ConfigError(
            f"{what} is not installed for {sys.executable} on {platform.node()}: install the distribution that has it, "
            f"on workers too (entry points of {group}: {others})"
        )
    if len(points) > 1:
        homes = ", ".join(sorted(map(_home, points)))
        raise ConfigError(f"{what} comes with several distributions: {homes}; uninstall all but one")
    loaded = _load(points[0])
    if not isinstance(loaded, kind):
        raise PluginError(f"{what} ({_home(points[0])}): {points[0].value} is no cppmill.{kind.__name__}")
    if not _is_text(loaded.version):
        raise PluginError(f"{what} ({_home(points[0])}): its version is {loaded.version!r}, and no line of text")
    return loaded


def _is_text(value: object) -> bool:
    """Return whether a value is a line of text, which a receipt can have."""
    return isinstance(value, str) and value.isprintable()


def _describe(group: str, name: str, find: Callable[[str], Filter | Reader]) -> str:
    points, what = _installed(group).get(name), _what(group, name)
    return " ".join(filter(None, (what, find(name).version, f"({_home(points[0])})"))) if points else what


def _what(group: str, name: str) -> str:
    return f"{group.removeprefix('cppmill.').removesuffix('s')} {name!r}"


@cache
def _installed(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by name; a distribution that is found twice counts once."""
    found = dict[str, dict[str, EntryPoint]]()
    for point in entry_points(group=group):
        found.setdefault(point.name, {})[f"{_home(point)} {point.value}"] = point
    return {name: tuple(points.values()) for name, points in found.items()}


@cache
def _load(point: EntryPoint) -> object:
    with plugin_code(lambda: f"{_what(point.group, point.name)} ({_home(point)}): {point.value} cannot be imported"):
        return point.load()


def _home(point: EntryPoint) -> str:
    """Return the distribution of an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
