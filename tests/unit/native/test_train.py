"""Native training gives the merges of Hugging Face and of the readable reference, and keeps the seeds whole."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pytest
from cppmill_core.byte_alphabet import spell
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from schemas.errors import VocabularyConfigError
from tokenizer_build.reference import CORPUS_PHASE, Merge, encode, ranks_of
from tokenizer_build.reference import train_bpe as reference_train_bpe

REFERENCE_DIR = Path(__file__).parents[2] / "data" / "reference"
PATTERN = "cpp-words-1"
CORPUS = os.environ.get("CPPMILL_TEST_CORPUS")
"""A folder with C++ to compare with Hugging Face's trainer on; by default the headers of numpy, pyarrow and the C++
library, which every test environment has."""
TEXT_BYTES, HUGGING_FACE_IDS = (25_000_000, 16384) if CORPUS else (1_500_000, 4096)
LEARNED = 5000
NOT_IDENTIFIER = [byte for byte in range(256) if not re.match(rb"[A-Za-z0-9_]", bytes([byte]))]
PAIRS = 24
"""How many pairs of bytes each atomic token is put between."""
TROUBLE = ['extern "C"', ".cuda", "::cuda", "(__"]
"""Seeds that cross the borders of what others hold: they would break atomic tokens, were borders not settled last."""


def word_batch(words: dict[bytes, int]) -> pa.RecordBatch:
    return pa.record_batch({"word": pa.array(words, pa.binary()), "count": pa.array(words.values(), pa.uint64())})


def reader(texts: dict[bytes, int]) -> pa.RecordBatchReader:
    return pa.Table.from_batches([word_batch(texts)]).to_reader()


def merge_batch(merges: list[Merge]) -> pa.RecordBatch:
    left = pa.array([merge.left for merge in merges], pa.binary())
    return pa.record_batch({"left": left, "right": pa.array([merge.right for merge in merges], pa.binary())})


def seed_batch(seeds: dict[bytes, bool]) -> pa.RecordBatch:
    return pa.record_batch({"token": pa.array(seeds, pa.binary()), "atomic": pa.array(seeds.values(), pa.bool_())})


def train(words: dict[bytes, int], seeds: dict[bytes, bool], vocab_tokens: int, **options: Any) -> list[Merge]:
    options = {"forbidden": [], **options}
    rows = cppmill_core.train_bpe([word_batch(words)], seeds=seed_batch(seeds), vocab_tokens=vocab_tokens, **options)
    return [Merge(*row.values()) for row in rows.to_pylist()]


def cpp_texts(limit_bytes: int) -> Iterator[str]:
    """Yield real C++ text that is valid UTF-8, up to `limit_bytes`."""
    roots = [Path(CORPUS)] if CORPUS else [Path("/usr/include/c++"), Path(np.get_include()), Path(pa.get_include())]
    for path in sorted(path for root in roots for path in root.rglob("*") if path.is_file()):
        content = path.read_bytes()
        limit_bytes -= len(content)
        if limit_bytes < 0:
            return
        try:
            yield content.decode()
        except UnicodeDecodeError:
            continue


@pytest.fixture(scope="module")
def real_words() -> dict[bytes, int]:
    counts: Counter[bytes] = Counter()
    for text in cpp_texts(1_000_000):
        counts.update(cppmill_core.split(PATTERN, text.encode()).to_pylist())
    return dict(counts)


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
CPP_WORDS = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Split(Regex(cppmill_core.PATTERNS[PATTERN]), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
)


@pytest.mark.parametrize("pre_tokenizer", [GPT2, CPP_WORDS], ids=["gpt2", PATTERN])
def test_without_seeds_the_merges_are_those_of_hugging_face(pre_tokenizer: Any) -> None:
    texts = list(cpp_texts(TEXT_BYTES))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    vocab_size = HUGGING_FACE_IDS
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    expected = json.loads(tokenizer.to_str())["model"]["merges"]
    assert len(expected) == vocab_size - 256
    unspell = {ord(spell(bytes([byte]))): byte for byte in range(256)}
    words = Counter(word for text in texts for word, _ in pre_tokenizer.pre_tokenize_str(text))
    counts = {word.translate(unspell).encode("latin-1"): count for word, count in words.items()}
    merges = train(counts, {}, vocab_size - 256)
    assert [[spell(merge.left), spell(merge.right)] for merge in merges] == expected


symbols = st.sampled_from(b'aaabB_0 ("\xc3\xa9')
strings = st.lists(symbols, min_size=1, max_size=10).map(bytes)
counts = st.one_of(st.integers(0, 6), st.sampled_from([2**31, 2**32 + 1, 2**40]))
identifiers = st.from_regex(rb"[aB_][abB_0]{0,5}", fullmatch=True)


@given(
    words=st.dictionaries(strings, counts, min_size=1, max_size=12),
    pinned=st.sets(st.lists(symbols, min_size=1, max_size=6).map(bytes), max_size=6),
    atomic=st.sets(identifiers, max_size=2),
    forbidden=st.lists(strings, max_size=3),
    vocab_tokens=st.integers(0, 40),
    max_token_bytes=st.one_of(st.none(), st.integers(3, 12)),
)
def test_merges_are_those_of_the_reference(
    words: dict[bytes, int], pinned: set[bytes], atomic: set[bytes], vocab_tokens: int, **options: Any
) -> None:
    """If the size does not do, the reference refuses it too, and the size that the error names does."""
    seeds = {seed: seed in atomic for seed in sorted(pinned | atomic)}
    try:
        merges = train(words, seeds, vocab_tokens, **options)
    except cppmill_core.VocabularyError as error:
        with pytest.raises(VocabularyConfigError):
            reference_train_bpe(words, seeds=seeds, vocab_tokens=vocab_tokens, **options)
        would_do = re.search(r"vocab_tokens [<>]= (\d+)", str(error))
        if would_do is None:
            return
        vocab_tokens = int(would_do[1])
        merges = train(words, seeds, vocab_tokens, **options)
    assert merges == reference_train_bpe(words, seeds=seeds, vocab_tokens=vocab_tokens, **options)


groups = st.lists(st.dictionaries(strings, counts, max_size=8), min_size=1, max_size=3).filter(any)


def grouped(texts: list[dict[bytes, int]]) -> pa.RecordBatchReader:
    batches = [
        word_batch(words).append_column("group", pa.array([group] * len(words), pa.uint16()))
        for group, words in enumerate(texts)
    ]
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches[::-1])


@given(
    words=groups,
    lines=groups,
    cap=st.sampled_from([0.0, 0.5, 1.0, 3.3]),
    word_tokens=st.integers(0, 12),
    superword_tokens=st.integers(0, 8),
)
@settings(max_examples=60)
def test_merges_with_a_cap_on_groups_are_those_of_the_reference(
    words: list[dict[bytes, int]],
    lines: list[dict[bytes, int]],
    cap: float,
    word_tokens: int,
    superword_tokens: int,
) -> None:
    options: dict[str, Any] = {"vocab_tokens": word_tokens + superword_tokens, "superword_tokens": superword_tokens}

    def reference() -> list[Merge]:
        return reference_train_bpe(words, lines=lines, seeds={b"aB": True}, group_cap=cap, **options)

    try:
        rows = cppmill_core.train_bpe(
            grouped(words),
            seeds=seed_batch({b"aB": True}),
            forbidden=[],
            group_cap=cap,
            units=grouped(lines),
            unit_pattern="cpp-lines-1",
            **options,
        )
    except cppmill_core.VocabularyError:
        with pytest.raises(VocabularyConfigError):
            reference()
        return
    assert [Merge(*row.values()) for row in rows.to_pylist()] == reference()


def test_what_one_group_repeats_gives_way_to_what_all_have() -> None:
    words = [{b"xyz": 1000, b"ab": 90}, {b"ab": 90}, {b"ab": 90, b"cd": 270}]

    def first(cap: float | None) -> bytes:
        rows = cppmill_core.train_bpe(grouped(words), seeds=seed_batch({}), vocab_tokens=1, forbidden=[], group_cap=cap)
        return rows["left"][0].as_py() + rows["right"][0].as_py()

    assert (first(None), first(1.0)) == (b"xy", b"ab")


@given(
    lines=st.dictionaries(st.lists(symbols, min_size=1, max_size=14).map(bytes), counts, min_size=1, max_size=8),
    atomic=st.sets(identifiers, max_size=2),
    forbidden=st.lists(strings, max_size=2),
    word_tokens=st.integers(0, 12),
    superword_tokens=st.integers(0, 12),
    max_words=st.integers(1, 4),
    max_bytes=st.integers(2, 12),
)
def test_superwords_are_those_of_the_reference(
    lines: dict[bytes, int],
    atomic: set[bytes],
    forbidden: list[bytes],
    word_tokens: int,
    superword_tokens: int,
    max_words: int,
    max_bytes: int,
) -> None:
    words: Counter[bytes] = Counter()
    for line, count in lines.items():
        for word in words_of(line, split=True):
            words[word] += count
    seeds = dict.fromkeys(sorted(atomic), True)
    common: dict[str, Any] = {"forbidden": forbidden, "superword_tokens": superword_tokens}

    def may_be_superword(token: bytes) -> bool:
        return len(token) <= max_bytes and len(words_of(token, split=True)) <= max_words

    def reference() -> list[Merge]:
        return reference_train_bpe(
            words,
            seeds=seeds,
            vocab_tokens=word_tokens + superword_tokens,
            lines=lines,
            may_be_superword=may_be_superword,
            **common,
        )

    try:
        merges = train(
            words,
            seeds,
            word_tokens + superword_tokens,
            units=reader(lines),
            unit_pattern="cpp-lines-1",
            max_superword_words=max_words,
            max_superword_bytes=max_bytes,
            **common,
        )
    except cppmill_core.VocabularyError:
        with pytest.raises(VocabularyConfigError):
            reference()
        return
    assert merges == reference()
    counted = cppmill_core.count_tokens(merge_batch(merges), reader(lines)).to_pylist()
    ranks = ranks_of(merges)
    tokens: Counter[bytes] = Counter()
    for line, count in lines.items():
        for token in encode(line, ranks):
            tokens[token] += count
    assert {row["token"]: row["count"] for row in counted if row["count"]} == +tokens
    assert [row["token"] for row in counted[256:]] == [merge.left + merge.right for merge in merges]
    superwords: dict[str, Any] = {"first_superword": len(merges) - superword_tokens, "unit_pattern": "cpp-lines-1"}
    assert cppmill_core.count_tokens(merge_batch(merges), reader(lines), **superwords).to_pylist() == counted


def test_counts_that_64_bits_do_not_hold_are_refused() -> None:
    """No token or pair may occur that often: the sum would begin again at zero."""
    beyond, merges = {b"hug": 2**62, b"hugs": 2**62}, merge_batch([Merge(b"u", b"g", 1, CORPUS_PHASE)])
    with pytest.raises(cppmill_core.InvalidInputError, match="64-bit counts hold"):
        cppmill_core.count_tokens(merges, reader(beyond))
    with pytest.raises(cppmill_core.InvalidInputError, match="64-bit counts hold"):
        train(beyond, {}, 1)


@pytest.mark.parametrize("again", [(b"u", b"g"), (b"hu", b"g")])
def test_merges_that_make_a_token_again_are_refused(again: tuple[bytes, bytes]) -> None:
    """Of such a token it would depend on its merge what it is merged to next."""
    made = [(b"u", b"g"), (b"h", b"u"), (b"h", b"ug"), again]
    merges = merge_batch([Merge(*pair, 1, CORPUS_PHASE) for pair in made])
    with pytest.raises(cppmill_core.InvalidInputError, match=f'merge 3: "{b"".join(again).decode()}" is a token'):
        cppmill_core.count_tokens(merges, reader({b"hug": 1}))


def test_more_merges_than_the_encoder_knows_are_refused() -> None:
    made = [bytes([one, two]) for one in range(256) for two in range(256)]
    pairs = [(one, two) for one in made for two in made[:31]]
    merges = [(pair[:1], pair[1:]) for pair in made] + pairs
    left, right = (pa.array([merge[side] for merge in merges], pa.binary()) for side in (0, 1))
    with pytest.raises(cppmill_core.InvalidInputError, match="2097408 tokens: the encoder knows up to 2097151"):
        cppmill_core.count_tokens(pa.record_batch({"left": left, "right": right}), reader({b"hug": 1}))


def published_seeds() -> dict[bytes, bool]:
    """The published fixed tokens that the pattern keeps whole, the candidates and the morphemes, and some trouble."""
    published = json.loads((REFERENCE_DIR / "megacpp_v3_fixed_tokens.json").read_text())
    candidates = json.loads((REFERENCE_DIR / "vocab_candidates.json").read_text())
    strengths = {token: 5300 <= int(i) < 7000 for i, token in published.items() if int(i) >= 64}
    for category in candidates["candidates"].values():
        strengths = dict.fromkeys(category["tokens"], True) | strengths
    for morphemes in candidates["morphemes"].values():
        strengths = dict.fromkeys(morphemes, False) | strengths
    strengths |= dict.fromkeys(TROUBLE, False)
    identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
    seeds = {
        token.encode(): strong and identifier.fullmatch(token) is not None
        for token, strong in strengths.items()
        if len(token.encode()) > 1 and (token in TROUBLE or len(cppmill_core.split(PATTERN, token.encode())) == 1)
    }
    # An atomic token beside a mark cannot be part of a pinned one: `import` in `#import`.
    parts = {part for seed in seeds for part in re.findall(rb"\w+", seed) if part != seed}
    return {seed: atomic and seed not in parts for seed, atomic in seeds.items()}


@pytest.fixture(scope="module")
def seeds() -> dict[bytes, bool]:
    seeds = published_seeds()
    assert len(seeds) > 2500
    assert sum(seeds.values()) > 650
    return seeds


@pytest.fixture(scope="module")
def seeded(real_words: dict[bytes, int], seeds: dict[bytes, bool]) -> list[Merge]:
    return train(real_words, seeds, LEARNED)


def words_of(text: bytes, *, split: bool) -> list[bytes]:
    return cppmill_core.split(PATTERN, text).to_pylist() if split else [text]


def test_each_seed_alone_is_one_token(seeded: list[Merge], seeds: dict[bytes, bool]) -> None:
    ranks = ranks_of(seeded)
    broken = {seed: encode(seed, ranks) for seed in seeds if encode(seed, ranks) != [seed]}
    assert not broken


def test_seed_merges_need_few_pieces_and_come_first_in_their_phases(
    seeded: list[Merge], seeds: dict[bytes, bool]
) -> None:
    phases = [merge.phase for merge in seeded]
    assert phases == sorted(phases)
    pieces = [merge for merge in seeded if merge.phase < CORPUS_PHASE and merge.left + merge.right not in seeds]
    assert len(pieces) < 1.15 * len(seeds)
    new = {merge.left + merge.right for merge in seeded} - set(seeds)
    assert len(new) == LEARNED


@pytest.mark.parametrize("split", [True, False], ids=["words", "whole text"])
def test_atomic_tokens_stay_whole_between_any_two_bytes(
    seeded: list[Merge], seeds: dict[bytes, bool], split: bool
) -> None:
    """Each left byte and each right byte that ends an identifier comes beside many tokens, in random pairs."""
    ranks, rng = ranks_of(seeded), random.Random(1)
    lefts, rights = NOT_IDENTIFIER.copy(), NOT_IDENTIFIER.copy()
    tried: set[tuple[str, int]] = set()
    for token in (seed for seed, atomic in seeds.items() if atomic):
        rng.shuffle(lefts)
        rng.shuffle(rights)
        for left, right in zip(lefts[:PAIRS], rights[:PAIRS], strict=True):
            words = words_of(bytes([left]) + token + bytes([right]), split=split)
            assert token in [piece for word in words for piece in encode(word, ranks)], (left, token, right)
            tried |= {("left", left), ("right", right)}
    assert len(tried) == 2 * len(NOT_IDENTIFIER)


@pytest.mark.parametrize("split", [True, False], ids=["words", "whole text"])
def test_atomic_tokens_stay_whole_in_random_contexts(
    seeded: list[Merge], seeds: dict[bytes, bool], real_words: dict[bytes, int], split: bool
) -> None:
    """Contexts of random bytes, of pieces of other tokens, and of real words, up to a byte that ends the identifier."""
    ranks, rng = ranks_of(seeded), random.Random(2)
    tokens, words = [merge.left + merge.right for merge in seeded], list(real_words)
    edges = [token for token in tokens if token[-1] in NOT_IDENTIFIER or token[0] in NOT_IDENTIFIER]

    def context(end: int) -> bytes:
        parts = [rng.randbytes(rng.randrange(4)), rng.choice(edges), rng.choice(words)]
        parts = rng.sample(parts, rng.randint(1, 3))
        text = b"".join(parts)
        return text if text and text[end] in NOT_IDENTIFIER else b""

    for token in (seed for seed, atomic in seeds.items() if atomic):
        for _ in range(8):
            before, after = context(-1), context(0)
            pieces = [p for word in words_of(before + token + after, split=split) for p in encode(word, ranks)]
            ends = np.cumsum([len(piece) for piece in pieces]).tolist()
            assert len(before + token) in ends, (before, token, after)
            assert pieces[ends.index(len(before + token))] == token, (before, token, after)


def test_shuffled_words_batches_and_threads_give_the_same_merges(
    real_words: dict[bytes, int], seeds: dict[bytes, bool], seeded: list[Merge]
) -> None:
    rng = random.Random(3)
    shuffled = rng.sample(sorted(real_words), len(real_words))
    halves = [{word: real_words[word] - 1 for word in shuffled[::2]}, dict.fromkeys(shuffled[::2], 1)]
    batches = [word_batch(part) for part in (*halves, {word: real_words[word] for word in shuffled[1::2]})]
    seeds = {seed: seeds[seed] for seed in rng.sample(sorted(seeds), len(seeds))}
    rows = cppmill_core.train_bpe(batches, seeds=seed_batch(seeds), vocab_tokens=LEARNED, forbidden=[], threads=2)
    assert [Merge(*row.values()) for row in rows.to_pylist()] == seeded


def test_words_of_a_reader_are_read_once_and_not_held() -> None:
    """Memory is for what training keeps, not for all words: rare ones must not need room before they are dropped."""
    starts = range(0, 200_000, 10_000)
    parts = [{b"%09d" % n: 50 // (1 + n % 50) for n in range(start, start + 10_000)} for start in starts]
    held, before = [], pa.total_allocated_bytes()

    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield word_batch(part)
            held.append(pa.total_allocated_bytes() - before)

    options = {"seeds": seed_batch({}), "vocab_tokens": 50, "forbidden": [], "max_held_tokens": 1 << 16}
    found = cppmill_core.train_bpe(pa.RecordBatchReader.from_batches(word_batch({}).schema, batches()), **options)
    assert max(held) < 3 * word_batch(parts[0]).nbytes
    expected = cppmill_core.train_bpe([word_batch(part) for part in parts], **options)
    assert found.equals(expected, check_metadata=True)


def test_seed_that_cannot_become_one_token_is_named_with_the_reason() -> None:
    with pytest.raises(cppmill_core.VocabularyError, match=r'seed "INSERT " cannot .* "INSERT" is atomic'):
        train({b"x": 1}, {b"INSERT": True, b"INSERT ": False}, 100)
    with pytest.raises(cppmill_core.VocabularyError, match=r'seed "<EOS>" cannot .* control or reserved'):
        train({b"x": 1}, {b"<EOS>": False}, 100, forbidden=[b"<EOS>"])
    with pytest.raises(cppmill_core.VocabularyError, match=r'seed "abcdef" cannot .* max_token_bytes = 5'):
        train({b"x": 1}, {b"abcdef": False}, 100, max_token_bytes=5)


def test_sizes_that_would_do_are_named() -> None:
    with pytest.raises(cppmill_core.VocabularyError, match="ask for vocab_tokens >= 2"):
        train({b"abc": 1}, {b"wxyz": False}, 1)
    with pytest.raises(cppmill_core.VocabularyError, match="only 4 of 10 .* ask for vocab_tokens <= 4"):
        train({b"abc": 1}, {b"wxyz": False}, 10)
    with pytest.raises(cppmill_core.VocabularyError, match="no words"):
        train({}, {}, 1)
    with pytest.raises(cppmill_core.VocabularyError, match="no words"):
        train({b"abc": 0}, {b"wxyz": False}, 1)


def test_words_of_a_million_bytes_are_learned_from() -> None:
    """Merging that looked at a whole word for each merge would take hours."""
    rng = random.Random(4)
    long = bytes(rng.choices(b"abcd(\n ", k=1_000_000))
    whole = train({long: 1, b"a" * 1_000_000: 1}, {b"abc": True, b"(abcd": False}, 3000)
    parts = Counter(long[at : at + 100_000] for at in range(0, 1_000_000, 100_000))
    assert len(whole) > len(train(dict(parts), {}, 2000)) == 2000


def test_wrong_columns_are_refused() -> None:
    words = pa.record_batch({"word": pa.array([b"ab"]), "count": pa.array([1], pa.int32())})
    with pytest.raises(cppmill_core.InvalidInputError, match="uint64"):
        cppmill_core.train_bpe([words], seeds=seed_batch({}), vocab_tokens=1, forbidden=[])
    with pytest.raises(cppmill_core.InvalidInputError, match="no identifier"):
        train({b"ab": 1}, {b"a b": True}, 1)
