"""Partial counts merge to the same totals however the documents were cut into shards."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.tables import DOCUMENTS, MORPHEMES, NAMESPACES, TERMS
from schemas.units import Stage, Unit
from transforms.scan.count import (
    ScanSettings,
    count_kinds,
    empty_counts,
    merge_counts,
    merged_path,
    nest_statistics,
    publish_merged,
    read_counts,
    read_documents,
    refer_counts,
    scan_units,
)
from transforms.storage.folder import OutputFolder

PARTITIONS = 3
CONFIG = {
    "pattern": "cpp-words-1",
    "unit_pattern": "cpp-lines-1",
    "word_partitions": PARTITIONS,
    "candidates": [{"term": "size", "category": "std", "match": "ident"}],
    "morphemes": [{"morpheme": "name", "position": "prefix"}],
}
TEXTS = [b"int name%d = a::size(%d);\n" % (number % 70, number) * 20 for number in range(200)]


def write_shards(out, number):
    """Write the texts as so many documents shards, and return their units."""
    units = []
    for shard in range(number):
        rows = [
            {**dict.fromkeys(DOCUMENTS.names), "doc_id": "", "path": "", "num_bytes": len(text), "platform_ids": []}
            | {"platform_info": "{}", "project": f"p{index % 2}", "content": text}
            for index, text in enumerate(TEXTS)
            if index % number == shard
        ]
        name = f"documents/part-{shard}.parquet"
        table = pa.Table.from_pylist(rows, DOCUMENTS)
        out.publish(name, lambda path, table=table: pq.write_table(table, path) or table.num_rows)
        payload = {"shard": name, "inputs": {}}
        units.append(Unit(stage=Stage.SCAN, key=f"{shard}", num_bytes=shard, label=name, payload=payload))
    return units


def scan_settings(out, **options):
    return ScanSettings(out=out, scanner_config=json.dumps(CONFIG), word_partitions=PARTITIONS, units=True, **options)


def counted(out, *, shards, **options):
    """Scan the texts and merge the counts; return the merged files."""
    settings = scan_settings(out, **options)
    parts = {}
    for receipt in scan_units(write_shards(out, shards), settings):
        for kind, part in refer_counts(receipt, settings):
            parts.setdefault(kind, []).append(part)
    assert sorted(parts) == sorted(count_kinds(settings))
    paths = publish_merged(list(parts.items()), settings)
    assert [path for path in out.temporary.iterdir() if path.name != ".lock"] == []
    return {path: out.read_bytes(path) for path in paths}


def test_merged_files_do_not_depend_on_shards_threads_or_memory(out):
    expected = counted(out, shards=1)
    for kind in ("words", "units"):
        names = [path for path in expected if f"/{kind}/" in path]
        rows = [row for name in names for row in read_counts(out, name).to_pylist()]
        assert sum(len(row["word"]) * row["count"] for row in rows) == sum(map(len, TEXTS))
        assert len(rows) == len({row["word"] for row in rows}) > 100
    for shards, threads, memory_bytes in [(1, 2, 0), (2, 1, 0), (5, 2, 1 << 30), (7, 3, 5000)]:
        other = OutputFolder(f"{out.root}-{shards}-{threads}")
        found = counted(other, shards=shards, threads=threads, memory_bytes=memory_bytes)
        assert found == expected, (shards, threads, memory_bytes)


def test_documents_read_ahead_are_the_same_and_a_missing_shard_is_told(tmp_path):
    out = OutputFolder(tmp_path)
    paths = [tmp_path / unit.payload["shard"] for unit in write_shards(out, 3)]
    for ahead in (False, True):
        batches = list(read_documents(paths, read_ahead=ahead))
        assert sorted(pa.Table.from_batches(batches)["content"].to_pylist()) == sorted(TEXTS)
        with pytest.raises(FileNotFoundError):
            list(read_documents([paths[0], tmp_path / "missing"], read_ahead=ahead))


def test_a_unit_that_stands_is_not_scanned_again(out):
    settings = scan_settings(out)
    units = write_shards(out, 2)
    first = scan_units(units, settings)
    out.remove(units[0].payload["shard"])
    assert scan_units(units, settings) == first
    with pytest.raises(FileNotFoundError):
        scan_units([Unit(**{**vars(units[0]), "key": "new"})], settings)


def test_projects_are_counted_once_however_many_shards_they_span():
    schema = empty_counts("terms").schema
    rows = [("dim3", "cuda", "a", 3, 2), ("dim3", "cuda", "b", 1, 1), ("SELECT", "sql", "a", 1, 1)]
    parts = [
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in part], schema=schema)
        for part in (rows, rows[:1], [])
    ]
    merged = merge_counts("terms", parts)
    assert merged.schema == TERMS
    assert [tuple(row.values()) for row in merged.to_pylist()] == [
        ("SELECT", "sql", 1, 1, 1),
        ("dim3", "cuda", 7, 5, 2),
    ]


@pytest.mark.parametrize(("kind", "schema"), [("terms", TERMS), ("morphemes", MORPHEMES), ("namespaces", NAMESPACES)])
def test_nothing_counted_still_gives_a_table(kind, schema):
    merged = merge_counts(kind, [empty_counts(kind)])
    assert merged.schema == schema
    assert merged.num_rows == 0


@pytest.mark.parametrize(("units", "files"), [(False, 20), (True, 36)])
def test_every_kind_has_a_file_of_its_own(tmp_path, units, files):
    kinds = count_kinds(ScanSettings(out=OutputFolder(tmp_path), scanner_config="{}", word_partitions=16, units=units))
    assert len({merged_path(kind) for kind in kinds}) == len(kinds) == files


def test_statistics_nest_by_their_dots():
    table = pa.table({"name": ["bytes.code", "bytes.comment", "documents"], "value": [1, 2, 3]})
    assert nest_statistics(table) == {"bytes": {"code": 1, "comment": 2}, "documents": 3}
