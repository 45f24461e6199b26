from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import cppmill_core
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenizer_build.compare.diff import TokenizerIds, read_ids
from tokenizer_build.subsets.working_set import (
    Choice,
    always_allowed,
    count_tokens,
    describe_working_set,
    smallest_cover,
)


@pytest.fixture(scope="module")
def ids(small_tokenizer: Path) -> TokenizerIds:
    return read_ids(small_tokenizer, cppmill_core.Tokenizer.from_dir(small_tokenizer))


def rows(*documents: tuple[str, list[int]]) -> pa.RecordBatch:
    projects, tokens = zip(*documents, strict=True)
    return pa.record_batch({"project": list(projects), "token_ids": pa.array(tokens, pa.list_(pa.uint16()))})


def test_only_the_projects_that_match_are_counted() -> None:
    batches = [rows(("cub", [1, 2, 2]), ("boost", [3]), ("Cub", [4])), rows(("cutlass", [2, 0]), ("cub", []))]
    found = count_tokens(batches, Choice(["cu*", "none"]), 5)
    assert found.counts.tolist() == [1, 1, 3, 0, 0]
    assert (found.projects, found.documents) == (("cub", "cutlass"), 3)
    assert count_tokens(reversed(batches), Choice(), 5).counts.tolist() == [1, 1, 3, 1, 1]


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=7),
    st.sets(st.integers(0, 6), max_size=2),
    st.sampled_from([0.001, 0.1, 0.5, 0.9, 0.99, 1.0]),
)
def test_no_smaller_set_covers_as_much(counts: list[int], always: set[int], coverage: float) -> None:
    always = {i for i in always if i < len(counts)}
    needed = Fraction(str(coverage)) * sum(counts)
    found = smallest_cover(np.array(counts, np.int64), sorted(always), coverage)
    assert found == sorted(set(found))
    assert always <= set(found)
    assert sum(counts[i] for i in found) >= needed
    others = [i for i in range(len(counts)) if i not in always]
    smaller = itertools.combinations(others, max(len(found) - len(always) - 1, 0))
    if len(found) > len(always):
        assert all(sum(counts[i] for i in (*always, *some)) < needed for some in smaller)


@pytest.mark.parametrize(
    ("coverage", "expected"), [(0.01, [3]), (0.34, [0, 3]), (0.56, [0, 1, 3]), (0.9, [0, 1, 2, 3]), (1.0, [0, 1, 2, 3])]
)
def test_of_equally_frequent_ids_the_smallest_is_taken(coverage: float, expected: list[int]) -> None:
    assert smallest_cover(np.array([20, 20, 20, 30, 0, 0]), [], coverage) == expected


def test_control_tokens_and_bytes_are_always_allowed(ids: TokenizerIds) -> None:
    always = always_allowed(ids)
    control = [i for i in always if ids.tokenizer.token_bytes(i) is None]
    assert control == [entry.id for entry in ids.entries if entry.strength == "control"]
    assert {ids.tokenizer.token_bytes(i) for i in always if i not in control} == {bytes([b]) for b in range(256)}


def test_the_receipt_says_what_the_set_covers(ids: TokenizerIds, documents: list[bytes]) -> None:
    encoded = [[2, *ids.tokenizer.encode(text).to_pylist(), 3] for text in documents[:20]]
    batch = rows(*(("numpy", tokens) for tokens in encoded))
    histogram = count_tokens([batch], Choice(), ids.tokenizer.vocab_size)
    made = describe_working_set(histogram, ids, globs=["*"], coverage=0.9, dataset="d" * 64)
    text = [token for tokens in encoded for token in tokens[1:-1]]
    covered = sum(token in set(made["ids"]) for token in text)
    assert made["coverage"] == {
        "asked": 0.9,
        "reached": covered / len(text),
        "tokens": len(text),
        "covered_tokens": covered,
    }
    assert made["coverage"]["reached"] >= 0.9
    assert made["projects"] == {"globs": ["*"], "names": ["numpy"], "documents": 20}
    assert made["tokenizer"] == {"digest": ids.tokenizer.digest, "vocab_size": 12_288}
    assert made["ids"] == sorted(set(made["ids"]))
    assert set(always_allowed(ids)) <= set(made["ids"])
