"""What tells the URL of a place from a path."""

from __future__ import annotations


def is_remote(place: str) -> bool:
    """Tell whether a place is a URL, as fsspec takes it, and not a path on a local or mounted file system.

    Example:
        >>> is_remote("s3://bucket/run"), is_remote("out/run")
        (True, False)
    """
    return "://" in place
