"""A process's scratch folder is its own, goes with it, and is removed by the next one if it was killed."""

import errno
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from schemas.errors import ResourceError
from transforms.storage import scratch
from transforms.storage.scratch import _remove_abandoned

CODE = """
import os, sys
from transforms.storage import scratch
from transforms.storage.scratch import scratch_folder
if sys.argv[1] == "refuse":
    scratch._remove_abandoned = lambda *_, **__: sys.exit(1)
folder = scratch_folder()
(folder / "copy").write_bytes(b"x")
assert scratch_folder() == folder
print(folder, flush=True)
if sys.argv[1] == "wait":
    sys.stdin.read()
elif sys.argv[1] == "die":
    os.kill(os.getpid(), 9)
"""


THREADS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from transforms.storage.scratch import scratch_folder

sys.setswitchinterval(1e-6)
together = threading.Barrier(8)

def folder(_):
    together.wait()
    return scratch_folder()

with ThreadPoolExecutor(8) as pool:
    [found] = set(pool.map(folder, range(8)))
assert found.is_dir()
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a process that makes its folder below an empty TMPDIR."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def run(what):
        command = [sys.executable, "-c", CODE, what]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return process, process.stdout.readline().strip()

    return run


def folders(tmp_path):
    return {str(path) for path in tmp_path.glob("cppmill-*/*") if path.is_dir()}


def test_a_folder_goes_with_its_process_but_not_with_a_killed_one(tmp_path, start):
    living, first = start("wait")
    ended, second = start("end")
    killed, third = start("die")
    for process in (ended, killed):
        process.communicate()
    assert (ended.returncode, killed.returncode) == (0, -9)
    assert len({first, second, third}) == 3
    assert folders(tmp_path) == {first, third}
    start("end")[0].communicate()
    assert folders(tmp_path) == {first}, "of the living one nothing is taken"
    living.communicate()
    assert folders(tmp_path) == set()
    assert list(tmp_path.iterdir()) == []


def test_all_threads_of_a_process_have_one_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    subprocess.run([sys.executable, "-c", THREADS], check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_may_not_look_for_what_others_left_leaves_nothing_itself(tmp_path, start):
    refused, _ = start("refuse")
    refused.communicate()
    assert refused.returncode == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("taken", ["link", "file", "folder"])
def test_what_somebody_else_put_in_the_place_of_the_shared_folder_is_left_alone(tmp_path, start, taken):
    shared, mine = tmp_path / f"cppmill-{os.getuid()}", tmp_path / "mine"
    (mine / "work").mkdir(parents=True)
    if taken == "link":
        shared.symlink_to(mine)
    elif taken == "file":
        shared.write_text("")
    else:
        mine.rename(shared)
        shared.chmod(0o777)
    ended, folder = start("end")
    ended.communicate()
    assert (ended.returncode, folder.startswith(f"{shared}-")) == (0, True)
    assert taken == "file" or (shared / "work").is_dir()
    assert {path.name for path in tmp_path.iterdir()} <= {"mine", shared.name}


def test_any_number_of_processes_may_remove_what_killed_ones_left(tmp_path):
    for number in range(200):
        (tmp_path / f"{number}-killed").mkdir()
    with ThreadPoolExecutor(8) as pool:
        for result in [pool.submit(_remove_abandoned, tmp_path, tmp_path / "mine") for _ in range(8)]:
            result.result()
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_are_in_an_output_folder_or_in_the_scratch_folder(repository):
    """Elsewhere nobody would remove those of a process that was killed."""
    made = re.compile(r"(TemporaryDirectory|TemporaryFile|mkdtemp|mkstemp)\((?![^\n]*dir=)")
    files = [path for name in ("pipelines", "transforms") for path in sorted((repository / name).rglob("*.py"))]
    assert [path for path in files if made.search(path.read_text())] == []
    assert made.search("tempfile.mkdtemp()")


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(ResourceError, match=f"^{tmp_path}/.*: files cannot be locked there; let TMPDIR name a folder "):
        scratch._make_folder.__wrapped__(os.getpid())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
