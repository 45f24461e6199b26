from __future__ import annotations

import pytest

from tokenizer_build.bands import (
    BANDS,
    FIRST_LEARNED_ID,
    RESERVED_IDS,
    Strength,
    band_of,
    reserved_name,
    token_strength,
)


def test_bands_hold_every_id_below_the_learned_ones_without_a_gap() -> None:
    assert BANDS[0].first == 0
    assert [band.first for band in BANDS[1:]] == [band.last + 1 for band in BANDS[:-1]]
    assert BANDS[-1].last + 1 == FIRST_LEARNED_ID == 7200


@pytest.mark.parametrize(
    ("token_id", "name"),
    [(0, "control"), (63, "control"), (64, "keywords"), (799, "preprocessor"), (800, "numbers"), (1499, "whitespace")]
    + [
        (1500, "library"),
        (4699, "library"),
        (4700, "morphemes"),
        (5299, "integers"),
        (5300, "domain"),
        (6999, "domain"),
    ],
)
def test_borders_are_the_published_ones(token_id: int, name: str) -> None:
    band = band_of(token_id)
    assert band is not None
    assert band.name == name


def test_learned_ids_have_no_band_of_fixed_tokens() -> None:
    assert band_of(FIRST_LEARNED_ID) is None


def test_reserved_ids_are_the_control_tail_and_the_reserve() -> None:
    assert {*range(48, 64), *range(7000, 7200)} == RESERVED_IDS
    assert reserved_name(48) == "<RESERVED_48>"


@pytest.mark.parametrize(
    ("token", "token_id", "strength"),
    [
        ("<PAD>", 0, Strength.CONTROL),
        ("auto", 64, Strength.PINNED),
        ("cudaMalloc", 5300, Strength.ATOMIC),
        ("_x1", 5300, Strength.ATOMIC),
        ("$match", 5300, Strength.PINNED),
        ("mhlo.add", 5300, Strength.PINNED),
        ("é", 5300, Strength.PINNED),
    ],
)
def test_atomic_is_an_identifier_of_the_domain_band_and_nothing_else(
    token: str, token_id: int, strength: Strength
) -> None:
    band = band_of(token_id)
    assert band is not None
    assert token_strength(token, band) is strength
