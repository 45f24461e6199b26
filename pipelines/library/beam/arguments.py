"""Checks of the arguments of transforms, while the pipeline is made: a worker says it late, and without a name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.library.options import PlaceText
from schemas.errors import ConfigError

MAX_THREADS = 1024
MAX_NUMBER = (1 << 63) - 1


def check_place(name: str, value: object) -> str:
    """Return a folder, file or URL as text.

    Raises:
        ConfigError: If it is neither text nor a path, or no place has this name.
    """
    place = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(place, str) or not place or "\0" in place:
        raise ConfigError(f"{name} = {value!r}: not allowed; it takes a path or a URL")
    return place


def check_places(name: str, values: PlaceText | Iterable[PlaceText]) -> list[str]:
    """Return one place or several as a list of texts.

    Raises:
        ConfigError: If there is none, or one of them is none.
    """
    several: Any = (values,) if isinstance(values, str | bytes | os.PathLike) else values
    if isinstance(several, Mapping) or not isinstance(several, Iterable):
        raise ConfigError(f"{name} = {values!r}: not allowed; it takes a path or a URL, or several of them")
    if not (places := [check_place(name, value) for value in several]):
        raise ConfigError(f"{name}: it names no path or URL")
    return places


def check_number(name: str, value: object, *, least: int = 1, most: int = MAX_NUMBER) -> int:
    """Return a whole number.

    Raises:
        ConfigError: If it is something else, or out of range.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(f"{name} = {value!r}: not allowed; it takes a whole number from {least} to {most:,}")
    return value


def check_threads(value: object) -> int:
    """Return a number of threads.

    Raises:
        ConfigError: If it is none.
    """
    return check_number("threads", value, most=MAX_THREADS)


def check_table(name: str, values: object) -> Mapping[str, Any]:
    """Return options by their keys.

    Raises:
        ConfigError: If they are no mapping of texts.
    """
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{name} = {values!r}: not allowed; it takes options by their keys, as a dict")
    return values
