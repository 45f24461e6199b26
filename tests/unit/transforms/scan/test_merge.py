"""Partial counts merge to the same files however the documents were cut into shards."""

import io
import re
import resource
from functools import partial

import pyarrow.parquet as pq
import pytest

import transforms.units.sorted_runs
from schemas.errors import IntegrityError
from transforms.scan.count import scan_units
from transforms.scan.kinds import Family, count_kinds
from transforms.scan.merge import publish_groups, publish_merged, refer_counts
from transforms.scan.tables import read_counts
from transforms.storage.folder import OutputFolder
from transforms.units.sorted_runs import num_open_files


@pytest.fixture
def counted(write_shards, scan_settings):
    return partial(count_and_merge, write_shards, scan_settings)


def count_and_merge(write_shards, scan_settings, out, *, shards, groups=1, **options):
    """Scan the texts and merge the counts, in groups first if there are several; return the merged files."""
    settings = scan_settings(out, **options)
    before = set(out.temporary.iterdir())
    parts = {}
    for receipt in scan_units(write_shards(out, shards), settings):
        for kind, part in refer_counts(receipt, settings):
            parts.setdefault(kind, []).append(part)
    if groups > 1:
        listed = [(kind, found[first::groups]) for kind, found in parts.items() for first in range(groups)]
        parts = {}
        for kind, part in publish_groups(listed, settings):
            parts.setdefault(kind, []).append(part)
    assert sorted(parts) == sorted(
        kind.name for kind in count_kinds(word_partitions=settings.word_partitions, lines=True)
    )
    paths = publish_merged(list(parts.items()), settings)
    assert set(out.temporary.iterdir()) == before
    return {path: out.read_bytes(path) for path in paths}


def test_merged_files_do_not_depend_on_shards_threads_or_memory(out, counted, texts):
    expected = counted(out, shards=1)
    for kind in ("words", "units"):
        names = [path for path in expected if f"/{kind}/" in path]
        rows = [row for name in names for row in pq.read_table(io.BytesIO(expected[name])).to_pylist()]
        assert sum(len(row["word"]) * row["count"] for row in rows) == sum(map(len, texts))
        assert len(rows) == len({row["word"] for row in rows}) > 100
    for shards, threads, memory_bytes in [(1, 2, 0), (2, 1, 0), (5, 2, 1 << 30), (7, 3, 5000)]:
        other = OutputFolder(f"{out.root}-{shards}-{threads}")
        found = counted(other, shards=shards, threads=threads, memory_bytes=memory_bytes)
        assert found == expected, (shards, threads, memory_bytes)


def test_merged_files_do_not_depend_on_groups_and_temporary_files(out, counted, monkeypatch):
    expected = counted(out, shards=1)
    monkeypatch.setattr(transforms.units.sorted_runs, "MAX_RUNS", 2)
    monkeypatch.setattr(transforms.units.sorted_runs, "BATCH_ROWS", 3)
    assert counted(OutputFolder(f"{out.root}-few"), shards=7) == expected
    assert counted(OutputFolder(f"{out.root}-groups"), shards=7, groups=3) == expected


def test_merges_of_all_threads_open_no_more_files_than_the_process_may(tmp_path, counted, limited):
    expected = counted(OutputFolder(tmp_path / "one"), shards=1)
    limited(resource.RLIMIT_NOFILE, num_open_files() + 60)
    assert counted(OutputFolder(tmp_path / "many"), shards=60, threads=8) == expected
    assert counted(OutputFolder(tmp_path / "groups"), shards=60, threads=8, groups=2) == expected


def without(column):
    return lambda table: table.drop_columns([column])


def backwards(table):
    return table.take(list(range(len(table)))[::-1])


@pytest.mark.parametrize(
    ("family", "change", "named"),
    [
        (Family.NAMESPACES, backwards, "/counts/parts/namespaces-*.parquet: damaged (the rows of a run are not sorted"),
        (Family.WORDS, backwards, "/counts/parts/words-*.parquet: damaged ("),
        (Family.WORDS, without("word"), "/counts/parts/words-0.parquet: damaged (it has 0 columns word)"),
        (Family.STATISTICS, without("name"), "/counts/parts/statistics-0.parquet: damaged (it has 0 columns name)"),
    ],
)
def test_damaged_counts_of_shards_are_named(tmp_path, monkeypatch, write_shards, scan_settings, family, change, named):
    monkeypatch.setattr(OutputFolder, "check_bytes", lambda *_: None)  # as if their digests were true
    out = OutputFolder(tmp_path)
    settings = scan_settings(out)
    receipts = list(scan_units(write_shards(out, 1), settings))
    (path,) = tmp_path.glob(f"counts/parts/{family}-*.parquet")
    pq.write_table(change(pq.read_table(path, partitioning=None)), path, write_statistics=["partition"])
    with pytest.raises(IntegrityError, match=re.escape(named)):
        parts = [(kind, [part]) for receipt in receipts for kind, part in refer_counts(receipt, settings)]
        publish_merged(parts, settings)


def test_merged_counts_without_a_column_are_named(tmp_path, counted):
    out, path = OutputFolder(tmp_path), tmp_path / "counts/terms.parquet"
    counted(out, shards=1)
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["documents"]), path)
    with pytest.raises(IntegrityError, match=r"/counts/terms.parquet: damaged \(it has 0 columns documents"):
        read_counts(out, Family.TERMS)
