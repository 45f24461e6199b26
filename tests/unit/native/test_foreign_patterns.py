"""The splitters of other programs' pre-tokenizers cut where `tokenizers` cuts with the same steps."""

import unicodedata
from functools import cache
from typing import Any

import cppmill_core
import numpy as np
import pyarrow.compute as pc
import pytest
from cppmill_core._native import FOREIGN_PATTERNS
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from tests.unit.native.test_pattern import NAME, SCALARS, cpp_texts, in_context

DENSE = 0x20000
"""Every scalar value below it is compared: the patterns ask for many classes and ranges."""
CONTEXTS = {
    "gpt2": " {}'s",
    "cl100k": "'{}e",
    "qwen2": "'l{}2",
    "o200k": "B{}cD",
    "tekken": " {}A/",
    "starcoder2": "1{} ",
    "deepseek-v3": "1{}名",
    "deepseek-coder": "a {}",
    "deepseek-v2": "a {}",
}
FRAGMENTS = [
    *"aBcXZ'sSdDlLtTmMrRvVeE019 \t\n\r\v_-.;/#(<$+é",
    *"名アＡ・゛゠\u3040\u0301\u200d\0\x85\xa0\u3000\u2019。ſµΩ五²٣ǅʰ😀가ߊ",
    "\r\n", "  ", "\n\n", "'ll", "'RE", "/*", "//", "HTTPServer", "1234",
]  # fmt: skip
PROSE = [
    "It's 12,345 o'clock; we'll say: DON'T.",
    "Съешь ещё этих мягких булок, да выпей чаю.",
    "我能吞下玻璃而不伤身体。1234年",
    "いろはにほへと、チリヌルヲ・カ゛ー。",
    "나는 유리를 먹을 수 있어요.",
    "मैं काँच खा सकता हूँ। १२३",
    "أنا قادر على أكل الزجاج و هذا لا يؤلمني. ٤٥٦",
    "אני יכול לאכול זכוכית",
    "ฉันกินกระจกได้ แต่มันไม่ทำให้ฉันเจ็บ",
    "Μπορώ να φάω σπασμένα γυαλιά",
    "მინას ვჭამ და არა მტკივა.",
]


def steps_of(pattern: str) -> Any:
    steps: list[Any] = [
        pre_tokenizers.Digits(individual_digits=True)
        if step == "Digits"
        else pre_tokenizers.Split(Regex(step), "isolated")
        for step in FOREIGN_PATTERNS[pattern]
    ]
    return pre_tokenizers.Sequence(steps)


STEPS = {pattern: steps_of(pattern) for pattern in FOREIGN_PATTERNS}


def is_split_alike(text: str, pattern: str) -> None:
    expected = [word for word, _ in STEPS[pattern].pre_tokenize_str(text)]
    assert [word.decode() for word in cppmill_core.split(pattern, text.encode()).to_pylist()] == expected


def words_around(scalars: Any) -> Any:
    """Return how many words the core cuts beside each of these scalar values of four bytes: fewer beside letters."""
    words = cppmill_core.split(NAME, in_context("a{}b ", scalars).encode())
    ends = np.cumsum(pc.binary_length(words).to_numpy())
    return np.bincount((ends - 1) // len("a....b "), minlength=len(scalars))


@cache
def compared_scalars() -> Any:
    """Return the scalar values to compare with `tokenizers`, which is slow: a tenth of the million that there are.

    Above `DENSE`, samples, and those where the category changes for Python or for the core, which may have a newer
    Unicode.
    """
    categories = np.array(list(map(unicodedata.category, map(chr, SCALARS.tolist()))))
    is_change = categories[1:] != categories[:-1]
    around = words_around(SCALARS[SCALARS >= DENSE])
    is_change[-len(around) + 1 :] |= around[1:] != around[:-1]
    chosen = (SCALARS < DENSE) | (SCALARS % 256 == 0)
    changes = np.flatnonzero(is_change)
    chosen[[*changes, *(changes + 1), -1]] = True
    return SCALARS[chosen]


@pytest.mark.parametrize("pattern", FOREIGN_PATTERNS)
def test_scalar_values_are_split_alike_in_context(pattern: str) -> None:
    scalars = compared_scalars()
    for start in range(0, len(scalars), 1000):  # pre_tokenize_str is slow on long texts
        is_split_alike(in_context(CONTEXTS[pattern], scalars[start : start + 1000]), pattern)


@pytest.mark.parametrize("pattern", FOREIGN_PATTERNS)
def test_every_other_scalar_value_is_split_as_the_compared_one_before_it(pattern: str) -> None:
    others = SCALARS[SCALARS >= DENSE]
    compared = compared_scalars()
    before = compared[np.searchsorted(compared, others, side="right") - 1]
    lengths, expected = (
        pc.binary_length(cppmill_core.split(pattern, in_context(CONTEXTS[pattern], scalars).encode()))
        for scalars in (others, before)
    )
    assert lengths.equals(expected)


@given(fragments=st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.characters(codec="utf-8")), max_size=40))
def test_texts_are_split_alike(fragments: list[str]) -> None:
    for pattern in FOREIGN_PATTERNS:
        is_split_alike("".join(fragments), pattern)


@pytest.mark.parametrize("pattern", FOREIGN_PATTERNS)
def test_prose_in_ten_scripts_and_real_cpp_are_split_alike(pattern: str) -> None:
    for text in [*PROSE, "\n".join(PROSE), *cpp_texts(60_000)]:
        is_split_alike(text, pattern)


def test_bytes_that_are_not_utf_8_are_words_between_runs_split_alone() -> None:
    for pattern in FOREIGN_PATTERNS:
        assert cppmill_core.split(pattern, b"a \xff b\xe2\x82").to_pylist() in (
            [b"a", b" ", b"\xff", b" b", b"\xe2", b"\x82"],
            [b"a ", b"\xff", b" b", b"\xe2", b"\x82"],
        )
