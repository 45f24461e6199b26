"""Places of files: how a URL differs from a path, and the kinds of URL that an output folder can have."""

from __future__ import annotations

OUTPUT_PACKAGES = {"s3": "s3fs"}
"""The package that an output folder needs, by the scheme of its URL; the extra that installs it is named as the scheme.

`transforms.storage.objects.OBJECTS` has the class for each scheme.
"""


def is_remote(place: str) -> bool:
    """Tell whether a place is a URL, as fsspec takes it, and not a path on a local or mounted file system.

    Example:
        >>> is_remote("s3://bucket/run"), is_remote("out/run")
        (True, False)
    """
    return "://" in place
