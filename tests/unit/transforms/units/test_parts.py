"""Parts merge to one file in the order of units and rows, whatever their number and however they overlap."""

import random

import pyarrow as pa
import pytest

import transforms.units.parts
import transforms.units.sorted_runs
from schemas.tables import DUPLICATES, NEAR_DUPLICATES
from transforms.storage.folder import OutputFolder
from transforms.units.flow import run_flow
from transforms.units.parts import (
    clear_parts,
    is_whole,
    merge_parts,
    read_parts,
    read_rows,
    rows_by_unit,
    write_parts,
    write_rows,
)

PLACES = [(unit, row) for unit in (0, 1, 2, 5, 9) for row in range(0, 40, unit + 1)]
TABLES = {
    "duplicates": pa.Table.from_pylist(
        [{"unit": unit, "row": row, "kept_unit": 0, "kept_row": row} for unit, row in PLACES], DUPLICATES
    ),
    "near-duplicates": pa.Table.from_pylist(
        [{"unit": unit, "row": row, "kept": f"{row:064x}", "similarity": 0.5} for unit, row in PLACES], NEAR_DUPLICATES
    ),
}


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]


@pytest.fixture
def merged(out, table, monkeypatch):
    """The path of the file that eleven parts, merged three at a time, become."""
    monkeypatch.setattr(transforms.units.parts, "ROW_GROUP_ROWS", 16)
    monkeypatch.setattr(transforms.units.sorted_runs, "BATCH_ROWS", 4)
    monkeypatch.setattr(transforms.units.sorted_runs, "MAX_RUNS", 3)
    places = random.Random(1).sample(range(table.num_rows), table.num_rows)
    batches = [(number, batch) for number in range(11) for batch in table.take(places[number::11]).to_batches()]
    assert len(dict(run_flow(write_parts(out, ".cache/parts", table.schema), batches))) == 11
    assert merge_parts(out, ".cache/parts", table.schema, ".cache/merged.parquet") == table.num_rows
    with out.open_local(".cache/merged.parquet") as path:
        yield path


def test_the_merged_file_is_in_order_and_has_all_rows(merged, table):
    units = {index: read_rows(merged, index) for index in range(10)}
    assert pa.concat_tables(units.values()).equals(table)
    assert [len(units[index]) for index in (0, 3, 9)] == [40, 0, 4]


def test_a_merged_file_is_whole_only_with_all_its_rows_and_its_name(merged, out, table):
    assert is_whole(out, ".cache/merged.parquet", table.schema)
    out.publish_bytes(".cache/other.parquet", merged.read_bytes())
    assert not is_whole(out, ".cache/other.parquet", table.schema)
    out.publish(".cache/merged.parquet", lambda path: write_rows(path, table.slice(1)))
    assert not is_whole(out, ".cache/merged.parquet", table.schema)


def test_no_damage_to_a_whole_file_hides_rows_of_a_unit(merged, tmp_path, table):
    data, folder = merged.read_bytes(), OutputFolder(tmp_path)
    footer, refused = len(data) - 8 - int.from_bytes(data[-8:-4], "little"), 0
    path = tmp_path / ".cache/merged.parquet"
    path.parent.mkdir(exist_ok=True)
    for place in range(footer, len(data), 11):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        if not is_whole(folder, ".cache/merged.parquet", table.schema):
            refused += 1
        else:
            assert pa.concat_tables(read_rows(path, index) for index in (0, 1, 2, 5, 9)).equals(table)
    assert refused > 30


def test_units_come_one_after_the_other_each_with_all_its_rows(merged, table):
    found = dict(rows_by_unit(merged))
    assert list(found) == [0, 1, 2, 5, 9]
    assert pa.concat_tables(found.values()).equals(table)


def test_no_parts_make_an_empty_file(out):
    assert merge_parts(out, ".cache/none", DUPLICATES, ".cache/merged.parquet") == 0
    assert is_whole(out, ".cache/merged.parquet", DUPLICATES)
    with out.open_local(".cache/merged.parquet") as path:
        assert (list(rows_by_unit(path)), read_rows(path, 0).num_rows) == ([], 0)


@pytest.mark.parametrize("listed", ["nothing", "an old part"])
def test_parts_do_not_depend_on_what_a_store_lists(out, listed, monkeypatch):
    table = TABLES["duplicates"]
    folder, old, new = ".cache/parts", table.slice(0, 9), table.slice(9)
    write = write_parts(out, folder, table.schema)
    list(run_flow(write, [(7, batch) for batch in old.to_batches()]))
    stale = list(out.files(folder))
    with monkeypatch.context() as patch:
        if listed == "nothing":
            patch.setattr(type(out.store), "files", lambda *_: iter(()))
        else:
            patch.setattr(type(out.store), "files", lambda *_: iter(stale))
            patch.setattr(type(out.store), "remove_folder", lambda *_: None)
        clear_parts(out, folder)
        assert merge_parts(out, folder, table.schema, ".cache/none.parquet") == 0
        list(run_flow(write, [(2, batch) for batch in new.to_batches()]))
        assert merge_parts(out, folder, table.schema, ".cache/merged.parquet") == new.num_rows
        assert read_parts(out, folder, table.schema).equals(new)
