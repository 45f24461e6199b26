"""Platform ids must be sorted, distinct, few and known; the first row that is not so is named."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import IntegrityError
from schemas.tables import MAX_PLATFORM_IDS, PLATFORM_VOCAB_SIZE
from transforms.tokens.validate import _check_platforms

GOOD = st.sets(st.integers(1, PLATFORM_VOCAB_SIZE - 1), max_size=MAX_PLATFORM_IDS).map(sorted)
ANY = st.lists(st.integers(0, PLATFORM_VOCAB_SIZE + 1), max_size=4)
LONG = st.just(list(range(1, MAX_PLATFORM_IDS + 2)))


def is_good(ids):
    return (
        ids == sorted(set(ids))
        and len(ids) <= MAX_PLATFORM_IDS
        and all(0 < number < PLATFORM_VOCAB_SIZE for number in ids)
    )


@given(st.lists(GOOD | ANY | LONG, max_size=6), st.integers(0, 2))
def test_the_first_wrong_row_is_named_on_slices_too(lists, start):
    rows = pa.array(lists, pa.list_(pa.uint16())).slice(start)
    wrong = [row for row, ids in enumerate(lists[start:]) if not is_good(ids)]
    if not wrong:
        _check_platforms(rows, "here")
    else:
        with pytest.raises(IntegrityError, match=rf"here: row {wrong[0]} has platform ids \[.*\]; they must be sorted"):
            _check_platforms(rows, "here")
