"""Passwords in URLs (`sftp://user:password@host/folder`), which must not get into any file or message.

They are taken out of the configuration before anything is written, and kept in the environment of this process, which
the worker processes that it starts inherit; whoever opens the URL puts them back.
"""

from __future__ import annotations

import json
import os
import re

VARIABLE = "CPPMILL_URL_PASSWORDS"
"""The variable: user and password by the URL without them, up to its host."""

_USER = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<user>[^/?#@:\s]*):(?P<password>[^/?#\s]*)@(?P<host>[^/?#@\s]*)", re.I
)
_PLAIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#:\s]*(?::\d+)?", re.I)


def has_password(url: str) -> bool:
    """Return whether a URL has a password.

    Example:
        >>> has_password("sftp://me:secret@host/a"), has_password("github://org:repo@main/src")
        (True, False)
    """
    found = _USER.search(url)
    return found is not None and found["scheme"].lower() != "github"


def redacted(text: str) -> str:
    """Return a text without the passwords of its URLs.

    Example:
        >>> redacted("no http://me:secret@host/a, no")
        'no http://me:***@host/a, no'
    """
    if "://" not in text:
        return text
    return _USER.sub(lambda found: found[0] if not has_password(found[0]) else _plain(found, "***"), text)


def hide_passwords(url: str) -> str:
    """Return a URL without user and password, and keep them for `user_of`."""
    found = _USER.search(url)
    if found is None or not has_password(url):
        return url
    plain = f"{found['scheme']}://{found['host']}"
    os.environ[VARIABLE] = json.dumps({**_known(), plain: [found["user"], found["password"]]})
    return url[: found.start()] + plain + url[found.end() :]


def user_of(url: str) -> tuple[str, str] | None:
    """Return user and password that were hidden of a URL, None if it had none."""
    known = _known()
    found = next((known[plain] for plain in _PLAIN.findall(url) if plain in known), None)
    return None if found is None else (found[0], found[1])


def with_password(url: str) -> str:
    """Return a URL with the user and password that were hidden of it."""
    known = _known()
    return _PLAIN.sub(lambda found: found[0] if found[0] not in known else _whole(found[0], *known[found[0]]), url)


def _plain(found: re.Match[str], password: str) -> str:
    return f"{found['scheme']}://{found['user']}:{password}@{found['host']}"


def _whole(plain: str, user: str, password: str) -> str:
    scheme, _, host = plain.partition("://")
    return f"{scheme}://{user}:{password}@{host}"


def _known() -> dict[str, list[str]]:
    return dict(json.loads(os.environ.get(VARIABLE, "{}")))
