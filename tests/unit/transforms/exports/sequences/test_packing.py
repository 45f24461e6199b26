"""Packing: never more than fits, nothing lost, and the same as best-fit decreasing written plainly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.exports.sequences.packing import pack_best_fit

CAPACITY = 32
LENGTHS = st.lists(st.integers(1, CAPACITY), max_size=60)


def best_fit_decreasing(lengths, capacity):
    """The definition: the longest first, each into the fullest sequence that takes it; ties to who came first."""
    sequences = []
    for segment in sorted(range(len(lengths)), key=lambda segment: (-lengths[segment], segment)):
        rooms = [capacity - sum(lengths[number] for number in sequence) for sequence in sequences]
        fitting = [(room, place) for place, room in enumerate(rooms) if room >= lengths[segment]]
        if fitting:
            sequences[min(fitting)[1]].append(segment)
        else:
            sequences.append([segment])
    return sorted(sorted(sequence) for sequence in sequences)


@given(LENGTHS)
def test_every_segment_is_in_one_sequence_and_none_is_overfull(lengths):
    packed = pack_best_fit(lengths, CAPACITY)
    assert sorted(segment for sequence in packed for segment in sequence) == list(range(len(lengths)))
    assert all(0 < sum(lengths[segment] for segment in sequence) <= CAPACITY for sequence in packed)


@given(LENGTHS)
def test_it_is_best_fit_decreasing(lengths):
    assert pack_best_fit(lengths, CAPACITY) == best_fit_decreasing(lengths, CAPACITY)


@given(LENGTHS.filter(bool))
def test_no_two_sequences_could_be_one(lengths):
    filled = sorted(sum(lengths[segment] for segment in sequence) for sequence in pack_best_fit(lengths, CAPACITY))
    assert len(filled) == 1 or filled[0] + filled[1] > CAPACITY


@pytest.mark.parametrize(("lengths", "wrong"), [([3, 0, 5], "segment 1 has 0"), ([3, 33], "segment 1 has 33")])
def test_a_segment_that_fits_nowhere_is_named(lengths, wrong):
    with pytest.raises(ValueError, match=wrong):
        pack_best_fit(lengths, CAPACITY)


def test_long_sequences_are_packed_as_short_ones_are():
    lengths = np.random.default_rng(7).integers(1, 131_073, 400).tolist()
    assert pack_best_fit(lengths, 131_072) == best_fit_decreasing(lengths, 131_072)
