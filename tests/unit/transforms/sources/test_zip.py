"""Zip archives, whole, damaged and lying: what the directory describes rightly comes out, the rest is counted."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.options import IngestOptions
from schemas.reasons import Column
from transforms.sources.archives.zip import iter_zip
from transforms.sources.document import Archive, DamageError, Document


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_members_come_out_byte_for_byte(method: int, archives: Any, read: Any) -> None:
    entries = [*archives.members(30), ("empty.cpp", b"")]
    found = read("a.zip", archives.zip(entries, method))
    assert found.whole == dict(entries)
    assert not found.rest


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("seekable", [True, False])
def test_sizes_before_and_behind_the_data_are_read(method: int, seekable: bool, archives: Any, read: Any) -> None:
    entries = archives.members(40)
    found = read("a.zip", written(entries, method, seekable=seekable))
    assert list(found.whole.items()) == entries
    assert not found.rest


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("seekable", [True, False])
def test_an_archive_without_its_directory_is_one_dead_document_of_its_size(
    method: int, seekable: bool, archives: Any, read: Any
) -> None:
    data = written(archives.members(40), method, seekable=seekable)
    for cut in (300, 1_500, data.rfind(b"PK\x01\x02"), len(data) - 30):
        found = read("a.zip", data[:cut])
        assert not found.whole
        assert found.rest == [("a.zip", "truncated", cut)]


def test_a_damaged_member_is_dead_and_the_others_are_kept(archives: Any, read: Any) -> None:
    entries = archives.members(20)
    data = bytearray(archives.zip(entries, zipfile.ZIP_STORED))
    data[data.find(b"m/f7.cpp") + 20] ^= 0xFF
    found = read("a.zip", bytes(data))
    assert list(found.whole.items()) == [entry for entry in entries if entry[0] != "m/f7.cpp"]
    assert found.rest == [("a.zip/m/f7.cpp", "corrupt", len(entries[7][1]))]


def test_an_archive_with_a_damaged_directory_is_one_dead_document_of_its_size(archives: Any, read: Any) -> None:
    data = bytearray(archives.zip(archives.members(20)))
    data[data.find(b"PK\x01\x02", data.find(b"PK\x01\x02") + 1) + 2] ^= 0xFF
    found = read("a.zip", bytes(data))
    assert not found.whole
    assert found.rest == [("a.zip", "corrupt", len(data))]


def test_a_directory_that_is_too_large_to_hold_is_unsupported(
    archives: Any, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.sources.archives.zip._MAX_DIRECTORY_BYTES", 1_000)
    data = archives.zip(archives.members(20))
    assert read("a.zip", data).rest == [("a.zip", "unsupported", len(data))]
    assert len(read("b.zip", archives.zip(archives.members(5))).whole) == 5


@pytest.mark.parametrize("field", ["size", "crc", "offset"])
@pytest.mark.parametrize("value", [0, 1, 0x7FFFFFFF])
def test_a_directory_that_lies_costs_only_the_member_it_lies_about(
    field: str, value: int, archives: Any, read: Any
) -> None:
    entries = archives.members(6)
    data = bytearray(archives.zip(entries))
    place = data.find(b"PK\x01\x02", data.find(b"PK\x01\x02") + 1)
    struct.pack_into("<I", data, place + {"crc": 16, "size": 24, "offset": 42}[field], value)
    found = read("a.zip", bytes(data))
    assert len(found.whole) == 5 or (field, value) == ("offset", 0)
    assert ("a.zip/m/f1.cpp", "corrupt") in [(path, reason) for path, reason, _ in found.rest]


def test_a_place_beyond_the_file_is_no_other_archive(archives: Any, read: Any) -> None:
    data = bytearray(archives.zip([("a.cpp", b"int a;")]))
    data[data.find(b"PK\x01\x02") + 45] ^= 0x40
    assert read("a.zip", bytes(data)).rest == [("a.zip/a.cpp", "corrupt", 0)]


def test_a_place_that_no_file_has_costs_only_its_member(archives: Any, read: Any) -> None:
    data = archives.zip([("a.cpp", b"int a;"), ("b.cpp", b"int b;")])
    start, end = data.find(b"PK\x01\x02"), data.rfind(b"PK\x05\x06")
    entry, others = data[start : data.rfind(b"PK\x01\x02")], data[data.rfind(b"PK\x01\x02") : end]
    far = struct.pack("<HHQ", 1, 8, 1 << 58)
    entry = entry[:30] + struct.pack("<H", len(far)) + entry[32:42] + b"\xff" * 4 + entry[46:] + far
    count = struct.pack("<I", len(entry + others))
    found = read("a.zip", data[:start] + entry + others + data[end : end + 12] + count + data[end + 16 :])
    assert list(found.whole.items()) == [("b.cpp", b"int b;")]
    assert ("a.zip/a.cpp", "corrupt", 0) in found.rest
    assert all(num_bytes < len(data) for _, _, num_bytes in found.rest)


def test_a_claim_beyond_what_deflate_can_do_is_not_believed(archives: Any, read: Any) -> None:
    data = bytearray(archives.zip([("huge.cpp", b"tiny"), ("huge.txt", b"tiny")]))
    for place in (data.find(b"PK\x01\x02"), data.rfind(b"PK\x01\x02")):
        struct.pack_into("<I", data, place + 24, 0xF0000000)
    assert all(num_bytes < 20_000 for _, _, num_bytes in read("a.zip", bytes(data)).rest)


def test_a_member_that_needs_too_much_memory_is_unsupported(archives: Any, read: Any) -> None:
    window_of_2_gib = b"\x28\xb5\x2f\xfd\x00\xa8" + (7 << 3 | 1).to_bytes(3, "little") + b"int a;\n"
    data = bytearray(archives.zip([("a.cpp", window_of_2_gib), ("b.cpp", b"int b;")], zipfile.ZIP_STORED))
    struct.pack_into("<H", data, data.find(b"PK\x01\x02") + 10, 93)
    found = read("a.zip", bytes(data))
    assert found.rest == [("a.zip/a.cpp", "unsupported", 0)]
    assert found.whole == {"b.cpp": b"int b;"}


def test_encrypted_and_unknown_members_are_counted_with_their_size(archives: Any, read: Any) -> None:
    data = bytearray(archives.zip([("a.cpp", b"12345"), ("b.cpp", b"1234567"), ("c.cpp", b"1")], zipfile.ZIP_STORED))
    first = data.find(b"PK\x01\x02")
    second = data.find(b"PK\x01\x02", first + 1)
    struct.pack_into("<H", data, first + 8, 1)
    struct.pack_into("<H", data, second + 10, 97)
    found = read("a.zip", bytes(data))
    assert found.rest == [("a.zip/a.cpp", "encrypted", 5), ("a.zip/b.cpp", "unsupported", 7)]
    assert found.whole == {"c.cpp": b"1"}


def test_names_are_normalised_or_percent_encoded(archives: Any, read: Any) -> None:
    data = archives.zip([("../../up.cpp", b"1"), ("/abs.cpp", b"2"), ("latin1_X.cpp", b"3"), ("\u540d.cpp", b"4")])
    found = read("a.zip", data.replace(b"latin1_X", b"latin1_\xe9"))
    assert [item.path for item in found.documents] == [
        "a.zip/up.cpp",
        "a.zip/abs.cpp",
        "a.zip/latin1_%E9.cpp",
        "a.zip/\u540d.cpp",
    ]


def test_a_name_that_lies_about_being_utf8_costs_nothing(archives: Any, read: Any) -> None:
    data = archives.zip([("\u540d.cpp", b"1"), ("ok.cpp", b"2")]).replace("\u540d".encode(), b"\xff\xfe\xfd")
    assert [item.path for item in read("a.zip", data).documents] == ["a.zip/%FF%FE%FD.cpp", "a.zip/ok.cpp"]


def test_folders_and_links_are_no_documents(read: Any) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("folder/", b"")
        link = zipfile.ZipInfo("link.cpp")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, b"target.cpp")
    assert read("a.zip", buffer.getvalue()).documents == []


def test_bytes_before_the_archive_are_skipped(archives: Any, read: Any) -> None:
    entries = archives.members(4)
    assert read("a.zip", b"#!/bin/sh\nexit\n" + archives.zip(entries)).whole == dict(entries)


@pytest.mark.parametrize("stub", [b"", b"#!/bin/sh\n" * 300])
@pytest.mark.parametrize("last", [0, 2])
def test_an_archive_before_another_in_one_file_is_dead_and_named(
    stub: bytes, last: int, archives: Any, read: Any
) -> None:
    entries = archives.members(5)
    first = stub + archives.zip(entries[:3])
    found = read("a.zip", first + archives.zip(entries[3 : 3 + last]))
    assert list(found.whole.items()) == entries[3 : 3 + last]
    assert found.rest == [("a.zip", "corrupt", len(first))]


@pytest.mark.parametrize("last", [0, 2])
@pytest.mark.parametrize("gap", [b"", b"\n", b"#!/bin/sh\n" * 30_000])
@pytest.mark.parametrize("cut", [0, 10])
def test_an_archive_before_another_is_found_wherever_it_is(
    cut: int, gap: bytes, last: int, archives: Any, read: Any
) -> None:
    entries, one = archives.members(5), io.BytesIO()
    with zipfile.ZipFile(one, "w") as made:
        made.comment = b"a comment"
        for name, data in entries[:1]:
            made.writestr(name, data)
    first = gap + one.getvalue()[cut:] + gap
    found = read("a.zip", first + archives.zip(entries[3 : 3 + last]))
    assert list(found.whole.items()) == entries[3 : 3 + last]
    assert found.rest == [("a.zip", "corrupt", len(first))]


def test_signatures_in_a_program_before_the_archive_are_no_archive(archives: Any, read: Any) -> None:
    entries = archives.members(3)
    found = read("a.zip", b"\x7fELF PK\x03\x04PK\x01\x02PK\x05\x06" + bytes(300) + archives.zip(entries))
    assert (list(found.whole.items()), found.rest) == (entries, [])


@pytest.mark.parametrize("gap", [b"", b"\n"])
def test_a_cut_archive_behind_another_in_one_file_is_dead_and_named(gap: bytes, archives: Any, read: Any) -> None:
    entries, cut = archives.members(5), gap + archives.zip(archives.members(3))[:300]
    found = read("a.zip", archives.zip(entries) + cut)
    assert list(found.whole.items()) == entries
    assert found.rest == [("a.zip", "corrupt", len(cut))]


def test_zip64_is_read(archives: Any, read: Any) -> None:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.cpp", "w", force_zip64=True) as file,
    ):
        file.write(b"int a;\n" * 100)
    assert read("a.zip", buffer.getvalue()).whole == {"a.cpp": b"int a;\n" * 100}


@pytest.mark.parametrize("data", [b"", b"no archive" * 100, b"PK\x05\x06"])
def test_what_is_not_an_archive_is_one_dead_document_of_its_size(data: bytes, read: Any) -> None:
    assert read("a.zip", data).rest == [("a.zip", "not_an_archive", len(data))]


def test_sizes_that_add_up_beyond_measure_end_the_reading(
    archives: Any, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.sources.document._ARCHIVE_FLOOR_BYTES", 1_000_000)
    entries = [(f"f{index}.cpp", b"%03d" % index * 30_000) for index in range(50)]
    found = read("a.zip", archives.zip(entries), IngestOptions(max_expansion=2))
    assert 5 < len(found.whole) < 12
    assert found.rest == [("a.zip", "expansion", 0)]


@pytest.mark.fuzz
@given(st.binary(max_size=2_000))
def test_any_bytes_end_in_documents_or_a_reason(data: bytes) -> None:
    for item in [*read_bytes(data), *read_bytes(b"PK\x03\x04" + data)]:
        assert item.content is not None or item.reason


@pytest.mark.fuzz
@given(place=st.integers(0, 2_600), flip=st.integers(1, 255))
@example(place=1372, flip=1)  # the directory's size: the first member would begin before the file
def test_one_damaged_byte_loses_one_member_or_is_in_the_directory(place: int, flip: int, archives: Any) -> None:
    entries = archives.members(12)
    data = bytearray(archives.zip(entries))
    directory = data.find(b"PK\x01\x02")
    place %= len(data)
    data[place] ^= flip
    found = read_bytes(bytes(data))
    contents = [item.content for item in found]
    lost = sum(content not in contents for _, content in entries)
    assert lost <= 1 or (place >= directory and any(item.content is None for item in found))
    assert not {content for content in contents if content is not None} - {content for _, content in entries} - {b""}


@pytest.mark.fuzz
@given(cut=st.integers(0, 2_600))
def test_an_archive_cut_anywhere_is_one_dead_document(cut: int, archives: Any) -> None:
    entries = archives.members(12)
    data = archives.zip(entries)
    found = read_bytes(data[:cut])
    if cut < len(data):
        assert [item.column for item in found] == [Column.DEAD]
    else:
        assert [item.content for item in found] == [content for _, content in entries]


def written(entries: list[tuple[str, bytes]], method: int, *, seekable: bool) -> bytes:
    """Write an archive to a file that can or cannot seek: the latter puts sizes behind the data."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return seekable

        def tell(self) -> int:
            if not seekable:
                raise io.UnsupportedOperation
            return super().tell()

    buffer = Pipe()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def read_bytes(data: bytes) -> list[Document]:
    archive = Archive("a.zip", len(data), "a", IngestOptions())
    found = []
    try:
        for document in iter_zip(archive, io.BytesIO(data)):
            found.append(document)
    except DamageError as damage:
        found.append(archive.entry(damage.reason, damage.detail))
    return found


def test_a_name_that_ends_in_a_slash_is_a_document_if_it_has_data(archives: Any, read: Any) -> None:
    found = read("a.zip", written([("folder.cpp/", b""), ("b.cpp/", b"int x;")], zipfile.ZIP_STORED, seekable=True))
    assert found.whole == {"b.cpp": b"int x;"}
    assert not found.rest
