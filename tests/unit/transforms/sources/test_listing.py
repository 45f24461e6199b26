"""Listing: every regular file once, in bytewise order, nothing followed, nothing waited for."""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import cppmill_core
import fsspec
import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from fsspec.spec import AbstractFileSystem

from schemas.errors import ConfigError, StoreError
from schemas.options import IngestOptions
from transforms.sources import listing
from transforms.sources.archives.zip import zipfile as ours
from transforms.sources.files import open_input
from transforms.sources.listing import UNPROVEN, Kind, Listing, codec_of, kind_of, list_inputs, stem_of

OPTIONS = IngestOptions()


def paths(listing: Listing) -> list[str]:
    return [item.path for item in listing.inputs]


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode())


def listed(*sources: Path | str, options: IngestOptions = OPTIONS) -> Listing:
    return list_inputs([str(source) for source in sources], options)


@pytest.fixture
def memory() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for name in ("p/a.cpp", "p/.git/x.cpp", "q/b.cpp", "c.tar.gz", "q/d.txt"):
        system.pipe(f"/corpus/{name}", name.encode())
    yield "memory://corpus"
    system.rm("/corpus", recursive=True)


def test_paths_are_in_bytewise_order(tmp_path: Path) -> None:
    write(tmp_path, "a/x.h", "a-b/x.h", "a.h", "\u540d.h", "B.h", "\U0001f600.h", "\uff5e.h")
    (tmp_path / os.fsdecode(b"caf\xe9.h")).write_bytes(b"")
    found = [os.fsencode(path) for path in paths(listed(tmp_path))]
    assert found == sorted(found)
    assert len(found) == 8


def test_links_pipes_and_hidden_folders_are_left_alone_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "a.h", ".hidden.h", ".git/config", "sub/.svn/x.h", "x.cpp/inner.h")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "dangling.h").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.h")
    with caplog.at_level("INFO"):
        found = listed(tmp_path)
    assert paths(found) == [".hidden.h", "a.h", "x.cpp/inner.h"]
    for said in (
        "2 links left alone: dangling.h, loop",
        "left alone: pipe.h",
        "2 hidden folders not walked: .git, sub/.svn",
    ):
        assert said in caplog.text


def test_a_source_may_be_a_file_a_folder_or_a_glob(tmp_path: Path) -> None:
    write(tmp_path, "p/a.h", "p/b.cc", "q/c.h", "q/deep/d.h", "e[1].h")
    assert paths(listed(tmp_path / "p/a.h")) == ["a.h"]
    assert paths(listed(tmp_path / "e[1].h")) == ["e[1].h"]
    assert paths(listed(f"{tmp_path}/*/*.h")) == ["p/a.h", "q/c.h"]
    assert paths(listed(f"{tmp_path}/**/*.h")) == ["e[1].h", "p/a.h", "q/c.h", "q/deep/d.h"]
    assert paths(listed(f"{tmp_path}/q*")) == ["q/c.h", "q/deep/d.h"]
    assert paths(listed(f"file://{tmp_path}/p")) == ["a.h", "b.cc"]
    assert {root.location for root in listed(f"{tmp_path}/*/*.h").roots} == {str(tmp_path)}


def test_sources_keep_their_order(tmp_path: Path) -> None:
    write(tmp_path, "p/a.h", "q/b.h")
    found = listed(tmp_path / "q", tmp_path / "p", tmp_path / "q")
    assert [(item.source, item.path) for item in found.inputs] == [(0, "b.h"), (1, "a.h"), (2, "b.h")]
    assert [root.name for root in found.roots] == ["q", "p", "q"]


@pytest.mark.parametrize("name", ["nothing", "nothing*.h"])
def test_a_source_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="nothing"):
        listed(f"{tmp_path}/{name}")


def test_a_pipe_as_a_source_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h")
    with pytest.raises(ConfigError, match="no regular file"):
        listed(tmp_path / "pipe.h")


def test_a_link_given_as_a_source_is_followed_once(tmp_path: Path) -> None:
    write(tmp_path, "real/a.h")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "file.h").symlink_to("real/a.h")
    assert paths(listed(tmp_path / "folder")) == ["a.h"]
    assert paths(listed(tmp_path / "file.h")) == ["a.h"]


def test_a_folder_that_cannot_be_read_is_in_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.h", "closed/b.h", "gone/c.h")
    real, errors = cppmill_core.list_folders, {"closed/": errno.EACCES, "gone/": errno.ENOENT}

    def list_folders(root: bytes, folders: list[str], *, threads: int) -> list[Any]:
        found = real(root, folders, threads=threads)
        return [errors.get(folder, entries) for folder, entries in zip(folders, found, strict=True)]

    monkeypatch.setattr(cppmill_core, "list_folders", list_folders)
    found = {item.path: item.reason for item in listed(tmp_path).inputs}
    assert found == {"a.h": "", "closed": "unreadable", "gone": "vanished"}


def test_a_tree_deeper_than_python_recurses_is_walked(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for _ in range(600):
        folder += "/d"
        os.mkdir(folder)  # noqa: PTH102 - pathlib recurses
    try:
        Path(f"{folder}/x.h").write_bytes(b"x")
        assert len(paths(listed(tmp_path))) == 1
    finally:
        Path(f"{folder}/x.h").unlink()
        for _ in range(600):
            os.rmdir(folder)  # noqa: PTH106 - as above
            folder = folder[:-2]


@pytest.mark.parametrize(
    ("name", "kind", "codec", "stem"),
    [
        ("d/x.cpp", Kind.FILE, "", "x.cpp"),
        ("d/boost-1.83.tar.gz", Kind.TAR, "gz", "boost-1.83"),
        ("a.TGZ", Kind.TAR, "gz", "a"),
        ("a.tar", Kind.TAR, "", "a"),
        ("a.tar.xz", Kind.TAR, "xz", "a"),
        ("a.txz", Kind.TAR, "xz", "a"),
        ("a.tar.zst", Kind.TAR, "zst", "a"),
        ("a.tzst", Kind.TAR, "zst", "a"),
        ("a.tar.bz2", Kind.TAR, "bz2", "a"),
        ("a.zip", Kind.ZIP, "", "a"),
        ("a.parquet", Kind.PARQUET, "", "a"),
        ("a.jsonl", Kind.JSONL, "", "a"),
        ("a.ndjson", Kind.JSONL, "", "a"),
        ("a.jsonl.gz", Kind.JSONL, "gz", "a"),
        ("a.jsonl.zst", Kind.JSONL, "zst", "a"),
        ("a.gz", Kind.FILE, "", "a.gz"),
        (".tar.gz", Kind.TAR, "gz", ".tar.gz"),
        ("tar", Kind.FILE, "", "tar"),
    ],
)
def test_names_say_what_an_input_is(name: str, kind: Kind, codec: str, stem: str) -> None:
    assert (kind_of(name), codec_of(name), stem_of(name)) == (kind, codec, stem)


def test_archives_in_folders_stay_closed_if_the_options_say_so(tmp_path: Path) -> None:
    write(tmp_path, "a.tar", "b.zip")
    options = IngestOptions(open_archives=False)
    assert {item.kind for item in listed(tmp_path, options=options).inputs} == {Kind.FILE}
    assert [item.kind for item in listed(tmp_path / "a.tar", options=options).inputs] == [Kind.TAR]


def test_urls_are_listed_like_folders(memory: str) -> None:
    found = listed(memory)
    assert paths(found) == ["c.tar.gz", "p/a.cpp", "q/b.cpp", "q/d.txt"]
    assert found.hidden == ["p/.git"]
    assert found.roots[0].name == "corpus"
    assert all(item.version for item in found.inputs)
    assert paths(listed(f"{memory}/*/*.cpp")) == ["p/a.cpp", "q/b.cpp"]
    assert paths(listed(f"{memory}/p/a.cpp")) == ["a.cpp"]
    with pytest.raises(ConfigError, match="does not exist"):
        listed("memory://corpus/none")


@pytest.mark.parametrize("form", ["file://{}", "local://{}", "file://{}/*.cpp", "simplecache::file://{}/a.cpp"])
def test_a_url_of_a_file_of_this_machine_is_its_path(tmp_path: Path, form: str) -> None:
    write(tmp_path, "a.cpp")
    listing.check_source(form.format(tmp_path))
    assert paths(listed(form.format(tmp_path))) == ["a.cpp"]


@pytest.mark.parametrize("source", ["memory://corpus/q", "memory://corpus/q/**"])
def test_an_empty_part_of_a_key_is_part_of_the_path(memory: str, source: str) -> None:
    system = fsspec.filesystem("memory")
    for name in ("/corpus/q//b.cpp", "/corpus/q/x//b.cpp"):
        system.store[name] = MemoryFile(system, name, b"int other;")
    assert paths(listed(source)) == ["/b.cpp", "b.cpp", "d.txt", "x//b.cpp"]


def test_bytes_under_the_name_of_a_folder_are_named(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {
        f"/corpus/{name}/": {"name": f"/corpus/{name}/", "type": "file", "size": size}
        for name, size in (("a", 0), ("b.cpp", 3))
    }
    monkeypatch.setattr(MemoryFileSystem, "find", lambda *_arguments, **_options: folders)
    assert [(item.path, item.num_bytes, item.reason) for item in listed(memory).inputs] == [("b.cpp/", 3, "unreadable")]


@pytest.mark.parametrize("source", ["memory://corpus", "memory://corpus/*/*.cpp", "memory://corpus/q*"])
def test_a_folder_that_a_store_cannot_list_is_an_error(
    memory: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_folder = MemoryFileSystem.ls

    def fail_in_q(system: MemoryFileSystem, path: str, *, detail: bool = True) -> object:
        if path.endswith("/q"):
            raise ConnectionResetError(errno.ECONNRESET, "reset by peer")
        return list_folder(system, path, detail)

    monkeypatch.setattr(MemoryFileSystem, "find", AbstractFileSystem.find)  # most file systems have this one
    monkeypatch.setattr(MemoryFileSystem, "ls", fail_in_q)
    with pytest.raises(StoreError, match=re.escape(f"{source}: the object store failed")):
        listed(source)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_is_listed_like_a_folder(tmp_path: Path, kind: str) -> None:
    write(tmp_path, "in/p/a.cpp", "in/q/deep/b.cpp", "in/c.h")
    archive = tmp_path / f"made.{kind}"
    with zipfile.ZipFile(archive, "w") if kind == "zip" else tarfile.open(archive, "w") as made:
        for name in ("p/a.cpp", "q/deep/b.cpp", "c.h"):
            (made.write if isinstance(made, zipfile.ZipFile) else made.add)(tmp_path / "in" / name, name)
    assert paths(listed(f"{kind}://*/*.cpp::{archive}")) == ["p/a.cpp"]
    assert paths(listed(f"{kind}://q::{archive}")) == ["deep/b.cpp"]
    assert paths(listed(f"{kind}://**::{archive}")) == ["c.h", "p/a.cpp", "q/deep/b.cpp"]


@pytest.mark.parametrize(
    ("source", "path", "root", "location"),
    [
        ("s3://bucket/folder/*.cpp", "bucket/folder/*.cpp", "bucket/folder", "s3://bucket/folder"),
        ("ftp://host:21/folder/*.cpp", "/folder/*.cpp", "/folder", "ftp://host:21/folder"),
        ("sftp://me@host/folder/", "/folder/", "/folder", "sftp://me@host/folder"),
        ("github://org:repo@main/src", "src", "src", "github://org:repo@main/src"),
        ("github://org:repo@main", "", "", "github://org:repo@main"),
        ("memory://folder", "/folder", "/folder", "memory://folder"),
        ("http://host/a/b.tar", "http://host/a/b.tar", "http://host/a", "http://host/a"),
        ("tar://::https://host/a.tar", "", "", "tar://::https://host/a.tar"),
        ("zip://src/*.cpp::s3://bucket/a.zip", "src/*.cpp", "src", "zip://src::s3://bucket/a.zip"),
    ],
)
def test_the_place_of_a_root_keeps_what_is_before_its_path(source: str, path: str, root: str, location: str) -> None:
    assert listing._location(source, path, root) == location


def test_an_archive_behind_a_url_that_is_not_there_is_named(tmp_path: Path) -> None:
    for read in (listing.check_source, listed):
        with pytest.raises(ConfigError, match=r"/no\.zip: the archive does not exist"):
            read(f"zip://*.cpp::file://{tmp_path}/no.zip")


def test_members_of_an_archive_behind_a_url_are_sources(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("src/a.cpp", "int a;")
        archive.writestr("src/deep/b.h", "int b;")
    source = f"zip://src::file://{tmp_path}/a.zip"
    found = listed(source)
    assert paths(found) == ["a.cpp", "deep/b.h"]
    with open_input(found.roots[0].location, "deep/b.h") as file:
        assert file.read() == b"int b;"


def test_members_that_only_this_package_reads_are_none_behind_a_url(tmp_path: Path) -> None:
    with ours.ZipFile(tmp_path / "a.zip", "w", ours.ZIP_ZSTANDARD) as archive:
        archive.writestr("a.cpp", "int a;")
    is_refused = sys.version_info < (3, 14)
    with pytest.raises(ConfigError, match="compressed with Zstandard") if is_refused else nullcontext():
        listed(f"zip://::file://{tmp_path}/a.zip")


def test_the_times_that_an_archive_says_of_its_members_tell_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("int a;")
    os.utime(tmp_path / "a.cpp", (0, 0))
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "a.cpp", "a.cpp")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.write(tmp_path / "a.tar", "a.tar")
    fsspec.filesystem("memory").pipe("/listing/a.tar", (tmp_path / "a.tar").read_bytes())
    local, nested, stored = (
        [item.version for item in listed(f"tar://::{place}").inputs]
        for place in (f"file://{tmp_path}/a.tar", f"zip://a.tar::file://{tmp_path}/b.zip", "memory://listing/a.tar")
    )
    assert local == nested == [UNPROVEN]
    assert not stored[0].startswith("0"), "the moment that the packer wrote"


def tarred(*names: str, link: str = "") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(name)
            archive.addfile(info, io.BytesIO(name.encode()))
        if link:
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, "/nowhere"
            archive.addfile(info)
    return file.getvalue()


def zipped(*names: str, link: str = "") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name in names:
            archive.writestr(name, f"int {name}")
        if link:
            info = zipfile.ZipInfo(link)
            info.external_attr = 0o120777 << 16
            archive.writestr(info, "/nowhere")
    return file.getvalue()


WHOLE = tarred("p/a.cpp", "p/b.cpp")
LOSING = {
    "a damaged header.tar": (
        WHOLE[:1024] + bytes([WHOLE[1024] ^ 1]) + WHOLE[1025:],
        "p/a.tar|corrupt: damaged tar header",
    ),
    "two archives.tar": (WHOLE + tarred("c.cpp"), "c.cpp is a name that cannot be listed"),
    "an absolute name.tar": (tarred("/a.cpp", "b.cpp"), "/a.cpp is a name that cannot be listed"),
    "dots.tar": (tarred("./a.cpp"), "./a.cpp is a name that cannot be listed"),
    "a name twice.tar": (tarred("a.cpp", "b.cpp", "a.cpp"), "a.cpp is there twice"),
    "a name twice.zip": (zipped("a.cpp", "b.cpp", "a.cpp"), "a.cpp is there twice"),
    "a wrong checksum.tar.gz": (gzip.compress(WHOLE)[:-8] + bytes(4) + gzip.compress(WHOLE)[-4:], "corrupt"),
    "a cut trailer.tar.gz": (gzip.compress(WHOLE)[:-4], "truncated"),
    "damaged data.zip": (zipped("a.cpp", "b.cpp").replace(b"int a", b"int z", 1), "a.cpp: corrupt: CRC-32 differs"),
    "no archive.tar": (b"int a;" * 1000, "the archive cannot be read in this way .ReadError.; give the archive itself"),
    "no archive.zip": (b"int a;", "the archive cannot be read in this way .BadZipFile.; give the archive itself"),
}


@pytest.mark.parametrize("name", LOSING)
def test_an_archive_behind_a_url_of_which_a_member_would_be_lost_is_refused(tmp_path: Path, name: str) -> None:
    content, said = LOSING[name]
    (tmp_path / name).write_bytes(content)
    for pattern in ("", "*"):
        with pytest.raises(ConfigError, match=said):
            listed(f"{'zip' if name.endswith('zip') else 'tar'}://{pattern}::file://{tmp_path}/{name}")


@pytest.mark.parametrize(
    ("kind", "content"), [("tar", tarred("a.cpp", link="l.cpp")), ("zip", zipped("a.cpp", link="l.cpp"))]
)
def test_a_link_in_an_archive_behind_a_url_is_left_alone(tmp_path: Path, kind: str, content: bytes) -> None:
    (tmp_path / f"a.{kind}").write_bytes(content)
    (tmp_path / f"b.{kind}").symlink_to(f"a.{kind}")
    for name in "ab":
        found = listed(f"{kind}://::{tmp_path}/{name}.{kind}")
        assert (paths(found), found.links) == (["a.cpp"], [(0, "l.cpp")])


@pytest.mark.parametrize("cache", ["", "simplecache::"])
def test_an_archive_behind_a_url_that_was_replaced_is_read_again_by_the_same_process(
    tmp_path: Path, cache: str
) -> None:
    source = f"zip://::{cache}file://{tmp_path}/a.zip"
    for text in ("int one;", "int two;"):
        with zipfile.ZipFile(tmp_path / "new.zip", "w") as archive:
            archive.writestr("a.cpp", text)
        (tmp_path / "new.zip").replace(tmp_path / "a.zip")
        listed(source)
        with open_input(source, "a.cpp") as file:
            assert file.read() == text.encode()
