"""Checks of the places that programs name: a path or a URL, or several."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.library.options import PlaceText
from schemas.errors import ConfigError
from schemas.passwords import encode_spaces


def check_place(name: str, value: object) -> str:
    """Return a folder, file or URL as text.

    Raises:
        ConfigError: If it is neither text nor a path, or no place has this name.
    """
    place = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(place, str) or not place or "\0" in place:
        raise ConfigError(f"{name} = {value!r}: not allowed; it takes a path or a URL")
    return place


def place_text(place: PlaceText) -> str:
    """Return a folder or URL as text, the white space of a password encoded: no message shows where one would end."""
    return encode_spaces(os.fspath(place))


def check_places(name: str, values: PlaceText | Iterable[PlaceText]) -> list[str]:
    """Return one place or several as a list of texts.

    Raises:
        ConfigError: If one of them is none.
    """
    several: Any = (values,) if isinstance(values, str | bytes | os.PathLike) else values
    if isinstance(several, Mapping) or not isinstance(several, Iterable):
        raise ConfigError(f"{name} = {values!r}: not allowed; it takes a path or a URL, or several of them")
    return [check_place(name, value) for value in several]
