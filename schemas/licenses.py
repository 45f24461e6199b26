"""SPDX licence expressions, as aboutcode's `license-expression` reads them: known identifiers and equal ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from schemas.errors import ConfigError

if TYPE_CHECKING:
    from boolean.boolean import Expression
    from license_expression import Licensing

PACKAGE = "license-expression"
"""The library; its list of licences is part of the unit keys where licences are looked at."""

_OWN = re.compile(r"(?:DocumentRef-[A-Za-z0-9.-]+:)?LicenseRef-[A-Za-z0-9.-]+")


@cache
def spdx_licenses() -> Licensing:
    """Return the licences that SPDX knows, read once.

    Raises:
        ConfigError: If the library is not installed.
    """
    try:
        from license_expression import get_spdx_licensing
    except ImportError as error:
        raise ConfigError(
            "ingest.allowed_licenses needs license-expression, which is not installed: pip install 'cppmill[licenses]'"
        ) from error
    licensing: Licensing = get_spdx_licensing()
    return licensing


def parse_expression(text: str) -> Expression | None:
    """Return an SPDX expression as a tree, None if it cannot be parsed; identifiers in it need not be known.

    Example:
        >>> str(parse_expression("(mit OR isc)")), parse_expression("MIT AND ISC AND"), parse_expression("( OR MIT")
        ('MIT OR ISC', None, None)
    """
    from boolean.boolean import ParseError
    from license_expression import ExpressionError

    try:
        parsed: Expression | None = spdx_licenses().parse(text)
        is_whole = _is_whole(token for token, _, _ in spdx_licenses().tokenize(text))
    except (ExpressionError, ParseError, IndexError, AssertionError):  # the last two for `()` and `( OR MIT`
        return None
    return parsed if is_whole else None


def _is_whole(tokens: Iterable[object]) -> bool:
    """Return whether the tokens of an expression make one; the library leaves out what it expects no more."""
    from boolean.boolean import TOKEN_AND, TOKEN_LPAR, TOKEN_OR, TOKEN_RPAR

    depth, is_open = 0, True
    for token in tokens:
        if is_open:
            depth += token == TOKEN_LPAR
            is_open = token == TOKEN_LPAR
            if token in (TOKEN_AND, TOKEN_OR, TOKEN_RPAR):
                return False
        elif token in (TOKEN_AND, TOKEN_OR):
            is_open = True
        elif token == TOKEN_RPAR and depth:
            depth -= 1
        else:
            return False
    return depth == 0 and not is_open


def canonical_license(text: str) -> str | None:
    """Return a licence as SPDX spells it now, with its exception if it names one; None if SPDX does not know it.

    Args:
        text: An identifier (`mit`, `GPL-2.0+`), one with an exception (`Apache-2.0 WITH LLVM-exception`), or
            `LicenseRef-` and a name of one's own.

    Example:
        >>> canonical_license("apache-2.0"), canonical_license("GPL-2.0+"), canonical_license("MIT OR ISC")
        ('Apache-2.0', 'GPL-2.0-or-later', None)
    """
    if _OWN.fullmatch(text):
        return text
    parsed = parse_expression(text)
    if parsed is None or not parsed.isliteral or spdx_licenses().unknown_license_keys(parsed):
        return None
    return None if getattr(parsed, "is_exception", False) else str(parsed)


def license_identifiers() -> list[str]:
    """Return SPDX's identifiers of licences, without those that only one scanner uses."""
    known = spdx_licenses().known_symbols
    return [key for key, symbol in known.items() if not (symbol.is_exception or key.startswith("LicenseRef-"))]
