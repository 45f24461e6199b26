"""The variants of the ablations: each has exactly its ids, and what is left out of it is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benches.ablations import PATTERN, grid, read_counts, scanned
from benches.variants import Ingredients, Variant, Vocabulary
from configs.vocabulary import VOCABULARY
from pipelines.progress import QuietReporter

SIZE = 8192
FIXED = b"std::"
"""A fixed token."""


@pytest.fixture(scope="module")
def ingredients(tmp_path_factory: pytest.TempPathFactory) -> Ingredients:
    out = scanned(Path(pa.get_include()), tmp_path_factory.mktemp("work"), 1, QuietReporter())
    return Ingredients(read_counts(out), VOCABULARY, PATTERN, 1)


@pytest.fixture(scope="module")
def learned(ingredients: Ingredients) -> dict[tuple[bool, bool], Vocabulary]:
    return {(variant.seeds, variant.bands): ingredients.learn(variant) for variant in grid(SIZE, [])}


def spelled(vocabulary: Vocabulary) -> list[bytes]:
    columns: list[list[Any]] = [vocabulary.merges[name].to_pylist() for name in ("left", "right")]
    return [left + right for left, right in zip(*columns, strict=True)]


def test_every_id_that_text_can_have_is_there_once(
    ingredients: Ingredients, learned: dict[tuple[bool, bool], Vocabulary]
) -> None:
    slots = ingredients.plan(SIZE)
    controls = sum(token.band.name == "control" for token in slots.fixed)
    for (_, bands), vocabulary in learned.items():
        assert len(set(vocabulary.tokens)) == len(vocabulary.tokens)
        assert len(vocabulary.tokens) == SIZE - controls - (len(slots.reserved) if bands else 0)
        made = set(spelled(vocabulary))
        assert {token for token in made if len(token) > 1} <= set(vocabulary.tokens)


def test_seeds_are_ranked_first_and_reach_every_fixed_token(
    ingredients: Ingredients, learned: dict[tuple[bool, bool], Vocabulary]
) -> None:
    fixed = {token.token.encode() for token in ingredients.plan(SIZE).fixed if token.band.name != "control"}
    multiple = {token for token in fixed if len(token) > 1}
    assert multiple <= set(spelled(learned[True, True])) and multiple <= set(spelled(learned[True, False]))
    assert not multiple <= set(spelled(learned[False, True]))
    assert multiple <= set(learned[False, True].tokens)
    assert not multiple <= set(learned[False, False].tokens)


def test_ids_that_nothing_emits_are_counted() -> None:
    vocabulary = Vocabulary(pa.record_batch({"left": [], "right": []}), (b"a", b"b", b"ab", b"never"))
    counts = pa.record_batch({"token": [b"a", b"b", b"ab"], "count": [3, 0, 1]})
    assert vocabulary.unused(counts) == 2


def test_the_grid_is_the_switches_at_the_base_then_the_other_sizes() -> None:
    names = [variant.name for variant in grid(1 << 16, [1 << 17, 1 << 14])]
    assert names == [
        "65,536",
        "65,536, no bands",
        "65,536, no seeds",
        "65,536, no seeds, no bands",
        "16,384",
        "131,072",
    ]
    assert grid(8, []) == [Variant(8), Variant(8, bands=False), Variant(8, seeds=False), Variant(8, False, False)]
