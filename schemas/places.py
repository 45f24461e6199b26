"""Places of files: how a URL differs from a path, and the kinds of URL that an output folder can have."""

from __future__ import annotations

import importlib.util
import os
import re

_NAME_BYTES = 255
"""The longest name of a file on every file system."""

OUTPUT_PACKAGES = {"s3": "s3fs", "gs": "gcsfs"}
"""The package that an output folder needs, by the scheme of its URL; the extra that installs it is named as the scheme.

`transforms.storage.urls.OBJECTS` has the class for each scheme.
"""

_PACKAGES = {scheme: (package, scheme) for scheme, package in OUTPUT_PACKAGES.items()}
_PACKAGES |= dict.fromkeys(("http", "https"), ("aiohttp", "web"))
"""The package that URLs of a scheme need, and the extra that installs it."""

_CACHES = re.compile(r"(?:(?:simplecache|filecache|blockcache|cached)(?:://)?::)*")
"""File systems of fsspec that keep a copy of what they read."""

_LOCAL = ("file", "local")
_SAME = {"s3a": "s3", "gcs": "gs"}
"""Other schemes that fsspec knows for what an output folder can be on."""


def is_remote(place: str) -> bool:
    """Tell whether a place is a URL, as fsspec takes it, and not a path on a local or mounted file system.

    Example:
        >>> is_remote("s3://bucket/run"), is_remote("out/run")
        (True, False)
    """
    return "://" in place


def plain_place(place: str) -> str:
    """Return the one spelling of a place: a path, or a URL without caches, with the scheme that outputs have.

    A run reads a source once, and the paths of a cache would have its password.

    Example:
        >>> plain_place("file:///data/src"), plain_place("simplecache::s3a://bucket/run")
        ('/data/src', 's3://bucket/run')
        >>> plain_place("zip://a::simplecache::https://host/a.zip")
        'zip://a::simplecache::https://host/a.zip'
    """
    place = _CACHES.sub("", place, count=1)
    scheme, mark, path = place.partition("://")
    if not mark or scheme in _LOCAL:
        return path if mark else place
    return f"{_SAME.get(scheme, scheme)}{mark}{path}"


def is_plain_path(path: str) -> bool:
    """Return whether a path relative to a folder names a file in it, in the one way that commands write it.

    Example:
        >>> is_plain_path("tokens/part-1.parquet"), is_plain_path("tokens/./part-1.parquet")
        (True, False)
    """
    parts = path.split("/")
    return "\0" not in path and not any(
        part in ("", ".", "..") or len(os.fsencode(part)) > _NAME_BYTES for part in parts
    )


def missing_package(url: str) -> str | None:
    """Return why a URL cannot be opened here and what to install, None if its package is installed.

    Example:
        >>> missing_package("memory://folder"), missing_package("nosuch://folder")
        (None, 'there is no kind of URL nosuch://')
    """
    scheme = url.partition("://")[0].rpartition("::")[2]
    if scheme in _PACKAGES:
        package, extra = _PACKAGES[scheme]
        found = importlib.util.find_spec(package) is not None
        install = f"pip install 'cppmill[{extra}]'"
        return None if found else f"{scheme}:// needs {package}, which is not installed: {install}"
    from fsspec.registry import get_filesystem_class, known_implementations, registry

    if scheme not in registry and scheme not in known_implementations:
        return f"there is no kind of URL {scheme}://"
    try:
        get_filesystem_class(scheme)
    except ImportError as error:
        return f"{scheme}:// needs a package that is not installed: {error}"
    return None
