"""The allow-list of licences, by SPDX: what the source says about a document, else the tags in its first lines.

The name of a licence in words is not read. Texts and licence files of folders are if `ingest.find_licenses` asks for
them (`transforms.ingest.found_licenses`); without it a document without tag and metadata has no licence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa
from pydantic import BaseModel

from schemas.licenses import PACKAGE, canonical_license, parse_expression, spdx_licenses
from schemas.options import Unlicensed
from schemas.plugins.entry_points import Filter, Find
from transforms.sources.document import bounded
from transforms.sources.license_terms import all_of

if TYPE_CHECKING:
    from boolean.boolean import Expression

READING = "3"
"""How licences are read; what was filtered by another reading is filtered again."""

_HEAD_BYTES = 4096
_MAX_TAG_BYTES = 1024
_TAG = re.compile(rb"SPDX-License-Identifier:[ \t]*(?=([^\r\n]{0,4096}))")
_COMMENT_END = re.compile(r"\*/|-->")
_AROUND = " \t\v\f\"'`*/#|"
_READABLE = re.compile(r"[A-Za-z0-9.+:()\s-]+", re.ASCII)
_TELLS_NONE = ("NOASSERTION", "NONE")
_ONLY, _OR_LATER = "-only", "-or-later"


def find_tags(content: bytes) -> str | None:
    r"""Return the expression of the SPDX tags in the first 4096 bytes; all of them hold if there are several.

    Example:
        >>> find_tags(b"/* SPDX-License-Identifier: GPL-2.0-only OR MIT */\n")
        'GPL-2.0-only OR MIT'
    """
    found = _TAG.finditer(content, 0, 2 * _HEAD_BYTES)
    return all_of(_tag(match[1]) for match in found if match.start(1) < _HEAD_BYTES)


def names_license(text: str | None) -> TypeGuard[str]:
    """Return whether a licence is named, and not only that none is known."""
    return bool(text) and str(text).strip() not in ("", *_TELLS_NONE)


def _tag(line: bytes) -> str:
    """The expression in the rest of a tag's line; what is too long is cut so that it cannot be read."""
    text = _COMMENT_END.split(line.decode("utf-8", "replace"), maxsplit=1)[0]
    return bounded(text, _MAX_TAG_BYTES).strip(_AROUND)


class AllowList:
    """The licences that are allowed; each expression is evaluated once."""

    def __init__(self, allowed: tuple[str, ...], *, unlicensed: Unlicensed, are_found: bool = False) -> None:
        """Take SPDX identifiers, with exceptions or without, and what happens to documents without a licence.

        Args:
            allowed: The identifiers.
            unlicensed: What happens to documents without a licence.
            are_found: Whether licences may be from elsewhere than the source.
        """
        names = {canonical_license(name) or name for name in allowed}
        later = {name.removesuffix(_ONLY) + _OR_LATER for name in names if name.endswith(_ONLY)}
        self._allowed = names | later
        self._unlicensed = unlicensed
        self._origin = "found" if are_found else "the source says"
        self._verdicts = dict[str, bool]()

    def allows(self, expression: str) -> bool:
        """Return whether an SPDX expression is allowed; one that cannot be read is not.

        Of `A OR B` one has to be allowed, of `A AND B` both. `A-or-later` and `A+` may be taken under `A`. An exception
        only permits more, so `A WITH E` is allowed if `A` is, or if it is named itself; a licence is not an exception.
        """
        if expression not in self._verdicts:
            parsed = parse_expression(expression) if _READABLE.fullmatch(expression) else None
            self._verdicts[expression] = parsed is not None and self._accepts(parsed)
        return self._verdicts[expression]

    def _accepts(self, node: Expression) -> bool:
        licensing = spdx_licenses()
        if isinstance(node, licensing.OR):
            return any(map(self._accepts, node.args))
        if isinstance(node, licensing.AND):
            return all(map(self._accepts, node.args))
        if not getattr(getattr(node, "exception_symbol", None), "is_exception", True):
            return False
        base = getattr(node, "license_symbol", node)
        return not self._allowed.isdisjoint((str(node), str(base), str(base).removesuffix("+")))

    def find_forbidden(self, content: bytes, license_name: str | None) -> str | None:
        """Return under what a document is that is not allowed, None if it is."""
        origin, expression = self._origin, (license_name or "").strip()
        if not names_license(expression):
            origin, expression = "tagged", find_tags(content) or ""
        if not names_license(expression):
            return "tells no licence" if self._unlicensed == "drop" else None
        return None if self.allows(expression) else f"{origin} {expression}"


class Allowed(BaseModel):
    """The options of the filter `license`."""

    allowed_licenses: tuple[str, ...]
    unlicensed: Unlicensed
    are_found: bool = False


def _make(options: Allowed) -> Find:
    allowed = AllowList(options.allowed_licenses, unlicensed=options.unlicensed, are_found=options.are_found)

    def find(documents: pa.RecordBatch) -> Iterator[str | None]:
        contents: list[Any] = documents.column("content").to_pylist()
        names: list[Any] = documents.column("license").to_pylist()
        return map(allowed.find_forbidden, contents, names)

    return find


FILTER = Filter(make=_make, version=READING, options=Allowed, packages=(PACKAGE,))
"""The filter `license`."""
