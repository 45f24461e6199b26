"""New families of names: which are told, and that a part of a new family is not."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.tables import NAME_COUNTS
from transforms.drift import names
from transforms.drift.parts import PART_NAMES
from transforms.storage.folder import OutputFolder


def publish(place, path, rows, schema):
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    place.publish(path, lambda file: pq.write_table(table, file) or 0)


@pytest.mark.parametrize(
    ("before", "gained", "expected"),
    [
        ([], [("family", "qz_", 20, 3, 3)], ["qz_"]),
        ([], [("family", "qz_", 19, 3, 3)], []),
        ([], [("family", "qz_", 20, 2, 3)], []),
        ([], [("family", "qz_", 20, 3, 2)], []),
        ([], [("namespace", "qz", 20, 3, 0)], ["qz"]),
        ([("family", "qz_", 1, 1)], [("family", "qz_", 20, 4, 3)], ["qz_"]),
        ([("family", "qz_", 2, 1)], [("family", "qz_", 20, 4, 3)], []),
        ([], [("family", "qz_", 30, 3, 3), ("family", "qz_http_", 25, 3, 3)], ["qz_"]),
        ([("family", "qz_", 99, 9)], [("family", "qz_", 30, 3, 3), ("family", "qz_io_", 25, 3, 3)], ["qz_io_"]),
        ([], [("family", name, 25, 3, 3) for name in ("cu", "cuMem", "cudnn")], ["cu", "cudnn"]),
        ([], [("family", "qz_", 30, 3, 3), ("namespace", "qz_", 25, 3, 0)], ["qz_", "qz_"]),
    ],
)
def test_a_family_is_new_if_it_is_frequent_in_several_documents_and_was_not_before(
    before, gained, expected, monkeypatch, tmp_path
):
    out, old = OutputFolder(tmp_path / "out"), OutputFolder(tmp_path / "old")
    publish(old, names.TOTALS, before, NAME_COUNTS)
    publish(out, "gained.parquet", gained, PART_NAMES)
    monkeypatch.setattr(names, "open_names", lambda place, name: lambda: place.open_ranges(name))
    assert [family.name for family in names.merge_names(out, old, gained=["gained.parquet"], lost=[])] == expected


def test_what_is_lost_is_taken_away_and_a_name_without_hits_is_left_out(monkeypatch, tmp_path):
    out, old = OutputFolder(tmp_path / "out"), OutputFolder(tmp_path / "old")
    publish(old, names.TOTALS, [("family", "ab_", 30, 3), ("family", "qz_", 5, 2)], NAME_COUNTS)
    publish(old, "lost.parquet", [("family", "ab_", 10, 1, 3), ("family", "qz_", 5, 2, 1)], PART_NAMES)
    publish(out, "gained.parquet", [("family", "ab_", 1, 1, 1), ("family", "zz_", 2, 1, 1)], PART_NAMES)
    monkeypatch.setattr(names, "open_names", lambda place, name: lambda: place.open_ranges(name))
    assert names.merge_names(out, old, gained=["gained.parquet"], lost=["lost.parquet"]) == []
    totals = pq.read_table(tmp_path / "out" / names.TOTALS)
    rows = [("family", "ab_", 21, 3), ("family", "zz_", 2, 1)]
    assert totals.to_pylist() == [dict(zip(NAME_COUNTS.names, row, strict=True)) for row in rows]
