"""Passwords in URLs (`sftp://user:password@host/folder`), and queries that sign them, which must not get anywhere.

They are taken out of the configuration before anything is written, and kept in the environment of this process, which
the worker processes that it starts inherit; whoever opens the URL puts them back.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, quote

from schemas.digests import parse_json

VARIABLE = "CPPMILL_URL_PASSWORDS"
"""The variable: user and password by the URL without them, up to its host."""

QUERIES = "CPPMILL_URL_QUERIES"
"""The variable of the queries: by the URL without one."""

NO_PASSWORD = "a password does not belong here; give it as the store's credentials"
"""What is said of a password in the URL of an object store."""

_SIGNED_BY = {
    "x-amz-signature": "x-amz-.*",
    "x-goog-signature": "x-goog-.*",
    "x-oss-signature": "x-oss-.*",
    "signature": "signature|expires|policy|key-pair-id|awsaccesskeyid|googleaccessid|ossaccesskeyid|security-token",
    "sig": "sig|s[vprst]|ss|srt|se|spr|sip|sk[a-z]+",
}
"""The parameter that signs a URL (AWS, Google, Alibaba, CloudFront, Azure), and the pattern of what belongs to it."""

_SECRETS = re.compile(
    "token|secret|passw|pwd|credential|api[-_]?key|access[-_]?key|private[-_]?key|auth|jwt|^key$|^code$"
)
"""Names of parameters that give access by themselves, in lower case."""

_ALONE = re.compile(
    r"(?<![a-z0-9+.-])(?P<scheme>https?|ftps?|webdavs?|davs?|gits?):/{1,2}(?P<user>[^/?#@:\s'\"<>|]+)@(?=[^/?#@\s])",
    re.I,
)
"""A user without a password, where that is how tokens are given: `https://TOKEN@host/a`."""

_HIDDEN = re.compile(r"(?<=\?\*\*\*)#[^\s'\"<>|]*[^\s'\"<>|:]")
"""A fragment behind a query that was left out: it is of the same secret, as the key of a shared file is."""
_SCHEME = "[a-z][a-z0-9+.-]{0,63}"
"""Schemes are short, so that a long name without one is looked at once, not from each of its letters."""

_QUERY = re.compile(rf"(?P<plain>{_SCHEME}:/{{1,2}}[^\s?#'\"<>|]+)\?(?P<query>[^\s#'\"<>|]*)", re.I)
_FRAGMENT = re.compile(rf"(?P<plain>{_SCHEME}:/{{1,2}}[^\s#'\"<>|]+)#(?P<query>[^\s'\"<>|]*=[^\s'\"<>|]*)", re.I)
_USER = re.compile(
    rf"(?P<scheme>{_SCHEME}):(?P<slashes>/{{1,2}})(?P<user>[^/?#@:\s\[]*):"
    r"(?P<password>[^/?#\s]*|(?!\d*[/?#:])[^\s'\"<>|@]*)@(?P<host>[^/?#@\s]*)",
    re.I,
)
"""A password that should be percent-encoded, with a slash say, is one too: what stands there is no port."""

_NEARLY = re.compile(
    rf"(?P<plain>(?<![a-z0-9+.-])(?!file:|local:|github:){_SCHEME}:/{{1,9}}[^\s/?#:'\"<>|\[]{{0,999}}:)"
    r"(?!\d*(?:[/?#:\s]|$))[^\s'\"<>|@]{0,999}@",
    re.I,
)
"""The same where the URL is none that can be opened: with slashes too many, or a container before the user."""

_SPACED = re.compile(r"(?<=:/)/?[^/?#@:]{0,999}:[^/?#@]{0,999}@")
"""User and password of a URL that stands alone, white space among them."""

_SPACED_ALONE = re.compile(r"(?:^|(?<=::))(?:https?|ftps?|webdavs?|davs?|gits?):/{1,2}[^/?#@:]{0,999}@", re.I)
_SPACED_QUERY = re.compile(r"(?:^|(?<=::))(?P<plain>https?:/{1,2}[^?#]*)(?P<query>[?#].*)", re.I | re.S)
_BEGINS_WITH_A_URL = re.compile(rf"(?:--[a-z-]+=)?{_SCHEME}:/", re.I)

_PLAIN = re.compile(rf"{_SCHEME}://(?:\[[^]/?#\s]*\]|[^/?#:\s]*)(?::\d+)?", re.I)

_LINK = re.compile(r"::(?![0-9a-f:.%]*\])", re.I)
"""What joins the URLs of a chain; in brackets it is of an address of IPv6."""


def has_password(url: str) -> bool:
    """Return whether a URL has a password, or a token in the place of the user.

    Example:
        >>> [has_password(f"sftp://{rest}") for rest in ("me:secret@host/a", "me:a/b@host", "host:22/a@b")]
        [True, True, False]
        >>> [has_password(url) for url in ("https://token@host/a", "sftp://me@host/a", "github://org:repo@main/src")]
        [True, False, False]
    """
    found = _USER.search(url)
    return (found is not None and found["scheme"].lower() != "github") or _ALONE.search(url) is not None


def redacted(text: str) -> str:
    """Return a text without the passwords of its URLs, and without the queries that sign them.

    Example:
        >>> redacted("no http://me:secret@host/a, no"), redacted("https://host/a.zip?Expires=9&Signature=secret")
        ('no http://me:***@host/a, no', 'https://host/a.zip?***')
        >>> redacted("https://secret@host/a"), redacted("hf://datasets/a/b?token=secret")
        ('https://***@host/a', 'hf://datasets/a/b?***')
        >>> redacted("https://host/a#access_token=secret"), redacted("https://host/a#part=2")
        ('https://host/a#***', 'https://host/a#part=2')
        >>> redacted("https://host/a?token=secret#secret")
        'https://host/a?***#***'
        >>> redacted("http:///me:secret@host/a"), redacted("abfs://box@me:secret@host/a"), redacted("http://[::1]:8/a@b")
        ('http:///me:***@host/a', 'abfs://box@me:***@host/a', 'http://[::1]:8/a@b')
    """
    if ":/" not in text:
        return text
    text = _QUERY.sub(lambda found: f"{found['plain']}?***" if _is_secret(found) else found[0], text)
    text = _HIDDEN.sub("#***", text)
    text = _FRAGMENT.sub(lambda found: f"{found['plain']}#***" if _is_secret(found) else found[0], text)
    text = _USER.sub(lambda found: found[0] if not has_password(found[0]) else _plain(found, "***"), text)
    text = _NEARLY.sub(lambda found: f"{found['plain']}***@", text)
    return _ALONE.sub(lambda found: f"{found[0][: found.start('user') - found.start()]}***@", text)


def hide_secrets(url: str) -> str:
    """Return a URL without user, password and query; what opens it puts them back."""
    return "::".join(_hide_query(hide_passwords(part)) for part in split_chain(encode_spaces(url)))


def find_conflict(urls: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two URLs that cannot be opened beside each other: two users of a host, or two queries of a URL.

    Example:
        >>> find_conflict(["https://host/a?rev=1", "https://host/b?rev=2"])
        >>> find_conflict(["https://host/a?rev=1", "https://host/b", "https://host/a?rev=2"])
        ('https://host/a?rev=1', 'https://host/a?rev=2')
        >>> find_conflict(["http://me:1@host/a", "http://host/b"])
        ('http://me:1@host/a', 'http://host/b')
    """
    known: dict[str, tuple[str, str]] = {}
    for url in urls:
        for part in split_chain(encode_spaces(url)) if "://" in url else ():
            is_web = part.lower().startswith(("http://", "https://"))
            plain, _, query = part.partition("#")[0].partition("?") if is_web else (part, "", "")
            found = (_USER.search(part) or _ALONE.search(part)) if has_password(part) else None
            user = "" if found is None else found[0]
            host = _PLAIN.match(_without_user(plain))
            for key, value in ((f"{_without_user(plain)}?", query), (host[0] if host else "", user)):
                other, first = known.setdefault(key, (value, url))
                if key and other != value:
                    return first, url
    return None


def encode_spaces(url: str) -> str:
    """Return a URL with the white space of its password and query encoded, so that a text shows where they end.

    Example:
        >>> encode_spaces("sftp://me:a b@host/c d"), encode_spaces("https://a b@host/c d")
        ('sftp://me:a%20b@host/c d', 'https://a%20b@host/c d')
        >>> encode_spaces("https://host/c d?token=a b")
        'https://host/c d?token=a%20b'
    """
    url = _SPACED_QUERY.sub(lambda found: found["plain"] + _without_spaces(found["query"]), url)
    return _SPACED.sub(_encode_found, _SPACED_ALONE.sub(_encode_found, url))


def encode_spaces_of_arguments(words: list[str]) -> list[str]:
    """Return the arguments of a command with the white space of passwords encoded in those that are URLs.

    Example:
        >>> encode_spaces_of_arguments(["verify", "sftp://me:a b@host", "--on=http://me:a b@host", "see c://me:a b@d"])
        ['verify', 'sftp://me:a%20b@host', '--on=http://me:a%20b@host', 'see c://me:a b@d']
    """
    return [_encode_argument(word) if _BEGINS_WITH_A_URL.match(word) else word for word in words]


def _encode_argument(word: str) -> str:
    option, equals, url = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{option}{equals}{encode_spaces(url)}"


def _encode_found(found: re.Match[str]) -> str:
    return _without_spaces(found[0])


def _without_spaces(text: str) -> str:
    return re.sub(r"\s", lambda space: quote(space[0]), text)


def split_chain(url: str) -> list[str]:
    """Return the URLs of a chain, as fsspec writes that of a file in an archive.

    Example:
        >>> split_chain("zip://a.cpp::https://[::1]/a.zip")
        ['zip://a.cpp', 'https://[::1]/a.zip']
    """
    return _LINK.split(url)


def _hide_query(url: str) -> str:
    """Return the URL of a web server without its query, which is kept for `with_query`, and its fragment.

    A fragment is for whoever shows the page, and never sent to a server.
    """
    if url.lower().startswith(("http://", "https://")):
        url = url.partition("#")[0]
    found = _QUERY.fullmatch(url)
    if found is None or not url.lower().startswith(("http://", "https://")):
        return url
    plain = _without_user(found["plain"])
    os.environ[QUERIES] = json.dumps({**_queries(), plain: found["query"]})
    return str(found["plain"])


def with_query(url: str) -> str:
    """Return the URL of a file with the query that was hidden of it."""
    query = _queries().get(url)
    return url if query is None else f"{url}?{query}"


def url_identity(url: str) -> str:
    """Return what was hidden of a URL, or of a chain, that says which file it is, as a digest; empty if nothing does.

    That is the user who has a password, and the query without its signature: each user and each version may get another
    file. A token in the place of a user is like a signature.

    Example:
        >>> url_identity(hide_secrets("https://host/a.zip?X-Amz-Date=1&X-Amz-Signature=2"))
        ''
    """
    return "".join(map(_identity, split_chain(url)))


def _identity(url: str) -> str:
    parameters = parse_qsl(_queries().get(url, ""), keep_blank_values=True)
    names = {name.lower() for name, _ in parameters}
    signing = [re.compile(pattern) for name, pattern in _SIGNED_BY.items() if name in names]
    others = [item for item in parameters if not any(pattern.fullmatch(item[0].lower()) for pattern in signing)]
    user, password = user_of(url) or ("", "")
    facts: list[object] = [*sorted(others), *([[user]] if password else [])]
    return sha256(json.dumps(facts).encode()).hexdigest() if facts else ""


def _is_secret(found: re.Match[str]) -> bool:
    """Return whether a query signs its URL, or was hidden of it."""
    names = {name.lower() for name, _ in parse_qsl(found["query"], keep_blank_values=True)}
    is_known = not names.isdisjoint(_SIGNED_BY) or _without_user(found["plain"]) in _queries()
    return is_known or any(_SECRETS.search(name) for name in names)


def _without_user(url: str) -> str:
    plain = _USER.sub(lambda user: f"{user['scheme']}://{user['host']}", url)
    return _ALONE.sub(lambda user: f"{user['scheme']}://", plain)


def _queries() -> dict[str, str]:
    return _kept(QUERIES)


def hide_passwords(url: str) -> str:
    """Return a URL without user and password, and keep them for `user_of`."""
    found = _USER.search(url)
    if found is None and (alone := _ALONE.search(url)):
        rest = url[alone.end() :]
        plain = f"{alone['scheme']}://{re.split('[/?#]', rest, maxsplit=1)[0]}"
        os.environ[VARIABLE] = json.dumps({**_known(), plain: [alone["user"], ""]})
        return f"{url[: alone.start()]}{alone['scheme']}://{rest}"
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
    """Return a URL with the user and password, and the queries, that were hidden of it."""
    known, url = _known(), "::".join(map(with_query, split_chain(url)))
    return _PLAIN.sub(lambda found: found[0] if found[0] not in known else _whole(found[0], *known[found[0]]), url)


def _plain(found: re.Match[str], password: str) -> str:
    return f"{found['scheme']}:{found['slashes']}{found['user']}:{password}@{found['host']}"


def _whole(plain: str, user: str, password: str) -> str:
    scheme, _, host = plain.partition("://")
    return f"{scheme}://{user}:{password}@{host}" if password else f"{scheme}://{user}@{host}"


def _known() -> dict[str, list[str]]:
    return _kept(VARIABLE)


def _kept(variable: str) -> dict[str, Any]:
    """Return what is kept in a variable, nothing if it was not this module that wrote it."""
    try:
        found = parse_json(os.environ.get(variable, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
