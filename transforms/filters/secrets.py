"""Secrets in documents: private keys and tokens that services give out, by the detectors of detect-secrets.

Only detectors whose patterns name a service or a format are used, because high entropy, words like `password` and bare
digests are rarely secrets in C++. No service is asked. The reported detail has a secret's kind and line, never the
secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from schemas.errors import ConfigError
from schemas.plugins.entry_points import Filter, each_document

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

PACKAGE = "detect-secrets"
"""The library; its version is part of the unit keys where secrets are looked for."""

DETECTORS: dict[str, tuple[bytes, ...]] = {
    "aws.AWSKeyDetector": (rb"a(?:3t|bia|cca|kia|sia)[0-9a-z]{16}", rb"aws"),
    "azure_storage_key.AzureStorageKeyDetector": (rb"accountkey=",),
    "github_token.GitHubTokenDetector": (rb"gh[pousr]_", rb"github_pat_"),
    "gitlab_token.GitLabTokenDetector": (rb"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-", rb"gr1348941"),
    "jwt.JwtTokenDetector": (rb"eyj",),
    "npm.NpmDetector": (rb":_authtoken=",),
    "openai.OpenAIDetector": (rb"t3blbkfj",),
    "private_key.PrivateKeyDetector": (rb"private key", rb"putty-user-key-file-2"),
    "pypi_token.PypiTokenDetector": (rb"pypi-age",),
    "sendgrid.SendGridDetector": (rb"sg\.",),
    "slack.SlackDetector": (rb"xox[abposr]-", rb"https://hooks\.slack\.com/"),
    "square_oauth.SquareOAuthDetector": (rb"sq0csp-",),
    "stripe.StripeDetector": (rb"k_live_",),
}
"""The detectors by module and class; in all that one finds, one of its markers is, in lower case. Each marker begins
with a literal, so that it is searched for at a gigabyte a second; the detectors themselves read 10 to 60 MB/s."""

_MORE_PATTERNS = {
    "github_token.GitHubTokenDetector": r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    "private_key.PrivateKeyDetector": r"BEGIN ENCRYPTED PRIVATE KEY",
}
"""What the library's detectors of these kinds leave out."""

_LINEAR_PATTERNS = {
    "npm.NpmDetector": r"(?m)^(?:[^\n/]|/(?!/))*(?=//.+/:_authToken=\s*((npm_.+)|([A-Fa-f0-9-]{36})))(.*)",
    "openai.OpenAIDetector": r"(?<![A-Za-z0-9_-])(?:(?!sk-)[A-Za-z0-9_-])*"
    r"(sk-[A-Za-z0-9_-]*[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})",
}
"""In place of patterns of the library that begin at each `//` and each `sk-`, and take the square of a window's length:
the same tokens, from the first of them in a line and in a run of characters."""

_NPM_TOKENS = re.compile(r"/:_authToken=\s*(npm_(?:[^\s\"'\\]+|.+)|[A-Fa-f0-9-]{36})")
"""Each token in a part of a line in which that pattern finds one."""

_PRIVATE_KEY, _AWS_KEY, _WEB_TOKEN, _NPM = "Private Key", "AWS Access Key", "JSON Web Token", "NPM tokens"
_KEY_MATERIAL = re.compile(
    rb"BEGIN (?:[A-Z0-9]{1,9} ){0,2}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    rb"(?=((?:[\s\"'+,/*#]|\\++[nr]?+|[A-Za-z-]{1,20}+: [^\n\"\\]{0,80}+)*))\1[A-Za-z0-9+/]{32}"
    rb"|PuTTY-User-Key-File-2: *\S"
)
"""A header and 32 characters of key. Between them may be what C++ puts there: ends and starts of strings, escapes of
any depth (a string of JSON has two backslashes), continued lines, comment marks; and lines of PEM's own. What is taken
so is not given back: `(?=(…))\\1`, as possessive repetitions of groups take too much in Python before 3.11.5."""

_KEY_LINES = re.compile(rb"[A-Za-z0-9+/=]{32,}(?:(?=((?:[\s\"'+,/*#]|\\++[nr]?+)*))\1[A-Za-z0-9+/=]{16,})*")
"""The lines of a key, where no footer says how many there are."""

KEY_TEXT = re.compile(rb"\\++[nr]?+|(?P<text>[A-Za-z0-9+/=]*[A-Za-z0-9=][+/]*)")
"""Escapes of C++ between the characters of a key, and runs of these; two slashes alone are a comment."""

_MOST_KEY_BYTES = 32 << 10

_WEB_TOKEN_PARTS = re.compile(rb"eyJ[A-Za-z0-9_=-]++(?:\.[A-Za-z0-9_=-]++)?")
"""The two parts of a web token that are looked at, of any length; a run without a second part is passed in one step."""

_REST_OF_TOKEN = re.compile(rb"[A-Za-z0-9_-]{1,999}"), re.compile(rb"\.?[A-Za-z0-9_=-]{1,9999}")
"""What may follow the part of a token that its detector takes: more of it, and of a web token the signature."""

_BEFORE_BYTES, _STRIDE_BYTES, _AFTER_BYTES = 256, 1024, 2048
"""What is looked at around a marker, and how far after it the next one is searched: some patterns take the square of
the text's length, and no token but a web token, which has windows of its own, is longer."""


class _Detector(NamedTuple):
    markers: tuple[re.Pattern[bytes], ...]
    plugin: RegexBasedDetector


class SecretDetectors:
    """The detectors, made once a worker."""

    def __init__(self) -> None:
        """Load them.

        Raises:
            ConfigError: If the library is not installed.
        """
        try:
            self._detectors = [
                _Detector(tuple(map(re.compile, markers)), _load(name)) for name, markers in DETECTORS.items()
            ]
        except ImportError as error:
            raise ConfigError(
                "ingest.drop_secrets needs detect-secrets, which is not installed: pip install 'cppmill[secrets]'"
            ) from error

    def find_secret(self, content: bytes) -> str | None:
        """Return the kind of the first secret and its line, None if there is none.

        The first is what the first detector with a find reports. The header of a private key is one only if a line of
        key follows it: code that reads such files has the header alone. An AWS key inside of a longer run of letters
        and digits does not count: genomes have such runs.
        """
        lower = content.lower()
        for markers, plugin in self._detectors:
            web_token = plugin.secret_type == _WEB_TOKEN
            for start, end in _web_tokens(content) if web_token else _windows(markers, lower):
                if line := _first_line(content, start, end, plugin):
                    return f"{plugin.secret_type} in line {line}"
        return None

    def find_places(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield where secrets are; those of several detectors may overlap.

        Of a private key this is what is between its header and its footer, of the others the token.
        """
        lower = content.lower()
        for markers, plugin in self._detectors:
            web_token, done = plugin.secret_type == _WEB_TOKEN, 0
            for start, end in _web_tokens(content) if web_token else _windows(markers, lower):
                if plugin.secret_type == _PRIVATE_KEY:
                    for place in _key_places(content, max(start, done), end):
                        yield place
                        done = place[1]
                else:
                    yield from _token_places(content, start, end, plugin)


def _key_places(content: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the material of the private keys is whose headers are in a part of a text."""
    while header := _KEY_MATERIAL.search(content, start, end):
        is_putty = content.startswith(b"PuTTY", header.start())
        limit = header.end() + _MOST_KEY_BYTES
        # The public half of such a key comes first.
        private = content.find(b"Private-Lines:", header.end(), limit) if is_putty else -1
        near = _KEY_LINES.search(content, private if private >= 0 else header.start(), limit)
        material = _KEY_LINES.match(content, near.start()) if near else None
        if material is None:
            return
        footer = content.find(b"-----END", material.start(), material.start() + _MOST_KEY_BYTES)
        ends = [found.end() for found in KEY_TEXT.finditer(content, material.start(), footer) if found["text"]]
        start = max(ends[-1] if footer >= 0 and ends else material.end(), header.end())
        yield material.start(), start


def _token_places(content: bytes, start: int, end: int, plugin: RegexBasedDetector) -> Iterator[tuple[int, int]]:
    """Yield where the tokens are that a detector finds in a part of a text."""
    text = content[start:end].decode("latin-1")
    valid = set(_finds(plugin, text))
    for pattern in plugin.denylist if valid else ():
        if plugin.secret_type == _NPM:
            yield from ((start + first, start + last) for first, last in _npm_places(text, pattern))
            continue
        for found in pattern.finditer(text):
            group = next((number for number in range(1, pattern.groups + 1) if len(found[number] or "") >= 20), 0)
            first, last = start + found.start(group), start + found.end(group)
            if plugin.secret_type == _AWS_KEY and not _is_isolated(content, found[group], first, last):
                continue
            if plugin.secret_type != _WEB_TOKEN or found[0] in valid:
                rest = _REST_OF_TOKEN[plugin.secret_type == _WEB_TOKEN].match(content, last)
                yield first, rest.end() if rest else last


def _npm_places(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield where the tokens of NPM are in the lines in which its pattern finds one."""
    for line in pattern.finditer(text):
        yield from (token.span(1) for token in _NPM_TOKENS.finditer(text, line.start(), max(line.end(), line.end(1))))


def _load(name: str) -> RegexBasedDetector:
    module, _, detector = name.partition(".")
    base = getattr(import_module(f"detect_secrets.plugins.{module}"), detector)
    more = [re.compile(_MORE_PATTERNS[name])] if name in _MORE_PATTERNS else []
    known = [re.compile(_LINEAR_PATTERNS[name])] if name in _LINEAR_PATTERNS else base.denylist
    plugin: RegexBasedDetector = type(detector, (base,), {"denylist": [*known, *more]})()
    return plugin


def _windows(markers: tuple[re.Pattern[bytes], ...], lower: bytes) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text with a marker; what begins with one is whole in one of them."""
    for marker in markers:
        place = 0
        while found := marker.search(lower, place):
            yield max(0, found.start() - _BEFORE_BYTES), min(len(lower), found.start() + _AFTER_BYTES)
            place = found.start() + _STRIDE_BYTES


def _web_tokens(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield where a web token may be, each in one line; the text is read once."""
    return (found.span() for found in _WEB_TOKEN_PARTS.finditer(content) if b"." in found[0])


def _finds(plugin: RegexBasedDetector, text: str) -> Iterator[str]:
    """Yield what a detector finds; JSON that is nested deeper than Python reads is not a token."""
    try:
        yield from plugin.analyze_string(text)
    except RecursionError:
        return


def _first_line(content: bytes, start: int, end: int, plugin: RegexBasedDetector) -> int:
    """Return the number of the first line of a part in which a detector finds something, 0 if there is none."""
    text = content[start:end].decode("latin-1")
    if not any(True for _ in _finds(plugin, text)):
        return 0
    if plugin.secret_type == _PRIVATE_KEY:
        material = _KEY_MATERIAL.search(content, start, end)
        return content.count(b"\n", 0, material.start()) + 1 if material else 0
    number = content.count(b"\n", 0, start) + 1
    for line in text.split("\n"):
        found, after = set(_finds(plugin, line)), start + len(line)
        if any(plugin.secret_type != _AWS_KEY or _is_isolated(content, token, start, after) for token in found):
            return number
        start, number = after + 1, number + 1
    return 0


def _is_isolated(content: bytes, token: str, start: int, end: int) -> bool:
    """Return whether a token is there in a part of a text, and is no part of a longer word."""
    sought = token.encode("latin-1")
    place = content.find(sought, start, end)
    while place >= 0:
        after = place + len(sought)
        if not content[place - 1 : place].isalnum() and not content[after : after + 1].isalnum():
            return True
        place = content.find(sought, place + 1, end)
    return False


FILTER = Filter(make=lambda _: each_document(SecretDetectors().find_secret), packages=(PACKAGE,))
"""The filter `secret`."""
