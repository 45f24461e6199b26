"""Pairs are found whatever the order and the partitions, and a large bucket costs no more for each document."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from transforms.ingest.dedup.components import connected_components
from transforms.ingest.dedup.lsh import Bands, _compared, candidate_type, choose_bands, compare, near_candidates
from transforms.ingest.minhash import agreeing, least_agreeing, sketch

BANDS = choose_bands(0.8, 256)


def family(random: np.random.Generator, size: int, changed: int) -> np.ndarray:
    """Signatures that differ from one another in some permutations."""
    found = np.repeat(random.integers(0, 256, (1, 256), dtype=np.uint8), size, axis=0)
    for line in found:
        line[random.choice(256, changed, replace=False)] = random.integers(0, 256, changed)
    return found


def clusters(tables: list[pa.Table], count: int) -> list[int]:
    table = pa.concat_tables(tables)
    first, second = (table[name].to_numpy().astype(np.int64) for name in ("row", "near_row"))
    return connected_components(count, first, second).tolist()


def candidates_of(signatures: np.ndarray, bands: Bands = BANDS) -> np.ndarray:
    return near_candidates(3, np.arange(len(signatures), dtype=np.uint32), signatures, bands)


@pytest.fixture
def signatures() -> np.ndarray:
    random = np.random.default_rng(3)
    families = [family(random, size, changed) for size, changed in ((40, 10), (7, 20), (2, 0), (1, 0), (30, 40))]
    return random.permutation(np.concatenate(families))


def test_clusters_are_those_of_all_pairs_that_share_a_bucket(signatures: np.ndarray) -> None:
    candidates, sketches = candidates_of(signatures), sketch(signatures)
    least, edges = least_agreeing(0.8, 256), []
    for bucket in np.unique(candidates["bucket"]):
        rows = candidates["row"][candidates["bucket"] == bucket].astype(np.int64)
        edges += [(a, b) for a in rows for b in rows if agreeing(sketches[a], sketches[b]) >= least]
    expected = connected_components(len(signatures), *np.array(edges).T)
    assert 3 < len(set(expected.tolist())) < 40
    assert clusters([compare(candidates, 0.8)], len(signatures)) == expected.tolist()


@pytest.mark.parametrize("partitions", [1, 2, 17])
def test_order_and_partitions_change_nothing(signatures: np.ndarray, partitions: int) -> None:
    candidates = np.random.default_rng(partitions).permutation(candidates_of(signatures))
    parts = [candidates[candidates["bucket"] % partitions == number] for number in range(partitions)]
    found = clusters([compare(part, 0.8) for part in parts], len(signatures))
    assert found == clusters([compare(candidates_of(signatures), 0.8)], len(signatures))


def test_a_large_bucket_is_one_cluster_at_some_comparisons_a_document() -> None:
    size = 20_000
    candidates = candidates_of(family(np.random.default_rng(4), size, 12), Bands(1, 3))
    _, buckets = np.unique(candidates["bucket"], return_inverse=True)
    large = candidates[buckets == np.argmax(np.bincount(buckets))]
    assert len(large) > size // 2
    assert sum(len(left) for left, _ in _compared(large["bucket"])) <= 32 * len(large)
    assert compare(large, 0.8).num_rows == len(large) - 1
    assert len(set(compare(large, 0.8)["near_row"].to_pylist())) == 1


@pytest.mark.parametrize("similarity", [0.5, 0.7, 0.8, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("permutations", [64, 256, 1024])
def test_bands_fit_and_miss_few_of_the_pairs_that_are_meant(similarity: float, permutations: int) -> None:
    bands = choose_bands(similarity, permutations)
    assert bands.number * bands.width <= permutations
    assert (1 - similarity**bands.width) ** bands.number <= 0.05
    assert (1 - 0.1**bands.width) ** bands.number > 0.85


def test_what_is_shuffled_of_a_document_is_a_fraction_of_it() -> None:
    assert BANDS.number * candidate_type(256).itemsize < 1200


def test_nothing_is_no_pair() -> None:
    assert compare(candidates_of(np.empty((0, 256), dtype=np.uint8)), 0.8).num_rows == 0
    assert compare(candidates_of(np.zeros((1, 256), dtype=np.uint8)), 0.8).num_rows == 0
