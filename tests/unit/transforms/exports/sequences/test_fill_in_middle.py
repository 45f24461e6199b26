"""Fill in the middle: pieces make the text, for any bytes; what is chosen depends on names and seed alone."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from schemas.export_options import Fim, SequenceOptions
from transforms.exports.sequences.fill_in_middle import FimChoice, arrange, choose_fim, cut_pieces, split_text

PLACES = st.integers(0, 2**64 - 1)
CHOICES = st.builds(FimChoice, st.sampled_from([Fim.PSM, Fim.SPM]), st.tuples(PLACES, PLACES))
NAMES = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(2000)]


def options(**given):
    return SequenceOptions(length=64, **given)


@given(st.binary(max_size=40), CHOICES)
def test_prefix_middle_and_suffix_make_the_text_whatever_its_bytes(text, choice):
    split = split_text(text, choice)
    assert 0 <= split.start <= split.end <= len(text)
    assert b"".join(cut_pieces(text, split)) == text


@given(st.text(max_size=40), CHOICES)
def test_no_piece_of_text_begins_within_a_character(text, choice):
    pieces = cut_pieces(text.encode(), split_text(text.encode(), choice))
    assert "".join(piece.decode() for piece in pieces) == text


@given(st.text(st.characters(codec="ascii"), max_size=12))
def test_every_place_of_a_text_can_be_chosen(text):
    step = 2**64 // (len(text) + 1)
    starts = {
        split_text(text.encode(), FimChoice(Fim.PSM, (step * n + n, 2**64 - 1))).start for n in range(len(text) + 1)
    }
    assert starts == set(range(len(text) + 1))


def test_psm_and_spm_are_the_published_orders():
    pieces = [np.array(ids, np.uint16) for ids in ([10, 11], [20], [30, 31])]
    assert arrange(Fim.PSM, pieces, (1, 2, 3)).tolist() == [1, 10, 11, 2, 30, 31, 3, 20]
    assert arrange(Fim.SPM, pieces, (1, 2, 3)).tolist() == [1, 2, 30, 31, 3, 10, 11, 20]
    assert arrange(Fim.SPM, pieces, (1, 2, 3)).dtype == np.uint16


def test_the_rates_hold_and_a_larger_rate_only_adds():
    some, more = (
        [choose_fim(options(fim_rate=rate, fim_spm_share=0.25), name, 0, 0) for name in NAMES] for rate in (0.3, 0.6)
    )
    assert all(after == before for before, after in zip(some, more, strict=True) if before)
    chosen = [choice.kind for choice in more if choice]
    assert abs(len(chosen) / len(NAMES) - 0.6) < 0.04
    assert abs(chosen.count(Fim.SPM) / len(chosen) - 0.25) < 0.04
    assert choose_fim(options(fim_rate=1.0, fim_spm_share=0.0), NAMES[0], 0, 0).kind == Fim.PSM


def test_name_copy_place_and_seed_each_decide():
    first = choose_fim(options(fim_rate=1.0), NAMES[0], 0, 0)
    assert first == choose_fim(options(fim_rate=1.0), NAMES[0], 0, 0)
    others = [(NAMES[1], 0, 0, 0), (NAMES[0], 1, 0, 0), (NAMES[0], 0, 64, 0), (NAMES[0], 0, 0, 1)]
    made = [choose_fim(options(fim_rate=1.0, seed=seed), name, copy, at) for name, copy, at, seed in others]
    assert len({first.places, *(choice.places for choice in made)}) == 5
