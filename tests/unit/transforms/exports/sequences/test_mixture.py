"""Weights: whole copies, a share of the documents for the rest, and which weight a project has."""

import hashlib

from schemas.export_options import SequenceOptions
from transforms.exports.sequences.mixture import DEFAULT, Mixture

NAMES = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(4000)]


def mixture(*weights, default=1.0):
    return Mixture(SequenceOptions(length=64, weights=weights, default_weight=default))


def copies(weight):
    return [mixture(("p", weight)).copies("p", name) for name in NAMES]


def test_a_weight_is_so_many_copies_and_one_more_of_a_share_of_the_documents():
    made = copies(2.5)
    assert set(made) == {2, 3}
    assert abs(sum(made) / len(NAMES) - 2.5) < 0.03
    assert set(copies(3)) == {3}
    assert set(copies(0)) == {0}


def test_a_larger_weight_only_adds():
    assert all(some <= more for some, more in zip(copies(0.3), copies(0.7), strict=True))
    assert 0 < sum(copies(0.3)) < sum(copies(0.7)) < len(NAMES)


def test_a_name_goes_before_a_glob_and_an_earlier_glob_before_a_later_one():
    found = mixture(("c*", 2), ("cu*", 3), ("cub", 4), default=0.5)
    assert [found.entry(name) for name in ("cub", "cuda", "abseil")] == [("cub", 4), ("c*", 2), (DEFAULT, 0.5)]
