"""Content-defined boundaries: local, bounded, complete."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.digests import path_fraction
from transforms.boundaries import cut

TARGET = 10_000
names = st.integers(0, 10**6).map("src/file{}.cpp".format)
corpora = st.dictionaries(names, st.integers(0, 4_000), min_size=1, max_size=120)


def units(corpus: dict[str, int], **bounds: int) -> list[tuple[tuple[str, int], ...]]:
    files = sorted(corpus.items())
    return [tuple(files[first:last]) for first, last in pairwise([0, *cut(files, TARGET, **bounds)])]


@given(corpora)
def test_units_are_the_files_in_order(corpus: dict[str, int]) -> None:
    assert [file for unit in units(corpus) for file in unit] == sorted(corpus.items())
    assert all(units(corpus))


@given(corpora, names, st.integers(0, 4_000))
@settings(max_examples=500)
def test_a_file_added_removed_or_changed_redoes_two_units_at_most(corpus: dict[str, int], name: str, size: int) -> None:
    without = {path: weight for path, weight in corpus.items() if path != name}
    before, after = set(units(without)), set(units({**without, name: size}))
    other = set(units({**without, name: (size * 7 + 1) % 4_000}))
    assert len(after - before) <= 2
    assert len(before - after) <= 2
    assert len(other - after) <= 2


@given(corpora, names)
@settings(max_examples=300)
def test_a_file_above_the_target_stands_alone_and_leaves_the_rest_in_place(corpus: dict[str, int], name: str) -> None:
    corpus = {path: weight for path, weight in corpus.items() if path != name}
    before, after = set(units(corpus)), set(units({**corpus, name: TARGET + 1}))
    assert ((name, TARGET + 1),) in after
    assert len(after - before) <= 3


@given(corpora, names, st.integers(0, 4_000))
@settings(max_examples=300)
def test_the_bound_on_files_moves_nothing_far_from_a_change(corpus: dict[str, int], name: str, size: int) -> None:
    corpus = {path: weight // 100 for path, weight in corpus.items() if path != name}
    before, after = units(corpus, max_files=7), units({**corpus, name: size // 100}, max_files=7)
    assert max(map(len, after)) <= 7
    assert len(set(after) - set(before)) <= 2


@given(corpora)
def test_a_unit_ends_where_the_hash_says(corpus: dict[str, int]) -> None:
    ends = {unit[-1][0] for unit in units(corpus)}
    assert {path for path, weight in corpus.items() if weight and path_fraction(path) < weight / TARGET} <= ends


@pytest.mark.parametrize("weight", [0, 1, 300])
def test_no_unit_is_above_its_bounds(weight: int) -> None:
    corpus = {f"{index:06d}.h": weight for index in range(3_000)}
    found = units(corpus, max_files=500)
    assert max(len(unit) for unit in found) <= 500
    assert max(sum(size for _, size in unit) for unit in found) <= 4 * TARGET


def test_long_paths_count_for_several_files() -> None:
    corpus = {f"{index:04d}" + "x" * 4_000: 0 for index in range(200)}
    assert max(map(len, units(corpus, max_files=210))) <= 10


def test_names_that_are_not_utf8_have_a_place() -> None:
    assert cut([("caf\udce9.cpp", 1), ("x.cpp", 1)], TARGET)[-1] == 2


def test_nothing_makes_no_unit() -> None:
    assert cut([], TARGET) == []
