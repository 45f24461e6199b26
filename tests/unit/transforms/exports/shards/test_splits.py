"""A name is in the same split for ever."""

from __future__ import annotations

import hashlib

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from transforms.exports.shards.splits import split_of, split_rows

PINNED = {"boost": 0.79008, "llvm": 0.93498, "numpy": 0.45259, "": 0.88942}
"""The first digits of the names' hashes as fractions, by another program: `printf %s NAME | sha256sum`."""


def test_the_split_of_a_name_is_its_sha256() -> None:
    for name, fraction in PINNED.items():
        assert split_of(name, validation_fraction=fraction - 0.0001) == "train"
        assert split_of(name, validation_fraction=fraction + 0.0001) == "val"


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_fraction_keeps_what_a_smaller_one_validates_on(name: str, one: float, other: float) -> None:
    smaller, larger = sorted((one, other))
    if split_of(name, validation_fraction=smaller) == "val":
        assert split_of(name, validation_fraction=larger) == "val"


def test_none_and_all_are_fractions_too() -> None:
    assert {split_of(name, validation_fraction=0) for name in PINNED} == {"train"}
    assert {split_of(name, validation_fraction=1) for name in PINNED} == {"val"}


def test_a_fraction_is_the_share_of_the_names() -> None:
    names = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(20_000)]
    assert 0.09 < split_rows(pa.array(names), validation_fraction=0.1).mean() < 0.11


@given(st.lists(st.sampled_from(["a", "b", "c", "Ω"])), st.floats(0, 1))
def test_rows_are_split_as_their_names(names: list[str], fraction: float) -> None:
    found = split_rows(pa.array(names, pa.string()), validation_fraction=fraction)
    assert found.tolist() == [split_of(name, validation_fraction=fraction) == "val" for name in names]
