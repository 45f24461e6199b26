"""The readable trainer keeps the rules that the design states, on inputs small enough to check by hand or by search."""

from __future__ import annotations

import json
from collections import Counter

import cppmill_core
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from schemas.errors import VocabularyConfigError
from tokenizer_build.reference import (
    BORDER_PHASE,
    CORPUS_PHASE,
    IDENTIFIER_PHASE,
    Merge,
    Rules,
    encode,
    encode_longest,
    learn_merges,
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
def test_a_vocabulary_that_cannot_be_learned_is_refused(arguments: dict[str, object], message: str) -> None:
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


PAPER = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
"""The words of Algorithm 1 of the paper, and how often each occurs."""


def test_words_with_a_stop_character_are_cut_as_in_the_paper() -> None:
    """It has `low` and `est·` of `lowest`, which is none of the words."""
    merges = learn_merges(PAPER, merges=10, stop="·")
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    assert encode("lowest·", ranks) == ["low", "est·"]
    assert encode("estlow·", ranks) == ["es", "t", "low·"]


def learn_with_tokenizers(words: dict[str, int], merges: int, max_token_length: int | None) -> list[tuple[str, str]]:
    """The trainer of `tokenizers`; its bound is the first length that it refuses."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    alphabet = {character for word in words for character in word}
    bound = max_token_length and max_token_length + 1
    trainer = trainers.BpeTrainer(vocab_size=len(alphabet) + merges, max_token_length=bound, show_progress=False)
    tokenizer.train_from_iterator([word for word, count in words.items() for _ in range(count)], trainer)
    return [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]


few_words = st.dictionaries(st.text("abc", min_size=1, max_size=7), st.integers(1, 5), min_size=1, max_size=6)


@given(few_words, st.sampled_from([None, 2, 3, 4, 5]))
def test_words_are_learned_as_tokenizers_learns_them(words: dict[str, int], max_token_length: int | None) -> None:
    """Characters and bytes alike, the stop character being one of them."""
    expected = learn_with_tokenizers({f"{word}.": count for word, count in words.items()}, 8, max_token_length)
    assert learn_merges(words, merges=8, stop=".", max_token_length=max_token_length) == expected
    spelled = {word.encode(): count for word, count in words.items()}
    in_bytes = learn_merges(spelled, merges=8, stop=b".", max_token_length=max_token_length)
    assert [(left.decode(), right.decode()) for left, right in in_bytes] == expected


@given(few_words)
def test_bytes_without_a_stop_character_are_learned_as_by_the_trainer_with_seeds(words: dict[str, int]) -> None:
    """And by the native core."""
    spelled = {word.encode(): count for word, count in words.items()}
    merges = learn_merges(spelled, merges=5)
    if merges:
        assert merges == pairs(train_bpe(spelled, seeds={}, vocab_tokens=len(merges)))
        rows = pa.record_batch(
            {"word": pa.array(spelled, pa.binary()), "count": pa.array(spelled.values(), pa.uint64())}
        )
        seeds = pa.record_batch({"token": pa.array([], pa.binary()), "atomic": pa.array([], pa.bool_())})
        native = cppmill_core.train_bpe([rows], seeds=seeds, vocab_tokens=len(merges), forbidden=[])
        assert merges == list(zip(native["left"].to_pylist(), native["right"].to_pylist(), strict=True))


def test_a_stop_character_makes_words_that_can_be_joined_and_cut_again() -> None:
    ranks = {pair: rank for rank, pair in enumerate(learn_merges(PAPER, merges=12, stop="·"))}
    text = ["lower", "newest", "low", "slow"]
    pieces = [piece for word in text for piece in encode(f"{word}·", ranks)]
    assert "".join(pieces).split("·") == [*text, ""]
    assert Counter("·" in piece for piece in pieces)[True] == len(text)


@given(st.sets(st.text("abc", min_size=2, max_size=4), max_size=12), st.text("abc", max_size=12))
def test_greedy_pieces_are_those_of_the_word_piece_model(tokens: set[str], word: str) -> None:
    """Of `tokenizers`, without a prefix for pieces inside of a word; and each is the longest that there is."""
    vocab = {token: number for number, token in enumerate(["[UNK]", "a", "b", "c", *sorted(tokens)])}
    model = models.WordPiece(vocab=vocab, unk_token="[UNK]", continuing_subword_prefix="")
    pieces = encode_longest(word, tokens)
    assert pieces == [token.value for token in model.tokenize(word)]
    rest = word
    for piece in pieces:
        assert piece == max((token for token in {*tokens, rest[0]} if rest.startswith(token)), key=len)
        rest = rest.removeprefix(piece)
    assert rest == ""


def test_greedy_pieces_of_real_text_are_not_those_by_rank(documents: list[bytes]) -> None:
    words = Counter(word for text in documents[:8] for word in cppmill_core.split("cpp-words-1", text).to_pylist())
    merges = learn_merges(dict(words.most_common(60)), merges=40)
    ranks, tokens = {pair: rank for rank, pair in enumerate(merges)}, {left + right for left, right in merges}
    cut = [(encode(word, ranks), encode_longest(word, tokens)) for word in list(words)[:2000]]
    assert all(b"".join(ranked) == b"".join(greedy) for ranked, greedy in cut)
    assert 0 < sum(ranked != greedy for ranked, greedy in cut) < len(cut)
