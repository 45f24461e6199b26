"""Licences by their text: what `licenseclassifier` recognises in a document's first comments, or in a licence file.

That library has the patterns of Google's `licensecheck`, which pkg.go.dev decides by: whole texts, the notices that
licences ask for at the top of a file, and links to them. Two short notices that it lacks and C++ is full of are added.
Another licence that is only named ("under a BSD licence") is none. What is recognised in one text holds together: it
is an expression with AND.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from schemas.errors import ConfigError
from schemas.licenses import PACKAGE, canonical_license
from schemas.options import FindLicenses
from transforms.sources.license_terms import all_of

_READING = "1"
"""How licences are found; what was found in another way is looked for again."""

_READING_FOLDERS = "3"
"""The same for licences of folders: since the first version, links that are licence files count as unknown ones, and
documents that name the GPL or call themselves proprietary inherit nothing."""

_PACKAGES = ("licenseclassifier", PACKAGE)
"""The libraries that decide; their versions are part of keys."""

HEAD_BYTES = 8192
"""How much of a document is looked at; the notices of licences are at the top."""

_LEAST_COVERAGE = 75.0
"""Percent of a licence file that has to be licences: one that says more may say that they do not hold."""

_COMMENT = re.compile(rb"/\*.*?(?:\*/|\Z)|(?://[^\n]*(?:\n[ \t]*|\Z))+", re.DOTALL)
_SPEAKS_OF_LICENSES = re.compile(rb"licen[cs]|permi|redistribut|public domain|warrant", re.IGNORECASE)
_OF_A_LICENSE = re.compile(_SPEAKS_OF_LICENSES.pattern + rb"|notice|liab|copies|software", re.IGNORECASE)
_HOLDER = re.compile(rb"(?:copyright|\(c\)|\xc2\xa9)[\s:]*(?:\(c\)|\xc2\xa9|[0-9]|by\b|the\b.*author)", re.IGNORECASE)
_AROUND = b" \t\r*/!#<>|=-+"
_BLANK_LINES = re.compile(rb"\n\n+")
_OR_LATER = "-or-later"
_NOTICES = {
    "BSL-1.0": re.compile(rb"boost\s+software\s+licen[cs]e,?(?:\s+-)?\s+version\s+1\.0", re.IGNORECASE),
    "MIT": re.compile(rb"under\s+(?:the\s+)?(?:terms\s+of\s+)?(?:the\s+)?MIT\s+licen[cs]e", re.IGNORECASE),
}
"""Notices that say which licence holds, and that the library does not know."""

_CONDITIONS = re.compile(
    rb"licen[cs]|redistribut|public domain|warrant|permission (?:is|to)|permitted provided"
    rb"|\b[al]?gpl(?:v?[0-9]|\b)|general public|\b(?:proprietary|confidential|non-?commercial)\b",
    re.IGNORECASE,
)
_LICENSE_FILE = re.compile(
    rb"(?i:(?:licen[cs]e|copying|copyright)\.(?:txt|md|rst|html)"
    rb"|\b(?:licen[cs]e|copying|copyright)\W+file|\bfile\W+(?:(?:named|called)\W+)?(?:licen[cs]e|copying|copyright)\b)"
    rb"|\b[Ss]ee\W+(?:the\W+)?(?:LICEN[CS]E|COPYING|COPYRIGHT)\b"
)
_MEMOIZED = 4096


def find_notices(head: bytes) -> str | None:
    r"""Return the expression of the licences in the comments of a document's first bytes, None if there are none.

    Example:
        >>> find_notices(b"// Licensed under the Apache License, Version 2.0 (the \"License\");\n"
        ...              b"// you may not use this file except in compliance with the License.\nint a;\n")
        'Apache-2.0'
    """
    comments = (_essence(comment) for comment in _COMMENT.findall(head) if _SPEAKS_OF_LICENSES.search(comment))
    return all_of(name for text in comments if text for name in _recognise_notice(text))


def states_other_conditions(head: bytes) -> bool:
    r"""Return whether a document's first comments speak of conditions, and of no licence file that may have them.

    Such a document is under what it says, recognised or not, and inherits no licence.

    Example:
        >>> [states_other_conditions(text) for text in (b"// GPL v3\n", b"// See the LICENSE file.\n")]
        [True, False]
    """
    comments = b"\n".join(_COMMENT.findall(head))
    return bool(_CONDITIONS.search(comments)) and not _LICENSE_FILE.search(comments)


def identify_license_file(content: bytes) -> str | None:
    """Return the expression of a file that holds licences, None if a quarter of it or more is something else.

    The GNU licences end with a notice to copy, "or any later version". In the licence's own text it is an example.
    """
    names = _recognise(content, _LEAST_COVERAGE)
    bare = {name.removesuffix("-only") for name in names if name.endswith("-only")}
    return all_of(name for name in names if name.removesuffix(_OR_LATER) not in bare)


def _essence(comment: bytes) -> bytes:
    """Return a comment without what differs between files under one licence: marks, holders, and what they are about.

    Most files of a project then have the same text, which is recognised once.
    """
    lines = (line.strip(_AROUND) for line in comment.split(b"\n"))
    text = b"\n".join(b"" if _HOLDER.match(line) else line for line in lines)
    paragraphs = _BLANK_LINES.split(text.strip(b"\n"))
    places = [place for place, paragraph in enumerate(paragraphs) if _OF_A_LICENSE.search(paragraph)]
    return b"\n\n".join(paragraphs[places[0] : places[-1] + 1]) if places else b""


def _recognise_notice(text: bytes) -> Iterator[str]:
    """Yield the identifiers of the licences in a notice, by the library and by the notices that it lacks."""
    yield from _recognise(text, 0.0)
    yield from (name for name, pattern in _NOTICES.items() if pattern.search(text))


@lru_cache(maxsize=_MEMOIZED)
def _recognise(text: bytes, least_coverage: float) -> tuple[str, ...]:
    """Return the identifiers of the licences in a text, in order, each once."""
    from licenseclassifier import identify_license

    found = identify_license(text.decode("utf-8", "replace"), least_coverage)
    return tuple(dict.fromkeys(canonical_license(match.id) or match.id for match in found))


def found_licenses_version(find_licenses: FindLicenses) -> str:
    """Return what decides which licences are found, besides options: the versions of the reading and of libraries.

    Raises:
        ConfigError: If a library is not installed.
    """
    try:
        versions = [] if find_licenses == "tags" else [f"{name} {version(name)}" for name in _PACKAGES]
    except PackageNotFoundError as error:
        raise ConfigError(
            f"ingest.find_licenses = {find_licenses!r} needs {error.name}, which is not installed: "
            "pip install 'cppmill[licenses]'"
        ) from error
    reading = _READING_FOLDERS if find_licenses == "folders" else _READING
    return ", ".join([reading, *versions])
