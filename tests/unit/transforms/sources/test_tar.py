"""Tar archives, whole and damaged: every whole member comes out, everything else is counted."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from schemas.options import IngestOptions
from schemas.reasons import Column
from transforms.sources.archives.tar import iter_tar
from transforms.sources.document import Archive, DamageError, Document
from transforms.sources.streams import MemberStream

CODECS: dict[str, Callable[[bytes], bytes]] = {
    "a.tar": bytes,
    "a.tar.gz": gzip.compress,
    "a.tgz": gzip.compress,
    "a.tar.xz": lzma.compress,
    "a.tar.bz2": bz2.compress,
    "a.tar.zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("name", CODECS)
def test_members_come_out_byte_for_byte(name: str, archives: Any, read: Any) -> None:
    entries = archives.members(30)
    found = read(name, CODECS[name](archives.tar(entries)))
    assert found.whole == dict(entries)
    assert not found.rest
    assert {document.project for document in found.documents} == {"a"}


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_and_foreign_names_survive_every_format(kind: int, archives: Any, read: Any) -> None:
    entries = [
        ("d/" * 40 + "x" * 60 + ".cpp", b"1"),
        ("\u540d\u524d.cpp", b"2"),
        ("../../up.cpp", b"3"),
        ("/root.cpp", b"4"),
    ]
    assert list(read("a.tar", archives.tar(entries, kind)).whole) == [
        "d/" * 40 + "x" * 60 + ".cpp",
        "\u540d\u524d.cpp",
        "up.cpp",
        "root.cpp",
    ]


def test_names_that_are_not_utf8_are_percent_encoded(archives: Any, read: Any) -> None:
    raw = archives.tar([("latin1_X.cpp", b"1")]).replace(b"latin1_X", b"latin1_\xe9")
    header = bytearray(raw[:512])
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    assert read("a.tar", bytes(header) + raw[512:]).documents[0].path == "a.tar/latin1_%E9.cpp"


@pytest.mark.parametrize("name", [name for name in CODECS if name != "a.tar"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_text_before_a_cut_is_kept_and_the_cut_is_counted(name: str, share: float, archives: Any, read: Any) -> None:
    entries = [
        (f"f{index}.cpp", bytes((index * 7 + place * place) % 251 + 1 for place in range(900))) for index in range(300)
    ]
    data = CODECS[name](archives.tar(entries))
    found = read(name, data[: int(len(data) * share)])
    assert list(found.whole.items()) == entries[: len(found.whole)]
    assert [reason for _, reason, _ in found.rest] == ["truncated"]


@pytest.mark.fuzz
@given(cut=st.integers(0, 20 * 1024 + 10_240))
def test_a_plain_archive_cut_anywhere_keeps_every_whole_member(cut: int, archives: Any) -> None:
    entries = [(f"f{index}.cpp", b"%d;" % index * 200) for index in range(14)]
    data = archives.tar(entries)
    end_of_members = sum(512 + -(-len(content) // 512) * 512 for _, content in entries)
    found = read_bytes(data[:cut])
    fits, place = 0, 0
    for _, content in entries:
        fits += place + 512 + len(content) <= cut
        place += 512 + -(-len(content) // 512) * 512
    assert [content for content in (item.content for item in found) if content is not None] == [
        content for _, content in entries[:fits]
    ]
    dead = [item for item in found if item.column == Column.DEAD]
    assert len(dead) == (cut < end_of_members + 512)


@pytest.mark.fuzz
@given(st.binary(max_size=3_000) | st.integers(0, 50_000).map(bytes))
def test_any_bytes_end_in_documents_or_a_reason(data: bytes) -> None:
    for item in read_bytes(data):
        assert item.content is not None or item.reason


@pytest.mark.fuzz
@given(place=st.integers(0, 20_000), flip=st.integers(1, 255))
def test_one_damaged_byte_loses_one_member_at_most(place: int, flip: int, archives: Any) -> None:
    entries = [(f"f{index}.cpp", b"%d;" % index * 200) for index in range(14)]
    data = bytearray(archives.tar(entries))
    data[place] ^= flip
    contents = [item.content for item in read_bytes(bytes(data))]
    assert sum(content in contents for _, content in entries) >= len(entries) - 1


@pytest.mark.parametrize("damage", [b"\xff" * 512, bytes(512)])
def test_members_after_a_damaged_header_are_kept_and_the_damage_is_counted(
    damage: bytes, archives: Any, read: Any
) -> None:
    entries = archives.members(9)
    data = archives.tar(entries)
    header = data.find(b"m/f4.cpp")
    found = read("a.tar", data[:header] + damage + data[header + 512 :])
    assert list(found.whole.items()) == [entry for entry in entries if entry[0] != "m/f4.cpp"]
    assert [(path, reason) for path, reason, _ in found.rest] == [("a.tar", "corrupt")]
    assert found.rest[0][2] >= len(entries[4][1])


def test_garbage_after_the_end_is_counted_as_damage_that_cut_nothing(archives: Any, read: Any) -> None:
    found = read("a.tar", archives.tar(archives.members(3)) + b"garbage" * 1_000)
    assert len(found.whole) == 3
    assert found.rest == [("a.tar", "corrupt", 0)]


def test_archives_one_after_the_other_are_read_to_the_end(archives: Any, read: Any) -> None:
    both = archives.tar(archives.members(3, "a")) + archives.tar(archives.members(3, "b"))
    assert len(read("a.tar", both).whole) == 6
    assert not read("a.tar", both).rest


@pytest.mark.parametrize("data", [b"", b"this is no archive\n" * 100, b"\xff" * 5_000])
def test_what_is_not_an_archive_is_one_dead_document_of_its_size(data: bytes, read: Any) -> None:
    assert read("a.tar", data).rest == [("a.tar", "not_an_archive", len(data))]
    assert read("b.tar.gz", data).rest == [("b.tar.gz", "not_an_archive", len(data))]


def test_an_empty_archive_has_no_documents(archives: Any, read: Any) -> None:
    assert read("a.tar", archives.tar([])).documents == []


def test_a_flipped_byte_in_the_compressed_stream_costs_only_what_follows_it(archives: Any, read: Any) -> None:
    entries = [
        (f"f{index}.cpp", bytes((index * 7 + place * place) % 251 + 1 for place in range(900))) for index in range(99)
    ]
    data = bytearray(gzip.compress(archives.tar(entries)))
    data[len(data) // 2] ^= 0x55
    found = read("a.tar.gz", bytes(data))
    right = [content for content in found.whole.values() if content in dict(entries).values()]
    assert len(right) > 20
    assert [reason for _, reason, _ in found.rest][-1] == "corrupt"


def test_everything_before_a_bad_block_is_kept(archives: Any, read: Any) -> None:
    stored = io.BytesIO()
    with gzip.GzipFile(fileobj=stored, mode="wb", compresslevel=0, mtime=0) as file:
        file.write(archives.tar([("a.cpp", b"a" * 3_000)]))
    stream = stored.getvalue()[:-8]
    found = read("a.tar.gz", stream + b"\xff" * 8)
    assert found.whole == {"a.cpp": b"a" * 3_000}
    assert found.rest == [("a.tar.gz", "corrupt", 0)]


def test_links_and_devices_are_left_alone_and_reported(read: Any, caplog: pytest.LogCaptureFixture) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind in (
            ("l.cpp", tarfile.SYMTYPE),
            ("h.cpp", tarfile.LNKTYPE),
            ("p.cpp", tarfile.FIFOTYPE),
            ("d", tarfile.DIRTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "nowhere"
            archive.addfile(info)
    with caplog.at_level("INFO"):
        assert read("a.tar", buffer.getvalue()).documents == []
    assert "3 links and special files left alone" in caplog.text


def test_filtered_members_are_counted_with_their_size(archives: Any, read: Any) -> None:
    entries = [("README", b"12345"), ("big.cpp", b"x" * 5_000), ("ok.cpp", b"1")]
    found = read("a.tar", archives.tar(entries), IngestOptions(max_document_bytes=4_999))
    assert found.rest == [("a.tar/README", "extension", 5), ("a.tar/big.cpp", "size", 5_000)]
    assert found.whole == {"ok.cpp": b"1"}


def test_an_archive_stops_at_the_limit_and_says_so(archives: Any, read: Any) -> None:
    found = read("a.tar", archives.tar([("README", b"1"), *archives.members(9)]), IngestOptions(limit=4))
    assert len(found.whole) == 4
    assert found.rest == [("a.tar/README", "extension", 1), ("a.tar", "limit", 0)]
    assert not read("b.tar", archives.tar(archives.members(4)), IngestOptions(limit=4)).rest


def test_a_header_that_claims_too_much_is_truncated_with_what_there_was(archives: Any, read: Any) -> None:
    info = tarfile.TarInfo("a.cpp")
    info.size = 1 << 60
    small = tarfile.TarInfo("b.cpp")
    small.size = 5_000
    assert read("a.tar", info.tobuf(tarfile.GNU_FORMAT) + b"x" * 1_024).rest == [("a.tar/a.cpp", "truncated", 1_024)]
    assert read("b.tar", small.tobuf(tarfile.GNU_FORMAT) + b"x" * 1_000).rest == [("b.tar/b.cpp", "truncated", 1_000)]


def test_a_huge_extended_header_is_damage_and_not_held(archives: Any, read: Any) -> None:
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    found = read("a.tar", info.tobuf(tarfile.GNU_FORMAT) + archives.tar(archives.members(2)))
    assert len(found.whole) == 2
    assert [reason for _, reason, _ in found.rest] == ["corrupt"]


def extended(kind: bytes, data: bytes = b"") -> bytes:
    """Return an extended header."""
    info = tarfile.TarInfo("extended")
    info.type, info.size = kind, len(data)
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_thousands_of_extended_headers_in_a_row_are_damage(kind: bytes, archives: Any, read: Any) -> None:
    found = read("a.tar", extended(kind) * 5_000 + archives.tar(archives.members(2)))
    assert len(found.whole) >= 1
    assert "corrupt" in {reason for _, reason, _ in found.rest}


@pytest.mark.parametrize("size", ["-512", "-1", "x", "9" * 5_000])
def test_a_size_that_none_can_have_does_not_stop_the_reading(size: str, archives: Any, read: Any) -> None:
    record = f" size={size}\n"
    length = next(n for n in range(len(record), len(record) + 9) if len(f"{n}{record}") == n)
    header = extended(tarfile.XHDTYPE, f"{length}{record}".encode())
    found = read("a.tar", header + archives.tar(archives.members(3)))
    assert found.documents
    assert all(item.content is not None or item.reason for item in found.documents)


def test_a_map_of_holes_without_end_is_damage_and_not_held(archives: Any, read: Any) -> None:
    info = tarfile.TarInfo("sparse.cpp")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[482] = 1
    header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 8 * 32)
    more = (b"%011o\0" % 512 * 42).ljust(504, b"\0") + b"\1" + bytes(7)
    found = read("a.tar", bytes(header) + more * 5_000 + archives.tar(archives.members(2)))
    assert len(found.whole) == 2
    assert [reason for _, reason, _ in found.rest] == ["corrupt"]


def test_a_file_with_holes_is_unsupported_and_its_neighbours_kept(archives: Any, read: Any) -> None:
    info = tarfile.TarInfo("sparse.cpp")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 700
    data = info.tobuf(tarfile.GNU_FORMAT) + bytes(1_024) + archives.tar(archives.members(2))
    found = read("a.tar", data)
    assert len(found.whole) == 2
    assert found.rest == [("a.tar/sparse.cpp", "unsupported", 700)]


def test_an_archive_that_grows_beyond_measure_is_read_no_further(
    monkeypatch: pytest.MonkeyPatch, archives: Any, read: Any
) -> None:
    monkeypatch.setattr("transforms.sources.document._ARCHIVE_FLOOR_BYTES", 1_000_000)
    entries = [(f"f{index}.cpp", b" " * 9_999 + b"%d" % index) for index in range(200)]
    found = read("a.tar.gz", gzip.compress(archives.tar(entries)), IngestOptions(max_expansion=2))
    assert 20 < len(found.whole) < 100
    assert [reason for _, reason, _ in found.rest] == ["expansion"]


def read_bytes(data: bytes) -> list[Document]:
    archive = Archive("a.tar", len(data), "a", IngestOptions())
    found = []
    try:
        for document in iter_tar(archive, MemberStream(archive, lambda: io.BytesIO(data), "")):
            found.append(document)
    except DamageError as damage:
        found.append(archive.entry(damage.reason, damage.detail))
    return found


def test_a_member_of_an_unknown_type_is_a_file_as_posix_wants_it(read: Any) -> None:
    found = read("a.tar", member("b.cpp", b"Z", b"int x;"))
    assert found.whole == {"b.cpp": b"int x;"}
    assert not found.rest
    assert not read("a.tar", member("b.cpp", b"Z", b"")).whole


def test_a_name_that_ends_in_a_slash_is_a_document_if_it_has_data(read: Any) -> None:
    assert read("a.tar", member("b.cpp/", tarfile.REGTYPE, b"int x;")).whole == {"b.cpp": b"int x;"}
    assert not read("a.tar", member("b.cpp/", tarfile.REGTYPE, b"")).whole


def test_times_of_gnu_tar_are_no_part_of_a_name(archives: Any, read: Any) -> None:
    data = with_field(member("p/b.cpp", tarfile.REGTYPE, b"int x;", tarfile.GNU_FORMAT), 345, b"15303001666\0" * 2)
    assert read("a.tar", data).whole == {"p/b.cpp": b"int x;"}
    ustar = with_field(member("p/b.cpp", tarfile.REGTYPE, b"int x;"), 345, b"folder\0")
    assert list(read("a.tar", ustar).whole) == ["folder/p/b.cpp"]


def test_the_rest_of_a_file_of_another_volume_is_no_document(archives: Any, read: Any) -> None:
    found = read(
        "a.tar", member("b.cpp", b"M", b"int x;", tarfile.GNU_FORMAT)[:-1024] + archives.tar(archives.members(2))
    )
    assert (len(found.whole), found.rest) == (2, [("a.tar/b.cpp", "unsupported", 6)])


def test_a_folder_with_a_list_of_its_files_is_a_folder(archives: Any, read: Any) -> None:
    found = read(
        "a.tar", member("p.cpp/", b"D", b"Ya.cpp\0", tarfile.GNU_FORMAT)[:-1024] + archives.tar(archives.members(2))
    )
    assert (len(found.whole), found.rest) == (2, [])


def with_field(data: bytes, place: int, field: bytes) -> bytes:
    """Return an archive with another field in its first header, whose checksum is mended."""
    header = bytearray(data[:512])
    header[place : place + len(field)] = field
    header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 8 * 32)
    return bytes(header) + data[512:]


def member(name: str, kind: bytes, data: bytes, form: int = tarfile.USTAR_FORMAT) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    return info.tobuf(form) + data.ljust(-len(data) // 512 * -512, b"\0") + bytes(1024)
