"""Stable ids stay the same whatever text follows, and few ids are dropped."""

import random
import statistics
from pathlib import Path

import cppmill_core
import pytest
from cppmill_core import Tokenizer
from hypothesis import example, given
from hypothesis import strategies as st

PIECES = [
    *[
        "int",
        " main",
        "(",
        ")",
        ")) {",
        "\n",
        "\n    ",
        "\r\n",
        " ",
        "   ",
        "\t",
        "\v",
        "\f",
        "\u2028",
        "\xa0",
        ";\n",
        "->",
        "::",
    ],
    *[
        "foo",
        "x",
        "_",
        "R",
        "u8R",
        "LR",
        "u8",
        "L",
        '"',
        "'",
        'R"(',
        'R"ab',
        ')"',
        ")ab",
        "\\",
        "\\n",
        "\\n\\t",
        "\\x",
        "n",
    ],
    *[
        "0",
        "12",
        "0x1F",
        "1e",
        "e",
        "+",
        "-",
        ".",
        "'0",
        "é",
        "名",
        "²",
        "😀",
        "for (int i = 0; i < ",
        "return ",
        "#include <",
    ],
]
BYTES = [b"\xc3", b"\xe2\x82", b"\xf0\x9f", b"\xff", b"\x80", b"\xa9", b"\xac"]
piece = st.one_of(st.sampled_from([text.encode() for text in PIECES]), st.sampled_from(BYTES), st.binary(max_size=3))
texts = st.lists(piece, max_size=12).map(b"".join)


@pytest.fixture(scope="module")
def tokenizers(directories: list[Path]) -> list[Tokenizer]:
    return [Tokenizer.from_dir(directory) for directory in directories]


def assert_stable(tokenizer: Tokenizer, ids: list[int], followed: bytes) -> int:
    stable = tokenizer.stable_prefix(ids)
    assert tokenizer.encode(followed).to_pylist()[:stable] == ids[:stable]
    return stable


@given(texts, texts)
@example(b'R"x', b"(")
@example(b')R"', b"(")
@example(b")12", b'"')
@example(b"\\n\\", b"n")
@example(b"\\n\\n", b"x")
@example(b"1'", b"0")
@example(b"   ", b"x")
@example(b"a \xe2\x82", b"\xac")
def test_stable_ids_stay_whatever_follows(tokenizers: list[Tokenizer], text: bytes, more: bytes) -> None:
    for tokenizer in tokenizers:
        assert_stable(tokenizer, tokenizer.encode(text).to_pylist(), text + more)


def test_stable_ids_of_real_text_stay_wherever_it_is_cut_and_most_are_stable(
    tokenizer: Tokenizer, headers: list[bytes]
) -> None:
    rng = random.Random(6)
    given_back = []
    for content in headers:
        document = content[-4000:]
        for _ in range(6):
            cut = rng.randrange(len(document) + 1)
            ids = tokenizer.encode(document[:cut]).to_pylist()
            other = rng.choice(headers)
            place = rng.randrange(len(other))
            assert_stable(tokenizer, ids, document[:cut] + other[place : place + 50])
            given_back.append(len(ids) - assert_stable(tokenizer, ids, document))
    assert statistics.median(given_back) <= 2
    assert max(given_back) <= 12


@given(st.lists(st.integers(0, 3000), max_size=20), texts)
def test_stable_ids_agree_with_encoding_even_if_it_would_not_give_the_others(
    tokenizers: list[Tokenizer], ids: list[int], more: bytes
) -> None:
    for tokenizer in tokenizers:
        texts = [tokenizer.token_bytes(id_) for id_ in ids]
        last = max((place + 1 for place, text in enumerate(texts) if text is None), default=0)
        stable = tokenizer.stable_prefix(ids)
        assert stable >= last
        followed = tokenizer.decode(ids[last:]) + more
        assert tokenizer.encode(followed).to_pylist()[: stable - last] == ids[last:stable]


@pytest.mark.parametrize("length", [600, 5000, 200_000])
@pytest.mark.parametrize("unit", [b"a", b"ab", b"_x9", b" ", b"((", b"x = y + 1; "])
def test_the_end_of_a_long_unit_is_looked_at_alone(tokenizer: Tokenizer, unit: bytes, length: int) -> None:
    text = unit * (length // len(unit))
    ids = tokenizer.encode(text).to_pylist()
    stable = max(tokenizer.stable_prefix(ids), 1)
    for more in (b"", b"a", b"b", b" ", b"(", b"\n", b"_", b"z;\n", unit, unit * 7):
        assert tokenizer.encode(text + more).to_pylist()[:stable] == ids[:stable]
    assert len(tokenizer.decode(ids[stable:])) <= 300


def test_ids_before_a_control_token_are_stable(tokenizer: Tokenizer) -> None:
    control = tokenizer.control_id("<FIM_MIDDLE>")
    ids = [*tokenizer.encode("int x").to_pylist(), control]
    assert tokenizer.stable_prefix(ids) == len(ids)
    assert tokenizer.stable_prefix([*ids, *tokenizer.encode("ret").to_pylist()]) == len(ids)
    assert tokenizer.stable_prefix([]) == 0
    with pytest.raises(cppmill_core.InvalidInputError, match="not below the vocabulary size"):
        tokenizer.stable_prefix([tokenizer.vocab_size])
