"""Requests to web servers: what may work a little later is tried again, as the libraries of object stores do.

What a server says of each file that it sends is noted, because it may send another file than the one that it listed:
files are replaced at any time, and behind one name there may be several servers.
"""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import aiohttp
from fsspec.implementations.http import HTTPFileSystem, ex2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import SimpleNamespace

    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

_ATTEMPTS = 4
_SILENT_ATTEMPTS = 2
"""Attempts where a server takes the connection and sends nothing."""

_CONNECT_SECONDS, _SILENT_SECONDS = 30.0, 60.0
"""How long a server may take to accept a connection, and to send nothing; a whole file may take any time."""

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_LATER = (408, 429, 500, 502, 503, 504)
"""Statuses that say nothing about the file: too slow, too many requests, errors of a server and of those before it."""

_WHOLE = 200
"""The status of a file."""

_PARTIAL = 206
"""The status of a range of a file."""

_ASKED = re.compile(r"bytes=(?P<first>\d{1,19})-(?P<last>\d{1,19})")
_GIVEN = re.compile(r"bytes (?P<first>\d{1,19})-(?P<last>\d{1,19})/(?P<total>\d{1,19}|\*)")
"""A range as a request asks for it and as an answer says it."""

_ELSEWHERE = range(300, 400)
"""Statuses that name another place; what comes with them is no file."""

_CHOSEN = (aiohttp.ClientConnectorDNSError, aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError)
"""Errors that the next attempt would meet too."""


_HTML = ("text/html", "application/xhtml+xml", "")
"""The types of pages that have links; some servers name none."""

_sent: dict[str, list[Mapping[str, str]]] = {}
"""The headers of all answers with a file or a part of one since `forget_sent`, by the URL that was asked."""


async def _note(_: aiohttp.ClientSession, _context: SimpleNamespace, ended: aiohttp.TraceRequestEndParams) -> None:
    response = ended.response
    is_part = response.status == _PARTIAL and "Content-Range" in response.headers
    if ended.method == "GET" and (is_part or response.status == _WHOLE):
        first = response.history[0] if response.history else response
        _sent.setdefault(str(first.url), []).append(response.headers)


NOTING = aiohttp.TraceConfig()
"""Notes what servers say of the files that they send, as an option of a session."""
NOTING.on_request_end.append(_note)


class WebFileSystem(HTTPFileSystem):
    """The file system of web servers, whose pages are read as HTML.

    fsspec looks for links with a regular expression. It misses those without quotes, and takes `&amp;` for a name.
    """

    async def _ls_real(self, url: str, detail: bool = True, **_: object) -> list[Any]:
        """Return what a page has links to below itself, as fsspec describes files and folders, or their URLs."""
        system: Any = self  # fsspec has no annotations
        session = await system.set_session()
        async with session.get(system.encode_url(url), **system.kwargs) as response:
            system._raise_not_found_for_status(response, url)
            kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            text = await response.text(errors="ignore") if kind in _HTML else ""
        found = sorted(set(_links_below(text, url)))
        if not found and url.endswith("/"):
            with suppress(FileNotFoundError):
                found = await self._ls_real(url.rstrip("/"), detail=False)
        described = [{"name": name, "size": None, "type": _type_of(name)} for name in found]
        return described if detail else found


def _type_of(url: str) -> str:
    return "directory" if url.endswith("/") else "file"


class _Links(HTMLParser):
    """The links of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the link of an anchor."""
        self.links += [value.strip() for name, value in attrs if (tag, name) == ("a", "href") and value]

    def handle_data(self, data: str) -> None:
        """Take text, in which a page may name other files by their URLs."""
        self.texts.append(data)

    def parse_html_declaration(self, i: int) -> int:
        """Return where a declaration ends; one that Python does not know is passed over, as browsers do."""
        try:
            return super().parse_html_declaration(i)
        except AssertionError:
            return self.parse_bogus_comment(i)


def _links_below(page: str, url: str) -> Iterator[str]:
    """Yield the URLs below a page's own that it has links to, or names in its text.

    A link may name the other scheme, and has not the user of the URL; what is below it is asked for as the page was.
    """
    parser, end = _Links(), page.rfind(">") + 1
    parser.feed(page[:end])  # it looks through all the rest for the end of each tag that has none
    parser.close()
    parser.handle_data(page[end:])
    folder = f"{url.rstrip('/')}/"
    place = _place(folder)
    for link in (*ex2.findall("".join(parser.texts)), *parser.links):
        if link.startswith("/") and not link.startswith("//") and link != "/":
            found = place.partition("/")[0] + link
        elif link.startswith(("http://", "https://", "//")):
            found = _place(link)
        elif link not in ("..", "../"):
            found = place + link.lstrip("/")
        else:
            continue
        if found.startswith(place):
            yield folder + found.removeprefix(place).lstrip("/")


def _place(url: str) -> str:
    """Return host and path of a URL, without its user."""
    host, slash, path = url.partition("//")[2].partition("/")
    return f"{host.rpartition('@')[2]}{slash}{path}"


def forget_sent(system: Any, path: str) -> None:  # noqa: ANN401 - fsspec has no annotations
    """Forget what was noted of a file."""
    _sent.pop(str(system.encode_url(path)), None)


def is_sent_as_listed(system: Any, path: str, num_bytes: int, version: str) -> bool:  # noqa: ANN401
    """Return whether every answer with a file, or a part of it, since `forget_sent` was of the file that was listed.

    An answer without tag, date and length is believed. So is a compressed one, for which servers make another tag.

    Args:
        system: The file system.
        path: The file.
        num_bytes: The size that was listed; 0 if it was not known.
        version: The tag that was listed, or the date if there was none.
    """
    return all(_is_of(headers, num_bytes, version) for headers in _sent.get(str(system.encode_url(path)), ()))


class LengthCheck:
    """Checks that all answers with a part of a file, from now on, are of one of as many bytes as are read of it.

    Args:
        system: The file system.
        path: The file.
        num_bytes: Its size when it was opened; no more is read.
    """

    def __init__(self, system: Any, path: str, num_bytes: int) -> None:  # noqa: ANN401 - fsspec has no annotations
        """Begin with the next answer."""
        self._url, self._num_bytes = str(system.encode_url(path)), num_bytes
        self._checked = len(_sent.get(self._url, ()))

    def __call__(self) -> None:
        """Check the answers since the last time.

        Raises:
            aiohttp.ClientPayloadError: If the server says another size.
        """
        answers = _sent.get(self._url, [])
        for headers in answers[self._checked :]:
            found = _length(headers)
            if found not in (None, self._num_bytes):
                raise aiohttp.ClientPayloadError(f"it said {self._num_bytes:,} bytes, and sends a file of {found:,}")
        self._checked = len(answers)


def _length(headers: Mapping[str, str]) -> int | None:
    """Return the size of a file by an answer with it or a part of it, None if that is not said."""
    if headers.get("Content-Encoding", "identity") != "identity":
        return None
    part = headers.get("Content-Range")
    length = headers.get("Content-Length", "") if part is None else part.rpartition("/")[2]
    return int(length) if length.isdecimal() else None


def _is_of(headers: Mapping[str, str], num_bytes: int, version: str) -> bool:
    if headers.get("Content-Encoding", "identity") != "identity":
        return True
    tag, date = headers.get("ETag"), headers.get("Last-Modified")
    if num_bytes and _length(headers) not in (None, num_bytes):
        return False
    if tag is None and (date is None or version.startswith(('"', 'W/"'))):
        return True
    return version.removeprefix("W/") in ((tag or "").removeprefix("W/"), date)


def timeout() -> aiohttp.ClientTimeout:
    """Return the limits of a session. By default aiohttp breaks off whatever takes more than five minutes."""
    return aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENT_SECONDS)


async def try_again(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Send a request, and again after a pause if it fails in a way that may pass: a middleware of aiohttp.

    Raises:
        aiohttp.ClientError: Of the last attempt.
    """
    for attempt in range(_ATTEMPTS - 1):
        pause = _FIRST_PAUSE_SECONDS * 2**attempt
        try:
            response = await handler(request)
            if response.status not in _LATER:
                return await _checked(request, response)
            pause = max(pause, _asked_pause(response))
            response.close()
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            is_silent = isinstance(error, aiohttp.ServerTimeoutError) and attempt + 1 >= _SILENT_ATTEMPTS
            if isinstance(error, _CHOSEN) or is_silent:
                raise
        await asyncio.sleep(pause)
    return await _checked(request, await handler(request))


async def _checked(request: ClientRequest, response: ClientResponse) -> ClientResponse:
    """Return an answer, unless it would be taken for a file that it is not.

    Raises:
        aiohttp.ClientResponseError: If it is not the file that was asked for.
    """
    problem = ""
    if _leads_nowhere(response):
        problem = "it leads nowhere"
    elif _begins_anew(request, response):
        problem = f"asked for {request.headers['Range']}, it sent the file from its beginning"
    elif response.status == _PARTIAL and "Range" not in request.headers:
        problem = "it is a part of the file, and the whole was asked for"
    elif response.status == _PARTIAL:
        content = await response.read()  # kept for the caller, who reads a range as a whole too
        problem = _range_problem(request.headers["Range"], response.headers.get("Content-Range"), len(content))
    if problem:
        response.release()
        raise aiohttp.ClientResponseError(
            response.request_info, response.history, status=response.status, message=problem
        )
    return response


def _leads_nowhere(response: ClientResponse) -> bool:
    """Return whether an answer names another place without saying which."""
    return response.status in _ELSEWHERE and not (response.headers.get("Location") or response.headers.get("URI"))


def _begins_anew(request: ClientRequest, response: ClientResponse) -> bool:
    """Return whether a server that was asked for a later part of a file sends it from its beginning."""
    asked = _ASKED.fullmatch(request.headers.get("Range", ""))
    return asked is not None and int(asked["first"]) > 0 and response.status == _WHOLE


def _range_problem(asked: str, said: str | None, received: int) -> str:
    """Return why a part of a file is not the one that was asked for; other bytes in its place would be taken for it.

    Args:
        asked: The range of the request.
        said: The range that the answer says it is, if it says any.
        received: The number of bytes of the answer.
    """
    wanted, given = _ASKED.fullmatch(asked), _GIVEN.fullmatch(said or "")
    if wanted is None:
        return ""
    first, last = int(wanted["first"]), int(wanted["last"])
    if given is None:
        holds = said is None and received == last - first + 1
    else:
        end = last if given["total"] == "*" else min(last, int(given["total"]) - 1)
        holds = (int(given["first"]), int(given["last"])) == (first, end) and received == end - first + 1
    return "" if holds else f"asked for {asked}, it sent {received:,} bytes as {said!r}"


def fetch(system: Any, path: str) -> bytes:  # noqa: ANN401 - fsspec has no annotations
    """Return a file of a web server, asked for again if it breaks off.

    Raises:
        aiohttp.ClientError: Of the last attempt.
    """
    for attempt in range(_ATTEMPTS - 1):
        try:
            return bytes(system.cat_file(path))
        except aiohttp.ClientPayloadError:
            time.sleep(_FIRST_PAUSE_SECONDS * 2**attempt)
    return bytes(system.cat_file(path))


def sends_parts(system: Any, path: str) -> bool:  # noqa: ANN401 - fsspec has no annotations
    """Return whether a web server sends parts of a file; many small ones, as `python -m http.server`, send it whole."""
    try:
        system.cat_file(path, start=1, end=2)
    except aiohttp.ClientResponseError:
        return False
    return True


def _asked_pause(response: ClientResponse) -> float:
    """Return the seconds that a server asks to wait; an HTTP date is not looked at."""
    seconds = response.headers.get("Retry-After", "")
    return min(float(seconds), _LONGEST_PAUSE_SECONDS) if seconds.isdecimal() and seconds.isascii() else 0.0
