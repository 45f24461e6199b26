"""Content-defined boundaries: local, bounded, complete."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from schemas.digests import path_fraction
from transforms.units.chunking import cut

TARGET = 10_000
names = st.integers(0, 10**6).map("src/file{}.cpp".format)
corpora = st.dictionaries(names, st.integers(0, 4_000), min_size=1, max_size=120)


def units(corpus: dict[str, int], **bounds: int) -> list[tuple[tuple[str, int], ...]]:
    files = sorted(corpus.items())
    return [tuple(files[first:last]) for first, last in pairwise([0, *cut(files, TARGET, **bounds)])]


def unit_ends(corpus: dict[str, int]) -> set[str]:
    return {unit[-1][0] for unit in units(corpus)}


def stretch_ends(corpus: dict[str, int]) -> set[str]:
    """The files that end a unit by the rule alone, no bound helping; the last one does whatever its hash."""
    return hashed_ends(corpus) | {max(corpus, default="")}


def hashed_ends(corpus: dict[str, int]) -> set[str]:
    return {path for path, weight in corpus.items() if path_fraction(path) < weight / TARGET}


@given(corpora)
def test_units_are_the_files_in_order(corpus: dict[str, int]) -> None:
    assert [file for unit in units(corpus) for file in unit] == sorted(corpus.items())
    assert all(units(corpus))


@given(corpora, names, st.integers(0, 4_000), st.integers(0, 4_000))
def test_a_file_added_removed_or_changed_redoes_two_units_at_most(
    corpus: dict[str, int], name: str, size: int, other: int
) -> None:
    without = {path: weight for path, weight in corpus.items() if path != name}
    versions = [without, {**without, name: size}, {**without, name: other}]
    assume(all(unit_ends(version) == stretch_ends(version) for version in versions))
    before, after, changed = (set(units(version)) for version in versions)
    assert len(after - before) <= 2
    assert len(before - after) <= 2
    assert len(changed - after) <= 2


@given(corpora, names, st.integers(0, 40), st.integers(3, 9))
def test_where_a_bound_cuts_a_change_stays_between_the_boundaries_around_it(
    corpus: dict[str, int], name: str, size: int, max_files: int
) -> None:
    without = {path: weight // 100 for path, weight in corpus.items() if path != name}
    before, after = set(units(without, max_files=max_files)), set(units({**without, name: size}, max_files=max_files))
    ends = sorted(hashed_ends(without))
    first = max((path for path in ends if path < name), default="")
    last = min((path for path in ends if path > name), default="~")
    changed = [path for unit in before ^ after for path, _ in unit]
    assert all(first < path <= last for path in changed)


def test_where_a_bound_cuts_a_change_redoes_few_units() -> None:
    rng, redone = random.Random(5), []
    for _ in range(300):
        corpus = {f"src/file{rng.randrange(10**6)}.cpp": rng.randrange(40) for _ in range(120)}
        name = f"src/file{rng.randrange(10**6)}.cpp"
        before = set(units(corpus, max_files=7))
        redone.append(len(set(units({**corpus, name: 20}, max_files=7)) - before))
    assert sum(redone) / len(redone) < 2
    assert max(redone) <= 4


@given(corpora, names)
def test_a_file_above_the_target_is_alone_and_moves_no_other(corpus: dict[str, int], name: str) -> None:
    without = {path: weight for path, weight in corpus.items() if path != name}
    assume(unit_ends(without) == stretch_ends(without))
    before, after = set(units(without)), set(units({**without, name: TARGET + 1}))
    assert ((name, TARGET + 1),) in after
    assert len(after - before) <= 3


@given(corpora)
def test_a_unit_ends_where_the_hash_says(corpus: dict[str, int]) -> None:
    assert stretch_ends(corpus) <= unit_ends(corpus)


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
