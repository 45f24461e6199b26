"""Publishing is all or nothing, digests are remembered only while nothing changed, and one run writes at a time."""

import hashlib
import os
import pickle
import subprocess
import sys

import pytest

from schemas.errors import LockedError
from schemas.units import Stage, Unit, UnitReceipt
from transforms.storage import OutputFolder


@pytest.fixture
def out(tmp_path):
    return OutputFolder(tmp_path / "out")


def a_unit(key="a" * 64):
    return Unit(stage=Stage.TOKENIZE, key=key, num_bytes=3, label="unit", payload={})


def test_a_published_file_is_described_truly(out):
    output = out.publish("tokens/part-0.parquet", lambda path: path.write_bytes(b"abc"))
    assert (output.path, output.num_bytes, output.rows) == ("tokens/part-0.parquet", 3, 3)
    assert output.sha256 == hashlib.sha256(b"abc").hexdigest()
    assert out.path(output.path).read_bytes() == b"abc"


def test_a_writer_that_fails_leaves_nothing(out):
    def write(path):
        path.write_bytes(b"half")
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError):
        out.publish("tokens/part-0.parquet", write)
    assert list(out.files()) == []
    assert list(out.path(".cache/tmp").iterdir()) == []


def test_a_receipt_stands_only_while_its_outputs_do(out):
    output = out.publish_bytes("tokens/part-0.parquet", b"abc")
    out.publish_receipt(UnitReceipt(stage=Stage.TOKENIZE, key=a_unit().key, outputs=(output,), totals={}))
    assert out.find_receipt(a_unit()) is not None
    assert out.find_receipt(a_unit("b" * 64)) is None
    out.path(output.path).write_bytes(b"abd")
    assert out.find_receipt(a_unit()) is None
    out.remove(output.path)
    assert out.find_receipt(a_unit()) is None


def test_digests_are_remembered_by_size_and_time(out):
    out.publish_bytes("file", b"abc")
    first = out.digest("file")
    out.save_digests()
    again = OutputFolder(out.root)
    again.load_digests()
    status = out.path("file").stat()
    out.path("file").write_bytes(b"xyz")
    os.utime(out.path("file"), ns=(status.st_atime_ns, status.st_mtime_ns))
    assert again.digest("file") == first, "same size and time: remembered"
    os.utime(out.path("file"), ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert again.digest("file") == hashlib.sha256(b"xyz").hexdigest(), "another time: read again"


def test_files_leave_out_the_cache_and_the_lock(out):
    out.publish_bytes("b/two", b"")
    out.publish_bytes("a", b"")
    out.publish_bytes(".cache/x", b"")
    with out.lock():
        assert list(out.files()) == ["a", "b/two"]


def test_the_folder_travels_as_its_path_alone(out):
    out.publish_bytes("a", b"")
    out.digest("a")
    copy = pickle.loads(pickle.dumps(out))
    assert copy == out
    assert len(pickle.dumps(out)) < 500


def test_two_runs_cannot_write_at_once(out):
    with out.lock(), pytest.raises(LockedError, match="another run is writing here"):
        OutputFolder(out.root).lock()


def test_the_lock_of_a_dead_process_is_free(out):
    out.root.mkdir(parents=True)
    code = (
        "import os, sys; from pathlib import Path; from transforms.storage import OutputFolder; "
        "OutputFolder(Path(sys.argv[1])).lock(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(out.root)], check=False)
    with out.lock():
        pass
