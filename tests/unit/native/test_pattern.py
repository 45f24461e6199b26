"""The native splitter cuts where `tokenizers` cuts with the same regular expression."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

NAME = "cpp-words-1"
LINES = "cpp-lines-1"
NAMES = [NAME, LINES, "cpp-words-2", "cpp-lines-2", "text-words-1", "text-sentences-1"]
WORDS = [NAME, "cpp-words-2"]
SPLITS = {name: pre_tokenizers.Split(Regex(regex), "isolated") for name, regex in cppmill_core.PATTERNS.items()}
HEADERS = [Path("/usr/include/c++"), Path(np.get_include()), Path(pa.get_include())]
SCALARS = np.array([code for code in range(0x110000) if not 0xD800 <= code < 0xE000], "<u4")
DENSE = 0x800
"""Every scalar value below it is compared with `tokenizers`."""
CLASSES = [r"\p{L}", r"\p{N}", r"\s"]
"""What the patterns ask of a character that is not ASCII."""
EMPTY_PLANES = [*range(0x4, 0xE), 0xF, 0x10]
"""Planes without letters, numbers or whitespace, where one context is enough."""
FRAGMENTS = [
    *'\\\\\\nrtRLuU8"\'()-+.eEpP01_aé名²\u0301😀 \t\r\n\v\u00a0\u2028{;#',
    "don't", "it's ", "'ll", "'", "He said.\" ", "(x!) ", "e.g.", "?!\n", "1,000", "50%",
    "::", "std::", ", ", " = ", "((", "(((", "((((", "- ", "\n\n", ";\n  ",
    'R"x(', ')x"', "\\n", "\\n\\n", "u8", "1'0", "0x1p-", "    ", "\r\n", "->", "a" * 17, ')aaaaaaaaaaaaaaaa"',
]  # fmt: skip


def split(data: bytes, pattern: str = NAME) -> list[bytes]:
    words: list[Any] = cppmill_core.split(pattern, data).to_pylist()
    return words


def native(text: str, pattern: str = NAME) -> list[str]:
    return [word.decode() for word in split(text.encode(), pattern)]


def hugging_face(text: str, pattern: str = NAME) -> list[str]:
    return [word for word, _ in SPLITS[pattern].pre_tokenize_str(text)]


def cpp_texts(limit_bytes: int) -> Iterator[str]:
    """Yield real C++ text of the machine's header trees, up to `limit_bytes`."""
    for path in sorted(path for root in HEADERS for path in root.rglob("*.h*") if path.is_file()):
        content = path.read_bytes()
        limit_bytes -= len(content)
        if limit_bytes < 0:
            return
        yield content.decode("utf-8", "ignore")


def in_context(context: str, scalars: Any) -> str:
    """Return the context with each scalar value in its places, one after another."""
    row = np.array([ord(character) for character in context.replace("{}", "\0")], "<u4")
    rows = np.tile(row, (len(scalars), 1))
    rows[:, row == 0] = scalars[:, None]
    return rows.tobytes().decode("utf-32-le")


@cache
def compared_scalars() -> Any:
    """Return the scalar values to compare with `tokenizers`, which is slow: those below `DENSE` and a hundredth above.

    These are where a class of the patterns begins or ends for `tokenizers`, and samples, with those where UTF-8 gets
    longer among them. Any other is in the classes of the one before it, so `tokenizers` splits both alike.
    """
    text = SCALARS.tobytes().decode("utf-32-le")
    is_change = (SCALARS < DENSE) | (SCALARS % 256 == 0)
    for regex in CLASSES:
        runs = pre_tokenizers.Split(Regex(f"{regex}+"), "isolated")
        for start in range(0, len(text), 1 << 14):  # pre_tokenize_str is slow on long texts
            found = runs.pre_tokenize_str(text[start : start + (1 << 14)])
            is_change[[start + first for _, (first, _) in found]] = True
    return SCALARS[is_change | np.append(is_change[1:], True)]


CONTEXTS = ["a{}b ", " {}1{}", "\\n{}'", "\t{}  {}\n", 'R"{}(', ",{} {}::{}a"]


@pytest.mark.parametrize("pattern", NAMES)
@pytest.mark.parametrize("context", CONTEXTS)
def test_scalar_values_are_split_alike_in_context(context: str, pattern: str) -> None:
    scalars = compared_scalars()
    for start in range(0, len(scalars), 2000):
        text = in_context(context, scalars[start : start + 2000])
        assert native(text, pattern) == hugging_face(text, pattern)


@pytest.mark.parametrize("pattern", NAMES)
@pytest.mark.parametrize("context", CONTEXTS)
def test_every_other_scalar_value_is_split_as_the_compared_one_before_it(context: str, pattern: str) -> None:
    compared = compared_scalars()
    others = SCALARS[(SCALARS >= DENSE) & ((context == CONTEXTS[0]) | ~np.isin(SCALARS >> 16, EMPTY_PLANES))]
    before = compared[np.searchsorted(compared, others, side="right") - 1]
    lengths, expected = (
        pc.binary_length(cppmill_core.split(pattern, in_context(context, scalars).encode()))
        for scalars in (others, before)
    )
    assert lengths.equals(expected)


@given(fragments=st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.characters(codec="utf-8")), max_size=40))
@settings(max_examples=300, deadline=None)
def test_texts_are_split_alike(fragments: list[str]) -> None:
    text = "".join(fragments)
    for pattern in NAMES:
        assert native(text, pattern) == hugging_face(text, pattern)


@pytest.mark.parametrize("pattern", NAMES)
def test_real_cpp_is_split_alike(pattern: str) -> None:
    texts = list(cpp_texts(limit_bytes=1_500_000))
    assert sum(map(len, texts)) > 1_000_000
    for text in texts:
        assert native(text, pattern) == hugging_face(text, pattern)


@given(data=st.binary(max_size=200))
def test_words_are_the_bytes_and_invalid_bytes_are_words(data: bytes) -> None:
    for pattern in NAMES:
        words = split(data, pattern)
        assert b"".join(words) == data
        for word in words:
            assert len(word) == 1 or word.decode()


@pytest.mark.parametrize(
    "text",
    [
        *["0x", "0xFF", "0xDEADBEEF", "1.0f", "-1.0f", "-1.0", "1e-6", "1e0", "0b10000000", "3.14", "190", "1000000"],
        *["<=>", "->*", "...", "/*", "*/", "\\", "\\n", "\\n\\n", ":=", "@@", "---", "#include", "#include_next"],
        *['R"(', ')"', 'R"DELIM(', ')DELIM"', 'u8"', 'u"', 'U"', 'L"', "u8'", "u'", "U'", "L'", "__has_include"],
        *[" " * width for width in (1, 2, 4, 6, 8, 10, 12, 14, 16)],
        *["\t", "\t\t", "\t\t\t\t", "\r\n", "\r", "\n", "\n\n"],
    ],
)
@pytest.mark.parametrize("pattern", WORDS)
def test_a_fixed_token_alone_is_one_word(text: str, pattern: str) -> None:
    assert native(text, pattern) == [text]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("std::vector<std::string> v;", ["std::vector", "<std::string", "> v", ";"]),
        ("::size(a->b, (*p)[0])", ["::size", "(a", "->b", ",", " (*p", ")[0", "])"]),
        ("x = -1.0f + (y), &z;", ["x", " = -1.0f", " +", " (y", "),", " &z", ";"]),
        ("((((x, a::*p, a::~A", ["((((", "x", ", a::", "*p", ", a::", "~A"]),
        ('f(a, L"b", R"x(c)x")', ["f", "(a", ', L"', "b", '", R"x(', "c", ')x"', ")"]),
        (") {\n    return 0;\n}", [")", " {\n    ", "return", " 0", ";\n", "}"]),
        ("\\n\\n, \\ref A::b", ["\\n\\n", ",", " \\ref", " A::b"]),
        ("std:: ::a 1::b", ["std::", " ::a", " 1", "::b"]),
    ],
)
def test_marks_and_spaces_join_what_they_stand_before_in_the_second_pattern(text: str, words: list[str]) -> None:
    assert native(text, "cpp-words-2") == words


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("  a;\n  b\n", ["  a;\n  ", "b\n"]),
        ("a {\r\n\r\n\tb", ["a {\r\n\r\n\t", "b"]),
        ("a\n \nb", ["a\n ", "\n", "b"]),
        ("\n\n// é", ["\n\n", "// é"]),
    ],
)
def test_a_line_has_its_newlines_and_the_next_indentation(text: str, lines: list[str]) -> None:
    assert native(text, LINES) == lines


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("a;\n  b\n\n c\r\nd", ["a;\n  b\n\n ", "c\r\nd"]),
        ("a\n \nb\n", ["a\n ", "\n", "b\n"]),
        ("x\n" * 17, ["x\n" * 8, "x\n" * 8, "x\n"]),
        ("\n\na\n\tb", ["\n\n", "a\n\tb"]),
    ],
)
def test_eight_lines_at_most_and_none_behind_a_blank_one_are_cut_together(text: str, units: list[str]) -> None:
    assert native(text, "cpp-lines-2") == units


@pytest.mark.parametrize(
    "unit",
    [
        *[b" ", b"9", b"a", b"\n", b"\\n", b"(", b")a", b"\\"],
        *[b" \t\v", b"'", b".", b"\xc3\xa9", b"\xff", b'L"', b'R"a'],
    ],
)
@pytest.mark.parametrize("end", [b"", b"x"])
@pytest.mark.parametrize("pattern", NAMES)
def test_a_line_without_words_is_cut_whole_however_long(unit: bytes, end: bytes, pattern: str) -> None:
    """Splitting in quadratic time would take an hour; the benchmark of hard inputs measures how long it takes."""
    data = unit * 1_000_000 + end
    words = cppmill_core.split(pattern, data)
    assert pc.sum(pc.binary_length(words)).as_py() == len(data)


def test_an_unknown_pattern_is_refused_with_the_known_names() -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match="cpp-words-1"):
        cppmill_core.split("no-pattern-1", b"")


@pytest.mark.parametrize("regex", cppmill_core.PATTERNS.values(), ids=NAMES)
def test_a_pattern_contains_only_what_llama_cpp_runs(regex: str) -> None:
    assert regex.isascii()
    assert set(re.findall(r"\\[dDhHpPsSwW](?:\{\w+\})?", regex)) <= {*CLASSES, r"\S"}
    assert set(re.findall(r"\(\?(.)", regex)) <= {":", "!"}  # no inline flags, lookbehind or atomic groups
    assert not re.search(r"[*+?}]\+", regex)  # no possessive quantifiers
