"""Versions in a store: the pointer, what goes and what stays, and what one takes from another."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from schemas.errors import ConfigError, IntegrityError, LockedError
from transforms.records.versions import BUILDING, CURRENT, Versions
from transforms.storage.folder import OutputFolder
from transforms.storage.local import LocalStore

SHARD = f"tokens/part-{'a' * 64}.parquet"


@pytest.fixture
def versions(place):
    return Versions(place)


def make(versions, *, finished=True):
    """Make a version as far as its receipt, and return its name."""
    name = versions.begin(versions.current)
    out = versions.out(name)
    out.publish_bytes("tokens/own", name.encode())
    if finished:
        out.publish_bytes("receipt.json", b"{}")
    return name


def finish(versions):
    """Make a version that is the current one then."""
    before = versions.current
    name = make(versions)
    versions.finish(name, {"version": name}, replaced=before)
    return name


def test_the_pointer_names_the_last_one_that_was_finished(versions):
    assert (versions.current, versions.building, versions.names) == (None, None, [])
    assert finish(versions) == "v000001"
    name = make(versions)
    assert (versions.current, versions.building) == ("v000001", name)
    versions.finish(name, {}, replaced="v000001")
    assert (versions.current, versions.building, versions.names) == (name, None, ["v000001", "v000002"])
    assert versions.folder.exists("changes/v000002.json")


def test_a_version_that_was_begun_is_gone_on_with(versions):
    finish(versions)
    name = make(versions, finished=False)
    assert versions.begin("v000001") == name
    assert versions.out(name).read_bytes("tokens/own") == name.encode()


def test_a_version_that_became_current_just_before_its_maker_died_is_not_begun_again(versions):
    name = finish(versions)
    versions.folder.publish_bytes(BUILDING, b'{"version": "v000001"}')
    assert versions.begin(name) == "v000002"
    versions.folder.publish_bytes(BUILDING, b'{"version": "v000001"}')
    versions.discard()
    assert versions.building is None
    assert versions.out(name).exists("receipt.json")


@pytest.mark.parametrize("name", ["versions", "changes", "trend", "drift"])
def test_a_store_whose_folder_is_a_link_is_refused(tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=f"store/{name}: a link, behind which nothing is written"):
        Versions(tmp_path / "store").check_place()


def test_an_unneeded_version_is_removed_with_everything_it_left(versions):
    finish(versions)
    make(versions)
    versions.discard()
    versions.discard()
    assert (versions.current, versions.building, versions.names) == ("v000001", None, ["v000001"])
    assert list(versions.folder.files("versions/v000002")) == []


@pytest.mark.parametrize(("keep", "left"), [(1, [4]), (2, [3, 4]), (4, [1, 2, 3, 4]), (9, [1, 2, 3, 4])])
def test_the_last_versions_stay(versions, keep, left):
    for _ in range(4):
        finish(versions)
    removed = versions.prune(keep)
    assert versions.names == [f"v{number:06}" for number in left]
    assert removed == [f"v{number:06}" for number in range(1, 5) if number not in left]
    assert versions.prune(keep) == []


def test_the_current_version_stays_however_old_it_is(versions):
    for _ in range(3):
        finish(versions)
    versions.folder.store.set_pointer(CURRENT, "versions/v000001", expected="versions/v000003")
    assert versions.prune(1) == ["v000002", "v000003"]
    assert versions.names == ["v000001"]
    assert finish(versions) == "v000002"


def test_unfinished_versions_are_removed_except_the_one_in_progress(versions):
    for _ in range(2):
        finish(versions)
    versions.out("v000001").remove("receipt.json")
    name = make(versions, finished=False)
    assert versions.prune(5) == ["v000001"]
    assert versions.names == ["v000002", name]


def test_the_pointer_is_not_moved_if_another_moved_it(versions):
    finish(versions)
    name = make(versions)
    versions.folder.store.set_pointer(CURRENT, "versions/v000009", expected="versions/v000001")
    with pytest.raises(LockedError, match="another process changed it"):
        versions.finish(name, {}, replaced="v000001")
    assert versions.current == "v000009"


@pytest.mark.parametrize("target", ["../elsewhere", "v000001", "versions/v1", "versions"])
def test_a_pointer_to_something_else_is_an_error(versions, target):
    versions.folder.store.set_pointer(CURRENT, target, expected=None)
    with pytest.raises(IntegrityError, match=f"it names {re.escape(target)}, which is not a version"):
        _ = versions.current


@pytest.mark.parametrize("data", [b"\x00garbage", b"[]", b"{}", b'{"version": "../../home"}', b'{"version": 3}'])
def test_a_damaged_note_of_what_is_being_made_is_an_error_that_says_what_to_do(versions, data):
    finish(versions)
    versions.folder.publish_bytes(BUILDING, data)
    for look in (lambda: versions.building, lambda: versions.begin("v000001"), versions.discard):
        with pytest.raises(IntegrityError, match="it does not name an unfinished version of this store; remove it"):
            look()
    versions.folder.remove(BUILDING)
    assert versions.begin("v000001") == "v000002"


def test_a_finished_version_is_not_made_again_because_a_note_names_it(versions):
    finish(versions)
    finish(versions)
    assert versions.current == "v000002"
    versions.folder.publish_bytes(BUILDING, b'{"version": "v000001"}')
    for look in (lambda: versions.begin("v000002"), versions.discard):
        with pytest.raises(IntegrityError, match="it does not name an unfinished version of this store"):
            look()
    assert versions.out("v000001").exists("receipt.json")


def test_finished_versions_without_a_pointer_are_an_error_that_names_the_newest(versions):
    versions.check_pointer()
    name = make(versions)
    versions.check_pointer()
    versions.finish(name, {}, replaced=None)
    finish(versions)
    versions.check_pointer()
    versions.folder.remove(CURRENT)
    with pytest.raises(IntegrityError, match=r"missing, though v000001, v000002 exist; .*versions/v000002"):
        versions.check_pointer()


def test_a_pointer_that_a_copy_made_a_folder_of_is_an_error(tmp_path):
    versions = Versions(tmp_path)
    finish(versions)
    (tmp_path / CURRENT).unlink()
    (tmp_path / CURRENT).mkdir()
    with pytest.raises(IntegrityError, match="not a symbolic link, probably because a copy followed links"):
        versions.check_pointer()


@pytest.mark.parametrize(
    "name", ["receipt.json", "manifest.json", "documents/part", "tokenizer/manifest.json", "shards/x"]
)
def test_the_folder_of_a_run_or_an_export_is_not_a_store(versions, name):
    versions.check_place()
    finish(versions)
    versions.check_place()
    versions.folder.publish_bytes(name, b"{}")
    with pytest.raises(ConfigError, match="the folder of a run or an export, not a store of versions"):
        versions.check_place()


def test_a_version_has_what_it_may_keep_of_the_one_before(versions):
    name = make(versions)
    out = versions.out(name)
    kept = (SHARD, "documents/part", "proofs/_unit", "tokenizer/manifest.json", ".cache/fingerprints/x")
    left = ("counts/terms.parquet", "tokenizer/_unit-1.json", ".cache/events/x.jsonl", ".cache/attempts/x")
    for path in (*kept, *left):
        out.publish_bytes(path, path.encode())
    versions.finish(name, {}, replaced=None)
    second = versions.out(versions.begin(name))
    for path in kept:
        assert second.read_bytes(path) == path.encode()
        assert second.digest(path) == out.digest(path)
    assert not [path for path in (*left, "receipt.json") if second.exists(path)]


def test_what_is_replaced_in_a_version_stays_in_the_one_before(versions):
    name = make(versions)
    first = versions.out(name)
    first.publish_bytes("tokenizer/manifest.json", b"old")
    versions.finish(name, {}, replaced=None)
    second = versions.out(versions.begin(name))
    second.publish_bytes("tokenizer/manifest.json", b"new")
    second.remove("tokens/own")
    assert first.read_bytes("tokenizer/manifest.json") == b"old"
    assert first.exists("tokens/own")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP])
def test_where_there_are_no_hard_links_files_are_copied(tmp_path, monkeypatch, number):
    source, out = OutputFolder(tmp_path / "a"), OutputFolder(tmp_path / "b")
    source.publish_bytes(SHARD, b"bytes")

    def refuse(self, target):
        raise OSError(number, "refused")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    out.link(source, [SHARD])
    assert out.read_bytes(SHARD) == b"bytes"
    first, second = ((tmp_path / folder / SHARD).stat() for folder in "ab")
    assert first.st_ino != second.st_ino
    assert first.st_mtime_ns == second.st_mtime_ns, "so that its digest is remembered"
    assert list(LocalStore(tmp_path / "b").temporary().iterdir()) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_store_where_there_are_no_symbolic_links_is_an_error_that_says_so(tmp_path, monkeypatch, number):
    versions = Versions(str(tmp_path))
    name = make(versions)

    def refuse(self, target):
        raise OSError(number, "refused")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    with pytest.raises(ConfigError, match="its file system has no symbolic links; take a folder on another"):
        versions.finish(name, {"version": name}, replaced=None)


def test_a_version_that_is_a_link_is_not_removed_nor_said_to_be(tmp_path):
    versions = Versions(str(tmp_path / "store"))
    for _ in range(2):
        finish(versions)
    (tmp_path / "store/versions/v000001").rename(tmp_path / "elsewhere")
    (tmp_path / "store/versions/v000001").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"v000001: a link, behind which nothing is removed; remove it and what it"):
        versions.prune(1)
    assert (tmp_path / "elsewhere/receipt.json").exists()
