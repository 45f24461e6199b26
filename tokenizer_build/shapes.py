"""What a name looks like: the shapes that generic text does not have, and the words that it is made of."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum

from schemas.options import DISTINCTIVE_SHAPES


class Shape(StrEnum):
    """What makes a name one that generic text does not have, the most distinctive first.

    After the published C++ vocabulary, which kept generic words only if they had a double underscore, were in
    SCREAMING_CASE or began as an API's names do. Compound names are added: several words say more than one, and less
    than a prefix that one library alone uses.
    """

    DOUBLE_UNDERSCORE = "double_underscore"
    SCREAMING_CASE = "screaming_case"
    API_PREFIX = "api_prefix"
    COMPOUND = "compound"
    NONE = "none"


_SCREAMING_CASE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]+")
_IDENTIFIER = re.compile(r"[A-Za-z0-9_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LEAST_LETTERS = 2


def name_shape(
    token: str,
    api_prefixes: Iterable[str],
    *,
    shapes: Collection[str] = DISTINCTIVE_SHAPES,
    compound_parts: int = 2,
) -> Shape:
    """Return the most distinctive shape of a name.

    Args:
        token: The name.
        api_prefixes: Prefixes of its category; one counts if it ends in an underscore, or no lower-case letter follows.
        shapes: The shapes to look for.
        compound_parts: How many words a compound has at least.

    Example:
        >>> name_shape("cudaMalloc", ["cuda"]), name_shape("cudaless", ["cuda"]), name_shape("TEST_F", [])
        (<Shape.API_PREFIX: 'api_prefix'>, <Shape.NONE: 'none'>, <Shape.SCREAMING_CASE: 'screaming_case'>)
        >>> name_shape("thread_block_tile", []), name_shape("DescriptorPool", []), name_shape("size_t", [])
        (<Shape.COMPOUND: 'compound'>, <Shape.COMPOUND: 'compound'>, <Shape.NONE: 'none'>)
    """
    found = {
        Shape.DOUBLE_UNDERSCORE: "__" in token,
        Shape.SCREAMING_CASE: _SCREAMING_CASE.fullmatch(token) is not None,
        Shape.API_PREFIX: any(_has_api_prefix(token, prefix) for prefix in api_prefixes),
        Shape.COMPOUND: len(name_parts(token)) >= compound_parts,
    }
    return next((shape for shape, has in found.items() if has and shape in shapes), Shape.NONE)


def name_parts(token: str) -> Sequence[str]:
    """Return the words of an identifier, cut at underscores, humps and digits.

    A part of one letter is a convention (`size_t`, `m_count`), no word, and left out.

    Example:
        >>> name_parts("thread_block_tile"), name_parts("HTTPServer2"), name_parts("size_t")
        (['thread', 'block', 'tile'], ['HTTP', 'Server'], ['size'])
    """
    if not _IDENTIFIER.fullmatch(token):
        return []
    return [part for part in _PART.findall(token) if len(part) >= _LEAST_LETTERS]


def _has_api_prefix(token: str, prefix: str) -> bool:
    rest = token.removeprefix(prefix)
    if rest in (token, ""):
        return False
    return prefix.endswith("_") or not rest[0].islower()


def is_plain_word(token: str) -> bool:
    """Return whether a name is one word of small letters, with a capital before them or none.

    Example:
        >>> is_plain_word("stride"), is_plain_word("Message"), is_plain_word("DWORD"), is_plain_word("float4")
        (True, True, False, False)
    """
    return _PLAIN_WORD.fullmatch(token) is not None
