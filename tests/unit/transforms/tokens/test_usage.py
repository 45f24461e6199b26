"""What token shards hold: the counts of a plain count, however the rows are cut into batches."""

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables import tokens_schema
from transforms.tokens.usage import ProjectUsage, Usage, count_usage

VOCAB_SIZE = 300
SCHEMA = tokens_schema(VOCAB_SIZE, prefix=False)

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "ü"]),
        st.integers(0, 2**40),
        st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=5),
        st.lists(st.integers(1, 112), max_size=3, unique=True),
    ),
    max_size=12,
)


def batch(rows):
    columns = {name: [""] * len(rows) for name in ("doc_id", "path", "platform_info")}
    columns |= {
        "project": [row[0] for row in rows],
        "num_bytes": [row[1] for row in rows],
        "num_tokens": [len(row[2]) for row in rows],
        "token_ids": [row[2] for row in rows],
        "platform_ids": [sorted(row[3]) for row in rows],
    }
    return pa.RecordBatch.from_pydict({field.name: columns[field.name] for field in SCHEMA}, SCHEMA)


@given(ROWS, st.integers(0, 12))
def test_the_counts_are_those_of_the_rows(rows, cut):
    usage = count_usage([batch(rows[:cut]), batch(rows[cut:])], VOCAB_SIZE)
    ids = Counter(i for row in rows for i in row[2])
    assert usage.ids.tolist() == [ids[i] for i in range(VOCAB_SIZE)]
    assert usage.lengths == dict(Counter(len(row[2]) for row in rows))
    platforms = Counter(i for row in rows for i in (row[3] or [0]))
    assert {i: n for i, n in enumerate(usage.platforms.tolist()) if n} == dict(platforms)
    for name in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == name]
        expected = ProjectUsage(len(own), sum(row[1] for row in own), sum(len(row[2]) for row in own))
        assert usage.projects[name] == expected
    assert usage.total.documents == len(rows)


@given(ROWS, ROWS)
def test_usages_add_up(rows, others):
    whole = count_usage([batch([*rows, *others])], VOCAB_SIZE)
    added = count_usage([batch(rows)], VOCAB_SIZE)
    added.add(count_usage([batch(others)], VOCAB_SIZE))
    assert np.array_equal(added.ids, whole.ids)
    assert np.array_equal(added.platforms, whole.platforms)
    assert (added.projects, added.lengths) == (whole.projects, whole.lengths)


def test_a_slice_of_a_batch_counts_as_its_rows_alone():
    rows = [("a", 3, [1, 2], [5]), ("b", 4, [2], []), ("a", 5, [7, 7, 7], [5, 6])]
    usage = count_usage([batch(rows).slice(1, 1)], VOCAB_SIZE)
    assert (usage.total, usage.lengths) == (ProjectUsage(1, 4, 1), {1: 1})
    assert usage.ids.nonzero()[0].tolist() == [2]
    assert usage.platforms.nonzero()[0].tolist() == [0]


def test_nothing_is_a_usage():
    usage = Usage.empty(VOCAB_SIZE)
    assert (usage.total, usage.distribution.documents) == (ProjectUsage(), 0)


def test_lengths_are_a_distribution():
    usage = count_usage([batch([("a", 0, [1] * length, []) for length in (3, 1, 3)])], VOCAB_SIZE)
    assert (usage.distribution.lengths.tolist(), usage.distribution.counts.tolist()) == ([1, 3], [1, 2])
