from __future__ import annotations

import random
from string import ascii_lowercase

import pyarrow as pa
import pytest

from configs.layers import read_profile
from schemas.errors import VocabularyConfigError
from schemas.tables import WORDS
from tokenizer_build.bands import DOMAIN, band_of
from tokenizer_build.layout import Slots, plan_slots
from tokenizer_build.lock import Lock
from tokenizer_build.training import DEMO_IDS, learn_merges, seed_table
from tokenizer_build.vocabulary import FixedToken, Vocabulary

NO_LOCK = Lock.from_entries([])


def fixed(tokens: dict[int, str]) -> list[FixedToken]:
    bands = {token_id: band_of(token_id) for token_id in tokens}
    return [FixedToken(i, tokens[i], band, f"test: {i}") for i, band in bands.items() if band is not None]


def learn(words: list[pa.RecordBatch], slots: Slots, max_token_bytes: int | None = None) -> list[bytes]:
    return list(learn_merges(words, slots, max_token_bytes=max_token_bytes, threads=1).learned)


def test_seeds_are_the_fixed_tokens_of_two_bytes_and_more_with_their_strength(vocabulary: Vocabulary) -> None:
    seeds = {row["token"]: row["atomic"] for row in seed_table(vocabulary.tokens).to_pylist()}
    assert seeds[b"cudaMalloc"] is True
    assert seeds[b"$match"] is False
    assert seeds[b"init"] is False
    assert b"(" not in seeds
    assert b"<PAD>" not in seeds
    assert {morpheme.morpheme.encode() for morpheme in vocabulary.morphemes} <= seeds.keys()


def test_exactly_as_many_tokens_are_learned_as_there_is_room(words: pa.RecordBatch) -> None:
    slots = plan_slots(fixed({0: "<PAD>", 64: "auto", 5300: "TEST"}), NO_LOCK, 8000)
    learned = learn([words], slots)
    assert len(learned) == slots.learned_tokens == 8000 - 3 - 216 - 256
    assert len(set(learned)) == len(learned)
    assert b"auto" not in learned
    assert all(len(token) > 1 for token in learned)


def test_the_order_of_batches_and_split_counts_change_nothing(words: pa.RecordBatch) -> None:
    slots = plan_slots(fixed({0: "<PAD>", 64: "auto"}), NO_LOCK, 7600)
    half = words.num_rows // 2
    assert learn([words.slice(half), words.slice(0, half)], slots) == learn([words], slots)


def test_no_learned_token_spells_a_control_or_reserved_name() -> None:
    text = "".join(f"<RESERVED_{i}>" for i in range(48, 64)) + "<PAD>"
    words = pa.RecordBatch.from_pydict({"word": [text.encode()], "count": [1000]}, schema=WORDS)
    with pytest.raises(VocabularyConfigError, match="does not fill even the smallest vocabulary"):
        learn([words], plan_slots(fixed({0: "<PAD>"}), NO_LOCK, 7200))


def test_a_bound_on_bytes_is_kept(words: pa.RecordBatch) -> None:
    slots = plan_slots(fixed({0: "<PAD>", 64: "auto"}), NO_LOCK, 7200)
    assert max(map(len, learn([words], slots, max_token_bytes=5))) == 5


def test_too_small_a_vocabulary_is_refused_with_the_least_that_would_do(
    vocabulary: Vocabulary, words: pa.RecordBatch
) -> None:
    kept_anywhere = [token for token in vocabulary.tokens if token.band.name != DOMAIN]
    with pytest.raises(VocabularyConfigError, match=r"vocab_size = 1000: too small; .* need at least 7200"):
        learn([words], plan_slots(kept_anywhere, NO_LOCK, 1000))
    with pytest.raises(VocabularyConfigError, match=r"0 pieces of fixed tokens need at least 7200"):
        learn([words], plan_slots(fixed({0: "<PAD>"}), NO_LOCK, 7199))


def test_the_least_size_that_a_refusal_names_does_and_one_less_does_not(words: pa.RecordBatch) -> None:
    rng = random.Random(7)
    names = {i: "".join(rng.choices(ascii_lowercase, k=12)) for i in range(64, 1564)}
    with pytest.raises(VocabularyConfigError, match="vocab_size = 7200: too small") as refused:
        learn([words], plan_slots(fixed(names), NO_LOCK, 7200))
    least = int(str(refused.value).rsplit(" ", 1)[1])
    assert least > 7200
    assert len(learn([words], plan_slots(fixed(names), NO_LOCK, least))) == least - len(names) - 216 - 256
    with pytest.raises(VocabularyConfigError, match=f"need at least {least}"):
        learn([words], plan_slots(fixed(names), NO_LOCK, least - 1))


def test_too_little_text_is_refused_with_the_size_that_it_would_fill(words: pa.RecordBatch) -> None:
    little = words.slice(0, 3000)
    slots = plan_slots(fixed({0: "<PAD>", 64: "auto"}), NO_LOCK, 65_536)
    with pytest.raises(
        VocabularyConfigError, match=r"vocab_size = 65536: only \d+ of \d+ merges could be learned"
    ) as refused:
        learn([little], slots)
    size = int(str(refused.value).split("ask for ")[1].split(" ")[0])
    assert len(learn([little], plan_slots(slots.fixed, NO_LOCK, size))) == size - 2 - 216 - 256
    assert size < DEMO_IDS
    assert "demo" not in str(refused.value)


def test_a_refused_size_suggests_the_profile_demo_only_if_the_text_fills_it() -> None:
    problems: list[str] = []
    assert read_profile("demo", origin="test", problems=problems).values["build"]["vocab_size"] == DEMO_IDS
    assert not problems
    rng = random.Random(7)
    some = ["".join(rng.choices(ascii_lowercase, k=12)).encode() for _ in range(20_000)]
    words = pa.RecordBatch.from_pydict({"word": some, "count": [10] * len(some)}, schema=WORDS)
    slots = plan_slots(fixed({0: "<PAD>", 64: "auto"}), NO_LOCK, 1_000_000)
    with pytest.raises(VocabularyConfigError, match=rf"ids or fewer \(the profile demo has {DEMO_IDS}\)"):
        learn([words], slots)


def test_a_seed_that_cannot_be_one_token_is_named(words: pa.RecordBatch) -> None:
    slots = plan_slots(fixed({64: '"TEST', 5300: "TEST"}), NO_LOCK, 8000)
    with pytest.raises(VocabularyConfigError, match="TEST.*cannot become one token"):
        learn([words], slots)
