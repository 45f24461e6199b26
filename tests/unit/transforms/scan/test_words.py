"""Word counts in files: what goes in comes out, summed, however it was cut into files, batches and partitions."""

import errno
import os
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import transforms.scan.words
import transforms.units.sorted_runs
from schemas.errors import IntegrityError, ResourceError
from schemas.tables import PARTITIONED_WORDS, WORDS
from transforms.scan.words import WordRun, find_runs, merge_words, write_partitions, write_words
from transforms.storage.folder import naming_damage
from transforms.units.batches import fixed_row_groups

COUNTS = st.dictionaries(st.binary(max_size=4), st.integers(1, 2**40), max_size=12)
any_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(transforms.scan.words, "ROW_GROUP_ROWS", 3)
    monkeypatch.setattr(transforms.units.sorted_runs, "MAX_RUNS", 3)


def words(counts, rows=2):
    table = pa.Table.from_pydict({"word": sorted(counts), "count": [counts[word] for word in sorted(counts)]}, WORDS)
    return table.to_batches(max_chunksize=rows)


def write_run(path, counts):
    write_words(path, words(counts))
    return word_run(path, range(pq.read_metadata(path).num_row_groups))


def word_run(path, row_groups):
    return WordRun(open_file=lambda: pa.OSFile(str(path)), row_groups=tuple(row_groups))


def read(path):
    table = pq.read_table(path, partitioning=None)
    assert table.schema.equals(WORDS)
    return list(zip(*table.to_pydict().values(), strict=True))


@any_folder
@given(st.lists(COUNTS, max_size=11))
def test_runs_of_any_number_add_up_and_come_out_sorted(tmp_path, parts):
    runs = [write_run(tmp_path / f"{number}", part) for number, part in enumerate(parts)]
    rows = merge_words(runs, tmp_path / "merged")
    total = sum(map(Counter, parts), Counter())
    assert read(tmp_path / "merged") == sorted(total.items())
    assert rows == len(total)
    assert {path.name for path in tmp_path.iterdir()} <= {"merged", *map(str, range(11))}


@any_folder
@given(st.dictionaries(st.integers(0, 5), COUNTS.filter(bool)))
def test_a_shards_partitions_are_found_again(tmp_path, partitions):
    path = tmp_path / "part"
    batches = [
        pa.record_batch([pa.array([number] * batch.num_rows, pa.uint16()), *batch.columns], schema=PARTITIONED_WORDS)
        for number in sorted(partitions)
        for batch in words(partitions[number])
    ]
    assert write_partitions(path, batches) == sum(map(len, partitions.values()))
    with pa.OSFile(str(path)) as file:
        runs = find_runs(file, where="here")
    found = {number: word_run(path, groups).open().read_all() for number, groups in runs.items()}
    assert {
        number: dict(zip(*table.to_pydict().values(), strict=True)) for number, table in found.items()
    } == partitions
    groups = [group for number in sorted(runs) for group in runs[number]]
    assert groups == list(range(pq.read_metadata(path).num_row_groups))


@given(st.lists(st.integers(0, 10), max_size=10))
def test_row_groups_do_not_depend_on_how_batches_were_cut(sizes):
    rows = [{"word": b"%03d" % number, "count": number} for number in range(sum(sizes))]
    table = pa.Table.from_pylist(rows, WORDS)
    bounds = [sum(sizes[:end]) for end in range(len(sizes) + 1)]
    batches = [table.slice(start, stop - start).combine_chunks() for start, stop in pairwise(bounds)]
    groups = list(fixed_row_groups([batch for part in batches for batch in part.to_batches()], 3))
    assert [group.num_rows for group in groups[:-1]] == [3] * (len(groups) - 1)
    assert all(0 < group.num_rows <= 3 and group.column("word").num_chunks == 1 for group in groups)
    assert [row for group in groups for row in group.to_pylist()] == rows


def test_the_file_of_a_merge_is_the_same_however_words_were_cut_into_runs(tmp_path):
    counts = {b"%d" % number: 6 for number in range(20)}
    merge_words([write_run(tmp_path / "one", counts)], tmp_path / "first")
    halves = [dict.fromkeys(counts, 3)] * 2
    thirds = [dict.fromkeys(sorted(counts)[part::3], 6) for part in range(3)]
    for parts in (halves, thirds):
        runs = [write_run(tmp_path / f"{number}", part) for number, part in enumerate(parts)]
        merge_words(runs[::-1], tmp_path / "second")
        assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_no_runs_give_an_empty_file(tmp_path):
    assert merge_words([], tmp_path / "merged") == 0
    assert read(tmp_path / "merged") == []


def test_a_file_without_partitions_is_refused_by_name(tmp_path):
    write_run(tmp_path / "words", {b"a": 1})
    with (
        pa.OSFile(str(tmp_path / "words")) as file,
        pytest.raises(IntegrityError, match="words: row group 0 has no statistics of its partition"),
    ):
        find_runs(file, where="words")


@pytest.mark.parametrize(
    ("number", "error", "said"),
    [
        (errno.EMFILE, ResourceError, r"^no more files can be open at once \(ulimit -n: \S+\); "),
        (errno.ENOENT, IntegrityError, r"^parts: damaged \(run 0: [^\n]*\[Errno 2\] [^\n]*\); restore it"),
    ],
)
def test_what_fails_within_a_run_is_one_line(tmp_path, number, error, said):
    def fails():
        raise OSError(number, os.strerror(number))

    with pytest.raises(error, match=said) as raised, naming_damage("parts"):
        merge_words([WordRun(open_file=fails, row_groups=(0,))], tmp_path / "out.parquet")
    assert "Traceback" not in str(raised.value)
