r"""The pre-token patterns that are compared: the published ones, and the shipped ones with one thing changed at a time.

`CppWords` is `cpp-words-1` in parts and `CppWords2` is `cpp-words-2`; with their defaults they give the shipped regular
expressions, which a test checks.
The published patterns are of GPT-2 and of tiktoken's cl100k_base and o200k_base.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tokenizer_build.compare.published_patterns import CL100K, GPT2, O200K

_CAMEL_BORDER = r"(?<=[\p{Ll}\p{N}])\p{Lu}|(?<=\p{Lu})\p{Lu}\p{Ll}"
_UNDERSCORE_BORDER = r"(?<=[^_])_"
_PP_NUMBER = r"\p{N}(?:[eEpP][+-]|'?[\p{L}\p{N}_]|\.)*"


def _identifier_up_to(border: str) -> str:
    """Return an identifier that ends before a border inside it; the rest begins the next word."""
    return rf"[\p{{L}}_](?:(?!{border})[\p{{L}}\p{{N}}_])*"


@dataclass(frozen=True)
class CppWords:
    """The parts of `cpp-words-1`.

    Attributes:
        number: A number with what is put before it.
        literals: Openings and closings of literals, and runs of escapes: what fixed tokens need.
        identifier: A name, or a piece of one.
        mark: Which marks before a name belong to its word; if empty, only a space does.
        marks_newline: How much of the newline and the indentation after it belongs to a run of marks.
        newline: A newline without a mark before it.
    """

    number: str = r" ?-?\.?" + _PP_NUMBER
    literals: str = (
        r"(?: |[^\s\p{L}\p{N}_])?"
        r"""(?:(?:u8|[uUL])?R"[^\s()\\"]{0,16}\(|(?:u8|[uUL])["'])"""
        r'|\)[\p{L}\p{N}_]{1,16}"'
        r"|(?:\\[nrt])+(?![\p{L}\p{N}_])|"
    )
    identifier: str = r"[\p{L}_][\p{L}\p{N}_]*"
    mark: str = r"[^\s\p{L}\p{N}_]?"
    marks_newline: str = r"(?:[\r\n]+[ \t]*)?"
    newline: str = r"[ \t]*[\r\n]+[ \t]*"

    def regex(self) -> str:
        """Compose the regular expression."""
        apart = rf" ?{self.identifier}|\\(?=[\p{{L}}_])"
        attached = rf"{self.mark}{self.identifier}| \\?{self.identifier}"
        return (
            rf"{self.number}|{self.literals}{attached if self.mark else apart}"
            rf"| ?(?:[^\s\p{{L}}\p{{N}}_\\]|\\(?![\p{{L}}_]))+{self.marks_newline}"
            rf"|{self.newline}|\s+(?!\S)|\s+"
        )


@dataclass(frozen=True)
class CppWords2:
    """The parts of `cpp-words-2`.

    Attributes:
        marks: What joins the name, number or literal behind it.
        number_marks: The same for numbers and literals.
        identifier: A name, or a piece of one.
        chain: What follows a name in its word.
        marks_newline: How much of the newline and the indentation after it belongs to a run of marks.
        newline: A newline without a mark before it.
    """

    marks: str = r"(?: ?[^\s\p{L}\p{N}_\\]{1,3})? ?"
    number_marks: str = r"(?: ?[^\s\p{L}\p{N}_\\]{1,3})? ?"
    identifier: str = r"[\p{L}_][\p{L}\p{N}_]*"
    chain: str = r"(?:::[\p{L}_][\p{L}\p{N}_]*)*(?:::)?"
    marks_newline: str = r"(?:[\r\n]+[ \t]*)?"
    newline: str = r"[ \t]*[\r\n]+[ \t]*"

    def regex(self) -> str:
        """Compose the regular expression."""
        return (
            rf"{self.number_marks}(?:-?\.?{_PP_NUMBER}"
            r"""|(?:u8|[uUL])?R"[^\s()\\"]{0,16}\(|(?:u8|[uUL])["'])"""
            r'|\)[\p{L}\p{N}_]{1,16}"'
            r"|(?:\\[nrt])+(?![\p{L}\p{N}_])"
            rf"|{self.marks}{self.identifier}{self.chain}"
            r"| ?\\[\p{L}_][\p{L}\p{N}_]*"
            rf"| ?(?:[^\s\p{{L}}\p{{N}}_\\]|\\(?![\p{{L}}_]))+{self.marks_newline}"
            rf"|{self.newline}|\s+(?!\S)|\s+"
        )


BASE = CppWords()
BASE_2 = CppWords2()

PUBLISHED = {"GPT-2": GPT2, "cl100k": CL100K, "o200k": O200K}
"""The patterns of published tokenizers."""

SHIPPED = "cpp-words-1"
SHIPPED_2 = "cpp-words-2"

CHANGED: dict[str, CppWords] = {
    "identifiers cut at camelCase": replace(BASE, identifier=_identifier_up_to(_CAMEL_BORDER)),
    "identifiers cut at underscores": replace(BASE, identifier=_identifier_up_to(_UNDERSCORE_BORDER)),
    "identifiers cut at both": replace(BASE, identifier=_identifier_up_to(rf"{_CAMEL_BORDER}|{_UNDERSCORE_BORDER}")),
    "no mark with the identifier behind it": replace(BASE, mark=""),
    "up to three marks with the identifier behind them": replace(BASE, mark=r"[^\s\p{L}\p{N}_]{0,3}"),
    "newline and indentation apart from marks": replace(BASE, marks_newline=""),
    "indentation apart from the newline": replace(BASE, marks_newline=r"[\r\n]*", newline=r"[ \t]*[\r\n]+"),
    "marks, newline and indentation apart": replace(BASE, marks_newline="", newline=r"[ \t]*[\r\n]+"),
    "numbers without sign": replace(BASE, number=r" ?\.?" + _PP_NUMBER),
    "numbers without sign and space": replace(BASE, number=r"\.?" + _PP_NUMBER),
    "numbers in triads": replace(BASE, number=r"\p{N}{1,3}"),
    "numbers in single digits": replace(BASE, number=r"\p{N}"),
    "no branches for literals": replace(BASE, literals=""),
}
"""What differs from `cpp-words-1`, one thing each; the last two kinds of numbers have no sign and space either."""

_MARKS = r"(?: ?[^\s\p{L}\p{N}_\\]{1,%d})?"
CHANGED_2: dict[str, CppWords2] = {
    "2: no space behind the marks": replace(BASE_2, marks=rf"(?:{_MARKS % 3}| )", number_marks=rf"(?:{_MARKS % 3}| )"),
    "2: one mark at most": replace(BASE_2, marks=_MARKS % 1 + " ?", number_marks=_MARKS % 1 + " ?"),
    "2: up to eight marks": replace(BASE_2, marks=_MARKS % 8 + " ?", number_marks=_MARKS % 8 + " ?"),
    "2: no marks with numbers": replace(BASE_2, number_marks=" ?"),
    "2: names with :: apart": replace(BASE_2, chain=""),
    "2: one :: in a name at most": replace(BASE_2, chain=r"(?:::(?:[\p{L}_][\p{L}\p{N}_]*)?)?"),
    "2: identifiers cut at camelCase": replace(BASE_2, identifier=_identifier_up_to(_CAMEL_BORDER)),
    "2: blank lines apart": replace(
        BASE_2, marks_newline=r"(?:(?:\r?\n|\r)[ \t]*)?", newline=r"[ \t]*(?:\r?\n|\r)[ \t]*"
    ),
    "2: marks of comments apart": replace(BASE_2, marks=r"(?: ?(?!//|/\*)[^\s\p{L}\p{N}_\\]{1,3})? ?"),
}
"""What differs from `cpp-words-2`, one thing each."""


def studied() -> dict[str, str]:
    """Return every pattern of the study: name to regular expression, the shipped ones before what differs from them."""
    changed, changed_2 = ({name: parts.regex() for name, parts in of.items()} for of in (CHANGED, CHANGED_2))
    return PUBLISHED | {SHIPPED: BASE.regex()} | changed | {SHIPPED_2: BASE_2.regex()} | changed_2
