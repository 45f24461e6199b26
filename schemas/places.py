"""Places of files: how a URL differs from a path, and the kinds of URL that an output folder can have."""

from __future__ import annotations

import importlib.util
import os

_NAME_BYTES = 255
"""The longest name of a file on every file system."""

OUTPUT_PACKAGES = {"s3": "s3fs", "gs": "gcsfs"}
"""The package that an output folder needs, by the scheme of its URL; the extra that installs it is named as the scheme.

`transforms.storage.urls.OBJECTS` has the class for each scheme.
"""

_PACKAGES = {scheme: (package, scheme) for scheme, package in OUTPUT_PACKAGES.items()}
_PACKAGES |= dict.fromkeys(("http", "https"), ("aiohttp", "web"))
"""The package that URLs of a scheme need, and the extra that installs it."""


def is_remote(place: str) -> bool:
    """Tell whether a place is a URL, as fsspec takes it, and not a path on a local or mounted file system.

    Example:
        >>> is_remote("s3://bucket/run"), is_remote("out/run")
        (True, False)
    """
    return "://" in place


def without_local_scheme(place: str) -> str:
    """Return the path of a URL of this machine's file system, and anything else as it is.

    Example:
        >>> without_local_scheme("file:///data/src"), without_local_scheme("s3://bucket/run")
        ('/data/src', 's3://bucket/run')
    """
    return place.removeprefix("file://").removeprefix("local://")


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
