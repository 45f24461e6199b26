"""Places of e-mail and IP addresses in documents, for redaction.

E-mail addresses are found as they are written in C++: with `@`, and with words (`jane at acme dot com`). IP addresses
are found only if they can be routed (by IANA's registries) and are written as one would write an address, because most
numbers with three dots in C++ are sections of standards, revisions and versions.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

Span = tuple[int, int]
"""Start and end of a place, in bytes."""

_AT = (re.compile(rb"@"), re.compile(rb" at "), re.compile(rb" AT "), re.compile(rb"[\[(<{][aA][tT][\])>}] ?"))
"""What stands for the sign; each begins with a literal or a few characters, because a search for those is fast."""

_NAME = re.compile(rb"(?<![A-Za-z0-9._%+-])[A-Za-z0-9](?:[A-Za-z0-9._%+-]{0,62}[A-Za-z0-9_+-])?\Z")
_HOST = re.compile(rb"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}([A-Za-z]{2,18})(?![A-Za-z0-9_(-])")
_MOST_NAME_BYTES = 64

_DOT = rb"(?: dot | ?[\[(<{]dot[\])>}] ?)"
_NAME_IN_WORDS = re.compile(
    rb"(?<![A-Za-z0-9._%+-])[A-Za-z0-9][A-Za-z0-9._+-]{0,40}(?:" + _DOT + rb"[A-Za-z0-9._+-]{1,40}){0,3}\Z",
    re.IGNORECASE,
)
_HOST_IN_WORDS = re.compile(
    rb"[A-Za-z0-9][A-Za-z0-9-]{0,60}(?:(?:\.|" + _DOT + rb")[A-Za-z0-9-]{1,60}){0,3}(?:\.|" + _DOT + rb")"
    rb"(?:com|org|net|edu|gov|mil|info|dev|me|io|ai|eu|uk|us|ca|au|nz|de|at|ch|fr|be|nl|it|es|pt|pl|cz|se|no|fi|dk|ru|ua"
    rb"|jp|cn|kr|in|br)(?![A-Za-z0-9_(/-]|\.[A-Za-z])",
    re.IGNORECASE,
)
_IS_DOT = re.compile(_DOT, re.IGNORECASE)
_OF_A_PERSON = re.compile(rb"mail|author|contact|copyright|\(c\)|maintain|written|contribut", re.IGNORECASE)
_MOST_WORDS_BYTES = 160
_NO_NAME = re.compile(rb"expected-(?:error|note|warning|remark)(?:-re)?|git", re.IGNORECASE)
_NO_HOST = re.compile(
    rb"(?:.*\.)?example\.(?:com|org|net|edu)|.*\.(?:test|example|invalid|localhost|local|localdomain|internal|lan"
    rb"|hpp|cpp|cxx|hxx|inl|inc|ipp|tcc|cuh|def|py|js|json|txt|xml|html|png|svg|jpg|gif|so|dll|exe|cfg|conf)",
    re.IGNORECASE | re.DOTALL,
)

_IPV4 = re.compile(
    rb"[0-9](?:(?<![0-9A-Za-z_.\-\\][0-9])|(?<=\\[nrt][0-9]))[0-9]{0,2}(?:\.[0-9]{1,3}){3}"
    rb"(?![0-9A-Za-z_]|\.[0-9\"']|-[0-9])"
)
_IPV6 = re.compile(
    rb"[23](?:(?<![0-9A-Za-z_:.][23])|(?<=\\[nrt][23]))[0-9A-Fa-f]{3}:(?:[0-9A-Fa-f]{0,4}:){1,6}[0-9A-Fa-f]{0,4}"
    rb"(?![0-9A-Za-z_:]|\.[0-9])"
)
"""What is before an address is looked at behind its first digit: a search for a digit is fast. The letter of an escape
may be there: those that texts have, as `\\v9` and `\\b9` are rather folders of a version and a build."""

_IPV4_BEFORE = re.compile(
    rb"""(?:["'=@]|//|\\[nrt]|(?:ip|ipv4|ip4|inet|addr(?:ess)?(?:es)?|host|server|dns|gateway|peer|proxy|ping|via|src|dst)"""
    rb"\W{0,4}|(?:stun|turn|sip|udp|tcp|ipv4):|(?:udp|tcp)[ \t]+[0-9]+[ \t]+)\Z",
    re.IGNORECASE,
)
_IPV4_AFTER = re.compile(rb":[0-9]{1,5}(?![0-9:])|/[0-9]{1,2}(?![0-9])")
_OBJECT_IDENTIFIER = re.compile(rb"(?:2\.5\.(?:4|8|29)|1\.3\.(?:6|14|36|132)|2\.23\.140)\.[0-9]{1,3}(?!:[0-9])")
"""Arcs of ASN.1 that have names of four numbers: those of X.500, the internet, elliptic curves, and browsers."""

_NO_IPV4 = re.compile(
    rb"(?:version|\bver\b|revision|release|\brev\b|build|section|\bsec\b|\bsect\b|clause|chapter|table|standard|\boid"
    rb"|(?-i:(?<!V)OID|Oid)|\brfc|\biso|ecma|,v |chrome/|draft|\bcodecs)[^\n;]{0,24}\Z",
    re.IGNORECASE,
)
_CONTEXT_BYTES = 40

_NO_USER = re.compile(rb"[\s/?#\"'<>\\`{}|^\[\]]")
"""What is in no user of a URL, by RFC 3986, and an apostrophe, which ends a string rather."""

_ESCAPED = re.compile(rb"[abfnrtv][A-Za-z0-9]")
"""The letter of an escape, and a name behind it."""

_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/29", "192.0.0.170/31", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/3", "2001::/23", "2001:db8::/32"),
        ),
    )
)
"""Networks that are not routed, after IANA's registries of addresses for special purposes, and multicast. Those of IPv6
begin as `_IPV6` does. The property `is_global` of `ipaddress` is another one in other versions of Python."""


def find_emails(content: bytes) -> Iterator[Span]:
    r"""Yield where e-mail addresses are.

    Names of hosts for documentation (RFC 2606), users of Git's remotes and of URLs are left alone.

    Example:
        >>> text = b"// Jane <jane@acme.org>, joe at acme dot com\nint at = v@1.2;"
        >>> [text[start:end] for start, end in find_emails(text)]
        [b'jane@acme.org', b'joe at acme dot com']
    """
    for pattern in _AT:
        for at in pattern.finditer(content):
            span = _written(content, at) if at[0] == b"@" else _in_words(content, at)
            if span:
                yield span


def _written(content: bytes, at: re.Match[bytes]) -> Span | None:
    """Return where an address with `@` is."""
    name = _NAME.search(content, max(0, at.start() - _MOST_NAME_BYTES), at.start())
    host = _HOST.match(content, at.end())
    if not name or not host or _NO_NAME.fullmatch(name[0]) or _NO_HOST.fullmatch(host[0]):
        return None
    before = content[max(0, name.start() - _CONTEXT_BYTES) : name.start()]
    is_of_url = b"://" in before and not _NO_USER.search(before.rpartition(b"://")[2])
    return None if is_of_url else (_start(content, name), host.end())


def _start(content: bytes, name: re.Match[bytes]) -> int:
    r"""Return where a name begins: behind the letter of an escape, as in `"\njane@acme.org"`."""
    before = content[max(0, name.start() - _CONTEXT_BYTES) : name.start()]
    return name.start() + bool(_backslashes(before) % 2 and _ESCAPED.match(name[0]))


def _backslashes(before: bytes) -> int:
    """Return how many backslashes a text ends with."""
    return len(before) - len(before.rstrip(b"\\"))


def _in_words(content: bytes, at: re.Match[bytes]) -> Span | None:
    """Return where an address in words is: its dots are words, or something before it says that it is an address."""
    host = _HOST_IN_WORDS.match(content, at.end())
    if not host or _NO_HOST.fullmatch(host[0]) or host[0].lower().startswith(b"www."):
        return None
    end = at.start() - (at[0][:1] != b" " and content[at.start() - 1 : at.start()] == b" ")
    name = _NAME_IN_WORDS.search(content, max(0, end - _MOST_WORDS_BYTES), end)
    if not name:
        return None
    line = content[content.rfind(b"\n", 0, name.start()) + 1 : name.start()][-_MOST_WORDS_BYTES:]
    is_said = _IS_DOT.search(name[0] + at[0] + host[0]) or line[-1:] in (b"<", b"(") or _OF_A_PERSON.search(line)
    return (_start(content, name), host.end()) if is_said or at[0][:1] != b" " else None


def find_ips(content: bytes) -> Iterator[Span]:
    r"""Yield where public IP addresses are, of both versions.

    Not found are loopback, private, multicast and reserved ranges, and those for documentation (RFC 5737, RFC 3849);
    and object identifiers of four numbers, such as those of X.500, unless a port follows.

    Example:
        >>> text = b'connect("8.8.8.8"); // section 6.5.2.2, version "9.1.2.3", 127.0.0.1:80, [2620:fe::fe]:53'
        >>> [text[start:end] for start, end in find_ips(text)]
        [b'8.8.8.8', b'2620:fe::fe']
    """
    for found in _IPV4.finditer(content):
        if _is_public(found[0]) and _is_address(content, *found.span()):
            yield found.span()
    for found in _IPV6.finditer(content):
        if _is_public(found[0]) and not _is_in_word(content, found.start()):
            yield found.span()


def _is_in_word(content: bytes, start: int) -> bool:
    r"""Return whether a letter before an IP address is none of an escape, as in `"\\n8.8.8.8"`."""
    before = content[max(0, start - _CONTEXT_BYTES) : start - 1]
    return content[start - 1 : start].isalpha() and _backslashes(before) % 2 == 0


def _is_public(text: bytes) -> bool:
    try:
        address = ipaddress.ip_address(text.decode("ascii"))
    except ValueError:
        return False
    return not any(address in network for network in _SPECIAL)


def _is_address(content: bytes, start: int, end: int) -> bool:
    """Return whether numbers with three dots are written as an address, by what is around them."""
    before = content[max(0, start - _CONTEXT_BYTES) : start]
    if _is_in_word(content, start) or _NO_IPV4.search(before) or _OBJECT_IDENTIFIER.match(content, start):
        return False
    return bool(_IPV4_BEFORE.search(before) or _IPV4_AFTER.match(content, end))
