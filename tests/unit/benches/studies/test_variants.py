"""The variants of the ablations: each has exactly its ids, and what is left out of it is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest

from benches.lib.trainers import LINE_PATTERN, PATTERN
from benches.lib.vocabularies import count_text_tokens
from benches.studies.ablations import grid, read_counts
from benches.studies.variants import Ingredients, Variant, Vocabulary
from configs import VOCABULARY
from schemas.options import BuildOptions

SIZE, WITH_SUPERWORDS = 8192, 13_000


@pytest.fixture(scope="module")
def ingredients(scanned_run: Path) -> Ingredients:
    units = tuple(sorted(scanned_run.glob("counts/units/*")))
    return Ingredients(read_counts(scanned_run), units, VOCABULARY, 1, PATTERN, LINE_PATTERN)


@pytest.fixture(scope="module")
def learned(ingredients: Ingredients) -> dict[tuple[bool, bool], Vocabulary]:
    return {(variant.seeds, variant.bands): ingredients.learn(variant) for variant in grid(SIZE, [], superwords=False)}


def spelled(vocabulary: Vocabulary) -> list[bytes]:
    columns: list[list[Any]] = [vocabulary.merges[name].to_pylist() for name in ("left", "right")]
    return [left + right for left, right in zip(*columns, strict=True)]


def test_every_id_that_text_can_have_is_there_once(
    ingredients: Ingredients, learned: dict[tuple[bool, bool], Vocabulary]
) -> None:
    slots = ingredients.plan(SIZE, PATTERN)
    controls = sum(token.band.name == "control" for token in slots.fixed)
    for (_, bands), vocabulary in learned.items():
        assert len(set(vocabulary.tokens)) == len(vocabulary.tokens)
        assert len(vocabulary.tokens) == SIZE - controls - (len(slots.reserved) if bands else 0)
        made = set(spelled(vocabulary))
        assert {token for token in made if len(token) > 1} <= set(vocabulary.tokens)


def test_seeds_are_ranked_first_and_reach_every_fixed_token(
    ingredients: Ingredients, learned: dict[tuple[bool, bool], Vocabulary]
) -> None:
    fixed = {token.token.encode() for token in ingredients.plan(SIZE, PATTERN).fixed if token.band.name != "control"}
    multiple = {token for token in fixed if len(token) > 1}
    assert multiple <= set(spelled(learned[True, True])) and multiple <= set(spelled(learned[True, False]))
    assert not multiple <= set(spelled(learned[False, True]))
    assert multiple <= set(learned[False, True].tokens)
    assert not multiple <= set(learned[False, False].tokens)


def test_ids_that_nothing_emits_are_counted() -> None:
    vocabulary = Vocabulary(pa.record_batch({"left": [], "right": []}), (b"a", b"b", b"ab", b"never"))
    counts = pa.record_batch({"token": [b"a", b"b", b"ab"], "count": [3, 0, 1]})
    assert vocabulary.unused(counts) == 2


def test_the_grid_is_the_switches_at_the_base_then_superwords_then_the_other_sizes() -> None:
    switched = [Variant(8), Variant(8, bands=False), Variant(8, seeds=False), Variant(8, False, False)]
    assert grid(8, [9, 4], superwords=False) == [*switched, Variant(4), Variant(9)]
    names = [variant.name for variant in grid(8, [9], superwords=True)]
    assert names[:4] == ["8", "8, no bands", "8, no seeds", "8, no seeds, no bands"]
    assert names[4:7] == [f"8, superwords after {share} %" for share in (50, 75, 90)]
    assert names[7:] == ["9", "9, superwords after 75 %"]


def test_without_fixed_tokens_that_the_text_hardly_has_it_is_fewer_tokens(ingredients: Ingredients) -> None:
    by_use = replace(ingredients, options=BuildOptions(min_fixed_use=1.0))
    variants = grid(SIZE, [], superwords=False, by_use=True)
    assert variants[-1].name == "8,192, every fixed token"
    needed, every = (by_use.learn(variant) for variant in (variants[0], variants[-1]))
    tokens = [count_text_tokens(learned.merges, ingredients.counts.words, 1) for learned in (needed, every)]
    assert len(needed.tokens) == len(every.tokens) and tokens[0] < 0.97 * tokens[1]
    assert every.tokens == ingredients.learn(Variant(SIZE)).tokens


def test_superwords_are_the_last_share_of_the_ids(ingredients: Ingredients) -> None:
    learned = ingredients.learn(Variant(WITH_SUPERWORDS, superwords_after=0.75))
    plain = ingredients.learn(Variant(WITH_SUPERWORDS))
    assert len(set(learned.tokens)) == len(learned.tokens) == len(plain.tokens)
    of_words, of_lines = (sum(map(joins_words, vocabulary.tokens)) for vocabulary in (plain, learned))
    assert of_words < 20 and of_lines > WITH_SUPERWORDS // 8


def joins_words(token: bytes) -> bool:
    """A few tokens that are cut by themselves are whole in their words: `R"`, the beginning of a raw string."""
    return token.isascii() and len(cppmill_core.split(PATTERN, token)) > 1
