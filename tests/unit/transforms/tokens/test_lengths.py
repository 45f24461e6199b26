"""Lengths: the shares are those of the documents counted one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.tokens.lengths import count_lengths

DOCUMENTS = st.lists(st.integers(1, 300), min_size=1, max_size=50)


def count(documents, pieces=3):
    return count_lengths(np.array_split(np.array(documents, np.uint64), pieces))


@given(DOCUMENTS, st.integers(1, 400))
def test_what_a_length_keeps_is_what_the_documents_say(documents, length):
    kept, tokens = count(documents).kept(length), sum(documents)
    whole = [tokens for tokens in documents if tokens <= length]
    cut = [min(tokens, length) for tokens in documents]
    padded = sum(whole) / (length * len(whole)) if whole else 0
    expected = (len(whole) / len(documents), sum(whole) / tokens, sum(cut) / tokens, padded)
    assert kept[1:5] == pytest.approx(expected)
    assert kept.padded_cut == pytest.approx(sum(cut) / (length * len(documents)))


@given(DOCUMENTS)
def test_no_document_is_lost_between_two_powers_of_two(documents):
    rows = count(documents).doublings()
    assert sum(row[1] for row in rows) == len(documents)
    assert sum(row[2] for row in rows) == sum(documents)
    for bound, number, _ in rows:
        assert number == sum(bound // 2 < tokens <= bound for tokens in documents)


@given(DOCUMENTS, st.sampled_from([1, 25, 50, 90, 99.9, 100]))
def test_a_percentile_is_the_least_length_that_bounds_so_many(documents, percent):
    least = count(documents).percentile(percent)
    share = [sum(tokens <= bound for tokens in documents) / len(documents) * 100 for bound in (least, least - 1)]
    assert share[0] >= percent - 1e-9
    assert share[1] < percent


def test_nothing_has_no_lengths():
    found = count_lengths([])
    assert (found.documents, found.tokens, found.percentile(50), found.doublings()) == (0, 0, 0, [])
    assert found.kept(512).tokens_cut == 0
