"""The readable trainer keeps the rules that the design states, on inputs small enough to check by hand or by search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import VocabularyConfigError
from tokenizer_build.reference import (
    BORDER_PHASE,
    CORPUS_PHASE,
    IDENTIFIER_PHASE,
    Merge,
    Rules,
    encode,
    ranks_of,
    train_bpe,
)


def pairs(merges: list[Merge]) -> list[tuple[bytes, bytes]]:
    return [(merge.left, merge.right) for merge in merges]


def test_textbook_example_is_learned_as_published() -> None:
    """The words of the Hugging Face course's BPE chapter."""
    words = {b"hug": 10, b"pug": 5, b"pun": 12, b"bun": 4, b"hugs": 5}
    assert pairs(train_bpe(words, seeds={}, vocab_tokens=3)) == [(b"u", b"g"), (b"u", b"n"), (b"h", b"ug")]


def test_ties_go_to_the_byte_that_is_earlier_in_the_published_alphabet() -> None:
    merges = train_bpe({b" b": 1, b"ab": 1, b"\xffb": 1, b"\xadb": 1}, seeds={}, vocab_tokens=4)
    assert [merge.left for merge in merges] == [b"a", b"\xff", b" ", b"\xad"]


def test_overlapping_pairs_are_counted_each_and_merged_leftmost_first() -> None:
    merges = train_bpe({b"aaaaa": 1}, seeds={}, vocab_tokens=2)
    assert merges == [Merge(b"a", b"a", 4, CORPUS_PHASE), Merge(b"aa", b"a", 1, CORPUS_PHASE)]
    assert encode(b"aaaaa", ranks_of(merges[:1])) == [b"aa", b"aa", b"a"]


def test_merges_inside_identifiers_rank_before_those_that_cross_a_border() -> None:
    seeds = {b'extern "C"': False, b"CREATE": True, b"#if": False}
    merges = train_bpe({bytes(range(256)): 1}, seeds=seeds, vocab_tokens=30)
    phases = [merge.phase for merge in merges]
    assert phases == sorted(phases)
    assert set(phases) == {IDENTIFIER_PHASE, BORDER_PHASE, CORPUS_PHASE}
    assert encode(b'"CREATE"', ranks_of(merges)) == [b'"', b"CREATE", b'"']
    assert encode(b'extern "C"', ranks_of(merges)) == [b'extern "C"']


@pytest.mark.parametrize(
    ("left", "right", "allowed"),
    [
        (b"INSERT", b" ", False),
        (b"(", b"INSERT", False),
        (b"\xa9", b"INSERT", False),
        (b"INSERT", b"\xc3", False),
        (b"INSERT", b"_", True),
        (b"9", b"INSERT", True),
        (b"(x", b"INSERT", True),
        (b"INSERTS", b" ", True),
        (b"<EO", b"S>", False),
        (b"<EO", b"S", True),
        (b"12345678", b"9", False),
    ],
)
def test_rules_refuse_only_what_they_say(left: bytes, right: bytes, allowed: bool) -> None:
    assert Rules({b"INSERT"}, {b"<EOS>"}, 8).allows(left, right) is allowed


def test_merge_that_is_refused_does_not_block_the_next_best() -> None:
    merges = train_bpe({b"ab": 9, b"cd": 1}, seeds={}, vocab_tokens=1, forbidden=[b"ab"])
    assert pairs(merges) == [(b"c", b"d")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": {b"INSERT": True, b"INSERT ": False}}, r"INSERT ' cannot become one token"),
        ({"seeds": {b"abcd": False}}, "vocab_tokens >= 2"),
        ({"vocab_tokens": 9}, "only 2 could be learned"),
        ({"words": {b"abc": 0}}, "no words"),
    ],
)
def test_what_cannot_be_learned_is_said(arguments: dict[str, object], message: str) -> None:
    defaults: dict[str, object] = {"words": {b"abc": 1}, "seeds": {}, "vocab_tokens": 1}
    with pytest.raises(VocabularyConfigError, match=message):
        train_bpe(**(defaults | arguments))  # type: ignore[arg-type]


texts = st.lists(st.sampled_from(list(b"aab_0 (")), min_size=1, max_size=8).map(bytes)


@given(st.dictionaries(texts, st.integers(1, 5), min_size=1, max_size=8), st.sets(texts, max_size=5))
def test_no_token_is_ever_made_twice(words: dict[bytes, int], seeds: set[bytes]) -> None:
    """Else several merges would share an id, and a corpus merge could bring back what seed merges look for."""
    try:
        merges = train_bpe(words, seeds=dict.fromkeys(seeds, False), vocab_tokens=12)
    except VocabularyConfigError:
        return
    tokens = [merge.left + merge.right for merge in merges]
    assert len(set(tokens)) == len(tokens)
    assert len(set(tokens) - seeds) == 12
    assert all(encode(seed, ranks_of(merges)) == [seed] for seed in seeds)
