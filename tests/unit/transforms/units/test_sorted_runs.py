"""Sorted runs merge to what sorting all rows at once gives, with few files open and few rows in memory."""

import resource
from collections import Counter
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import transforms.units.sorted_runs
from transforms.units.sorted_runs import merge_runs, merges_at_once, read_run

KEYS = ["name", "project"]
SCHEMA = pa.schema({"name": pa.string(), "project": pa.string(), "hits": pa.uint64()})
NAMES = st.sampled_from(["", "A", "a", "a/b", "a-b", "\u00e9", "\uff5e", "\U0001f600"])
COUNTS = st.dictionaries(st.tuples(NAMES, NAMES), st.integers(1, 2**40), max_size=9)
any_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


@pytest.fixture(autouse=True)
def small_merges(monkeypatch):
    monkeypatch.setattr(transforms.units.sorted_runs, "BATCH_ROWS", 2)
    monkeypatch.setattr(transforms.units.sorted_runs, "MAX_RUNS", 3)


def add_up(block):
    summed = block.group_by(KEYS, use_threads=False).aggregate([("hits", "sum")]).rename_columns(SCHEMA.names)
    return summed.sort_by([(key, "ascending") for key in KEYS])


class Files:
    """Files of runs, and how many of them are open."""

    def __init__(self, folder, parts):
        self.paths = [folder / f"run-{number}" for number in range(len(parts))]
        self.open, self.most_open = 0, 0
        for path, counts in zip(self.paths, parts, strict=True):
            rows = [(*key, counts[key]) for key in sorted(counts, key=lambda key: [name.encode() for name in key])]
            pq.write_table(
                pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA), path
            )

    @contextmanager
    def read(self, path):
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        with pa.OSFile(str(path)) as file:
            yield file
        self.open -= 1

    def merge(self, folder):
        runs = [read_run(lambda path=path: self.read(path), SCHEMA) for path in self.paths]
        return list(merge_runs(runs, keys=KEYS, schema=SCHEMA, combine=add_up, folder=folder))


@any_folder
@given(st.lists(COUNTS, max_size=11))
def test_runs_of_any_number_add_up_and_come_out_in_order(tmp_path, parts):
    files = Files(tmp_path, parts)
    rows = [tuple(row.values()) for table in files.merge(tmp_path) for row in table.to_pylist()]
    total = sum(map(Counter, parts), Counter())
    expected = sorted(total, key=lambda key: [name.encode() for name in key])
    assert rows == [(*key, total[key]) for key in expected]
    assert (files.open, files.most_open <= 3) == (0, True)
    assert all(path.name.startswith("run-") for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("limit", "open_files", "threads", "num_runs", "expected"),
    [
        (1024, 10, 16, 128, 7),
        (1024, 400, 16, 128, 4),
        (1024, 10, 16, 20, 16),
        (256, 10, 8, 128, 1),
        (64, 63, 8, 128, 1),
        (3, 3, 1, 0, 1),
        (resource.RLIM_INFINITY, 10, 8, 128, 8),
    ],
)
def test_merges_share_the_files_that_may_be_open(monkeypatch, limit, open_files, threads, num_runs, expected):
    monkeypatch.setattr(transforms.units.sorted_runs, "MAX_RUNS", 128)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))
    monkeypatch.setattr(transforms.units.sorted_runs, "num_open_files", lambda: open_files)
    assert merges_at_once(threads, num_runs) == expected


def test_a_table_has_at_most_one_batch_of_each_run(tmp_path):
    parts = [{(f"{number:03d}", str(part)): 1 for number in range(part, 60, 3)} for part in range(3)]
    tables = Files(tmp_path, parts).merge(tmp_path)
    assert sum(table.num_rows for table in tables) == 60
    assert max(table.num_rows for table in tables) <= 2 * 3
