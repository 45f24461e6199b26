"""Cursors: any place within a text can be one, none is within a character, and names and seed alone decide."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from schemas.export_options import SequenceOptions
from transforms.exports.sequences.cursors import NO_CURSOR, choose_cursor, place_cursor

NAMES = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(2000)]
NUMBERS = st.integers(0, 2**64 - 1)


def options(**given):
    return SequenceOptions(length=64, **given)


@given(st.binary(max_size=40), NUMBERS)
def test_a_cursor_is_within_the_text(text, choice):
    assert 0 <= place_cursor(text, choice) <= max(len(text) - 1, 0)


@given(st.text(max_size=40), NUMBERS)
def test_no_cursor_is_within_a_character(text, choice):
    data = text.encode()
    cursor = place_cursor(data, choice)
    assert data[:cursor].decode() + data[cursor:].decode() == text


@given(st.text(st.characters(codec="ascii"), min_size=2, max_size=12))
def test_every_place_between_two_bytes_can_be_a_cursor(text):
    step = 2**64 // (len(text) - 1)
    found = {place_cursor(text.encode(), step * n + n) for n in range(len(text) - 1)}
    assert found == set(range(1, len(text)))
    assert place_cursor("é".encode(), 2**64 - 1) == NO_CURSOR


def test_the_rate_holds_and_a_larger_rate_only_adds():
    some, more = ([choose_cursor(options(cursor_rate=rate), name, 0, 0) for name in NAMES] for rate in (0.3, 0.6))
    assert all(after == before for before, after in zip(some, more, strict=True) if before is not None)
    assert abs(sum(choice is not None for choice in more) / len(NAMES) - 0.6) < 0.04


def test_name_copy_place_and_seed_each_decide():
    arguments = [(NAMES[0], 0, 0, 0), (NAMES[1], 0, 0, 0), (NAMES[0], 1, 0, 0), (NAMES[0], 0, 64, 0)]
    made = [choose_cursor(options(cursor_rate=1.0, seed=seed), *rest) for *rest, seed in arguments]
    made.append(choose_cursor(options(cursor_rate=1.0, seed=1), NAMES[0], 0, 0))
    assert len(set(made)) == 5
    assert made[0] == choose_cursor(options(cursor_rate=1.0), NAMES[0], 0, 0)
