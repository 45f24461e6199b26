"""Publishing is atomic, digests are remembered only for unchanged files, and one run writes at a time."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import IntegrityError, LockedError
from schemas.units import Stage, Unit, UnitReceipt
from transforms.storage.folder import OutputFolder
from transforms.storage.urls import OBJECTS


def a_unit(key="a" * 64):
    return Unit(stage=Stage.DRIFT, key=key, num_bytes=3, label="unit", payload={})


def test_a_published_file_is_described_truly(out):
    output = out.publish("tokens/part-0.parquet", lambda path: path.write_bytes(b"abc"))
    assert (output.path, output.num_bytes, output.rows) == ("tokens/part-0.parquet", 3, 3)
    assert output.sha256 == hashlib.sha256(b"abc").hexdigest() == out.digest(output.path) == out.hash(output.path)
    assert out.read_bytes(output.path) == b"abc"
    assert out.describe(output.path, rows=3) == output
    assert (out.exists(output.path), out.store.status(output.path).num_bytes) == (True, 3)
    assert out.where(output.path) == f"{out.root}/tokens/part-0.parquet"


def test_a_file_that_has_the_bytes_already_is_not_written_again(out):
    out.publish_changed("index.json", b"abc")
    before = out.store.status("index.json")
    out.publish_changed("index.json", b"abc")
    assert (out.read_bytes("index.json"), out.store.status("index.json")) == (b"abc", before)
    out.publish_changed("index.json", b"abd")
    assert out.read_bytes("index.json") == b"abd"


def test_a_file_can_be_read_as_a_path_and_by_ranges(out):
    out.publish_bytes("tokenizer/manifest.json", b"abcdef")
    out.publish_bytes("tokenizer/deeper/x", b"")
    with out.open_local("tokenizer/manifest.json") as path:
        assert (path.name, path.read_bytes()) == ("manifest.json", b"abcdef")
    with out.open_local_folder("tokenizer") as folder:
        assert (folder / "manifest.json").read_bytes() == b"abcdef"
    with out.open_ranges("tokenizer/manifest.json") as file:
        assert (file.size(), file.read_at(2, 3)) == (6, b"de")


def test_a_missing_file_is_reported_by_each_way_to_read_it(out):
    assert (out.exists("a"), out.digest("a"), out.store.present(["a", "b/c"])) == (False, None, set())
    assert list(out.files()) == list(out.files("a")) == []
    out.remove("a")
    out.remove_folder("b")
    for read in (out.read_bytes, out.describe, out.hash):
        with pytest.raises(FileNotFoundError):
            read("a")
    for opened in (out.open_local, out.open_ranges):
        with pytest.raises(FileNotFoundError), opened("a"):
            pass


class Gone(io.BytesIO):
    """A large object of a store that answers only who opens it, with an error that does not name the object."""

    size = 1 << 30

    def read(self, *_):
        raise FileNotFoundError("None")


@pytest.fixture
def gone(monkeypatch):
    """A place whose objects are gone when they are read."""
    system = SimpleNamespace(cat_file=Gone().read, open=lambda *_, **__: Gone())
    monkeypatch.setitem(OBJECTS, "s3", lambda: SimpleNamespace(system=system, download=Gone().read))
    return OutputFolder("s3://bucket/out")


@pytest.mark.parametrize("way", ["read_bytes", "hash", "open_ranges"])
def test_an_object_that_went_is_named_by_each_way_to_read_it(gone, way):
    with pytest.raises(FileNotFoundError) as caught:
        if way == "open_ranges":
            with gone.open_ranges("tokens/a") as file:
                file.read_at(8, 0)
        else:
            getattr(gone, way)("tokens/a")
    assert caught.value.filename == "s3://bucket/out/tokens/a"


def test_a_writer_that_fails_leaves_nothing(out):
    def write(path):
        path.write_bytes(b"half")
        raise RuntimeError("disk on fire")

    before = set(out.temporary.iterdir())
    with pytest.raises(RuntimeError):
        out.publish("tokens/part-0.parquet", write)
    assert list(out.files()) == []
    assert set(out.temporary.iterdir()) == before


def test_a_receipt_counts_only_while_its_outputs_are_intact(out):
    output = out.publish_bytes("tokens/part-0.parquet", b"abc")
    out.publish_receipt(UnitReceipt(stage=Stage.DRIFT, key=a_unit().key, outputs=(output,), totals={}))
    assert out.find_receipt(a_unit()) is not None
    assert out.find_receipt(a_unit("b" * 64)) is None
    out.publish_bytes(output.path, b"abd")
    assert out.find_receipt(a_unit()) is None
    out.remove(output.path)
    assert out.find_receipt(a_unit()) is None


def test_a_receipt_of_counts_that_go_while_they_are_looked_at_does_not_count(out, monkeypatch):
    unit = Unit(stage=Stage.SCAN, key="a" * 64, num_bytes=3, label="unit", payload={})
    counts = out.publish(f"counts/parts/words-{unit.key}.parquet", write_table)
    out.publish_receipt(
        UnitReceipt(stage=unit.stage, key=unit.key, outputs=(counts,), totals={}, inputs={"documents/a": "b" * 64})
    )
    assert out.find_receipt(unit) is not None

    def open_ranges(name):
        raise FileNotFoundError(2, "No such file", name)

    monkeypatch.setattr(out.store, "open_ranges", open_ranges)
    assert out.find_receipt(unit) is None


def write_table(path):
    pq.write_table(pa.table({"count": [1]}), path)
    return 1


def test_a_unit_whose_files_are_damaged_publishes_them_again_once_withdrawn(out):
    unit = replace(a_unit(), stage=Stage.TOKENIZE)
    name = f"tokens/part-{unit.key}.parquet"
    totals = {"documents": 0, "bytes": 0, "max_token_id": 0, "control_text": {}}
    written = partial(UnitReceipt, stage=unit.stage, key=unit.key, inputs={"documents/part-0.parquet": "0" * 64})
    damaged = out.publish_bytes(name, b"abd")
    out.publish_receipt(written(outputs=(damaged,), totals={**totals, "tokens": 0}))
    out.withdraw([unit, replace(unit, key="b" * 64)])
    output = out.publish_bytes(name, b"abc")
    out.publish_receipt(written(outputs=(output,), totals={**totals, "tokens": 1}))
    receipt = out.find_receipt(unit)
    assert receipt is not None
    assert (receipt.totals["tokens"], out.read_bytes(name)) == (1, b"abc")


def test_digests_are_remembered_for_files_that_still_exist(out):
    for name in ("tokens/file", "tokens/gone"):
        out.publish_bytes(name, b"abc")
        out.digest(name)
    out.remove("tokens/gone")
    out.save_digests()
    assert list(json.loads(out.read_bytes(".cache/digests.json"))["files"]) == ["tokens/file"]
    again = OutputFolder(out.root)
    again.load_digests()
    out.publish_bytes("tokens/file", b"xyz!")
    assert again.digest("tokens/file") == hashlib.sha256(b"xyz!").hexdigest()


def test_remembered_digests_that_were_damaged_are_forgotten(out):
    out.publish_bytes("tokens/file", b"abc")
    digest = out.digest("tokens/file")
    out.save_digests()
    data = out.read_bytes(".cache/digests.json")
    damaged = data.replace(f'"{digest}"]'.encode(), f'"{digest[:-1]}{int(digest[-1], 16) ^ 1:x}"]'.encode())
    assert damaged != data
    out.publish_bytes(".cache/digests.json", damaged)
    again = OutputFolder(out.root)
    again.load_digests()
    assert again.digest("tokens/file") == digest


@pytest.mark.parametrize(("name", "is_remembered"), [("tokens/file", True), ("tokenizer/file", False), ("file", False)])
def test_digests_are_remembered_by_size_and_time_but_those_of_small_files(tmp_path, name, is_remembered):
    out, path = OutputFolder(tmp_path), tmp_path / name
    out.publish_bytes(name, b"abc")
    first, changed = out.digest(name), hashlib.sha256(b"xyz").hexdigest()
    out.save_digests()
    again = OutputFolder(out.root)
    again.load_digests()
    status = path.stat()
    path.write_bytes(b"xyz")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert again.digest(name) == (first if is_remembered else changed), "same size and time"
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert again.digest(name) == changed, "another time: read again"


def test_files_leave_out_the_cache_and_the_lock(out):
    out.publish_bytes("b/two", b"")
    out.publish_bytes("a", b"")
    out.publish_bytes(".cache/x", b"")
    with out.store.lock():
        assert list(out.files()) == ["a", "b/two"]
    assert list(out.files("b")) == ["b/two"]
    assert list(out.files(".cache")) == [".cache/x"]
    assert out.store.present(["a", "b/two", "b/three", "c/x"]) == {"a", "b/two"}
    out.remove_folder("b")
    assert list(out.files()) == ["a"]


def test_the_folder_is_pickled_as_its_place_alone(out):
    out.publish_bytes("a", b"")
    out.digest("a")
    copy = pickle.loads(pickle.dumps(out))
    assert (copy, hash(copy)) == (out, hash(out))
    assert len(pickle.dumps(out)) < 500


@pytest.mark.usefixtures("short_lease")
def test_two_runs_cannot_write_at_once(out):
    with out.store.lock(), pytest.raises(LockedError, match="another run is writing here"):
        OutputFolder(out.root).store.lock()
    with out.store.lock():
        pass


def test_the_lock_of_a_dead_process_is_free(out):
    code = (
        "import os, sys; import transforms.storage.lease; from transforms.storage.folder import OutputFolder; "
        "transforms.storage.lease.LEASE_SECONDS = 1; OutputFolder(sys.argv[1]).store.lock(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, out.root], check=False)
    assert done.returncode == -9
    with out.store.lock():
        out.publish_bytes("a", b"")


@pytest.fixture
def short_lease(monkeypatch):
    monkeypatch.setattr("transforms.storage.lease.LEASE_SECONDS", 1.0)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"no table, of no kind", b"PAR1" + bytes(40) + b"PAR1"])
def test_a_damaged_table_is_named(out, data):
    out.publish_bytes("counts/terms.parquet", data)
    with (
        pytest.raises(IntegrityError, match=r"counts/terms.parquet: damaged \("),
        out.open_ranges("counts/terms.parquet") as file,
    ):
        pq.read_table(file)


def test_a_table_whose_column_has_a_name_that_is_not_utf_8_is_named(out, tmp_path):
    pq.write_table(pa.table({"token_ids": [[1, 2], []]}), tmp_path / "table")
    data = (tmp_path / "table").read_bytes()
    place = data.rindex(b"token_ids", 0, data.rindex(b"ARROW:schema"))
    out.publish_bytes("part.parquet", data[:place] + b"\xdf" + data[place + 1 :])
    with (
        pytest.raises(IntegrityError, match=r"part.parquet: damaged \('utf-8' codec can't decode"),
        out.open_ranges("part.parquet") as file,
    ):
        str(pq.ParquetFile(file).metadata.row_group(0).column(0).path_in_schema)


def test_permissions_are_what_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        OutputFolder(tmp_path / "out").publish_bytes("tokens/part-0.parquet", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "out/tokens/part-0.parquet").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(("inputs", "is_found"), [({"documents/part-0.parquet": "2" * 64}, True), ({}, False)])
def test_the_receipt_of_a_unit_with_inputs_has_them(out, inputs, is_found):
    planned = {"inputs": {"documents/part-0.parquet": "2" * 64}}
    unit = replace(a_unit(), stage=Stage.SCAN, payload=planned)
    table = pa.table({"word": ["x"]})
    counts = out.publish(f"counts/parts/words-{unit.key}.parquet", lambda place: pq.write_table(table, place) or 1)
    out.publish_receipt(UnitReceipt(stage=unit.stage, key=unit.key, outputs=(counts,), totals={}, inputs=inputs))
    assert (out.find_receipt(unit) is not None) is is_found


def test_a_device_is_no_file_and_is_not_read_without_end(tmp_path):
    (tmp_path / "receipt.json").symlink_to("/dev/zero")
    with pytest.raises(FileNotFoundError, match="a pipe, a socket or a device is no file"):
        OutputFolder(tmp_path).read_bytes("receipt.json")


def test_nothing_behind_a_link_is_a_file_of_the_folder(tmp_path):
    out, behind = OutputFolder(tmp_path / "out"), OutputFolder(tmp_path / "behind")
    out.publish_bytes("tokens/part-0.parquet", b"x")
    behind.publish_bytes("part-0.parquet", b"x")
    (tmp_path / "out/linked").symlink_to(tmp_path / "behind")
    (tmp_path / "out/tokens/part-1.parquet").symlink_to(tmp_path / "behind/part-0.parquet")
    names = ["tokens/part-0.parquet", "tokens/part-1.parquet", "linked", "linked/part-0.parquet"]
    assert [out.exists(name) for name in names] == [True, False, False, False]


def test_a_folder_in_the_place_of_a_table_is_an_error_with_its_name(tmp_path):
    (tmp_path / "part-0.parquet").mkdir()
    with pytest.raises(IsADirectoryError) as found, OutputFolder(tmp_path).open_ranges("part-0.parquet"):
        pass
    assert found.value.filename == str(tmp_path / "part-0.parquet")
