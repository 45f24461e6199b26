"""Partial counts merge to the same files however the documents were cut into shards."""

from functools import partial

import pytest

import transforms.units.sorted_runs
from transforms.scan.count import scan_units
from transforms.scan.kinds import count_kinds
from transforms.scan.merge import publish_groups, publish_merged, refer_counts
from transforms.scan.tables import read_counts
from transforms.storage.folder import OutputFolder


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
        rows = [row for name in names for row in read_counts(out, name).to_pylist()]
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
