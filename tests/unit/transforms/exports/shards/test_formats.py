"""The files of training programs, byte for byte as their loaders read them."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import IntegrityError
from transforms.exports.shards.formats import (
    hash_ids,
    megatron_type,
    read_bin,
    read_index,
    write_bin,
    write_ids,
    write_index,
)


def ids(*values: int) -> np.ndarray:
    return np.asarray(values, dtype=np.uint16)


def test_a_bin_shard_is_a_header_of_256_int32_and_uint16_ids(tmp_path: Path) -> None:
    written = write_bin(tmp_path / "x.bin", [ids(1, 65535), ids(), ids(258)], tokens=3)
    golden = bytes.fromhex("88d8340101000000030000000000000000000000") + bytes(1004) + bytes.fromhex("0100ffff0201")
    assert (tmp_path / "x.bin").read_bytes() == golden
    assert written == (3, hashlib.sha256(golden[1024:]).hexdigest())
    assert hash_ids(tmp_path / "x.bin", skip=1024) == written.sha256
    assert read_bin(tmp_path / "x.bin").tolist() == [1, 65535, 258]


@pytest.mark.parametrize("tokens", [1, 3])
def test_a_bin_shard_of_another_number_of_tokens_is_refused(tmp_path: Path, tokens: int) -> None:
    with pytest.raises(IntegrityError, match=f"2 tokens came for a shard of {tokens}"):
        write_bin(tmp_path / "x.bin", [ids(1, 2)], tokens=tokens)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [(0, 20240521, "not a .bin"), (4, 2, "not a .bin"), (8, 4, "its size 3"), (12, 7, "more than"), (1020, 1, "more")],
)
def test_a_wrong_header_is_refused(tmp_path: Path, place: int, value: int, message: str) -> None:
    path = tmp_path / "x.bin"
    write_bin(path, [ids(1, 2, 3)], tokens=3)
    data = bytearray(path.read_bytes())
    data[place : place + 4] = struct.pack("<i", value)
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match=message):
        read_bin(path)


def test_an_index_is_laid_out_as_megatron_writes_it(tmp_path: Path) -> None:
    write_index(tmp_path / "x.idx", np.asarray([3, 1]), kind="<u2")
    golden = b"MMIDIDX\0\0" + struct.pack("<QBQQ2i2q3q", 1, 8, 2, 3, *(3, 1), *(0, 6), *(0, 1, 2))
    assert (tmp_path / "x.idx").read_bytes() == golden


@given(st.lists(st.lists(st.integers(0, (1 << 20) - 1), min_size=1), min_size=1), st.sampled_from([1 << 16, 1 << 20]))
def test_a_pair_gives_back_its_documents(tmp_path_factory: pytest.TempPathFactory, documents: list, size: int) -> None:
    folder, kind = tmp_path_factory.mktemp("pair"), megatron_type(size)
    documents = [[id_ % size for id_ in document] for document in documents]
    write_ids(folder / "x.bin", [np.asarray(document, dtype=np.uint32) for document in documents], kind=kind)
    write_index(folder / "x.idx", np.asarray([len(document) for document in documents]), kind=kind)
    index, data = read_index(folder / "x.idx"), (folder / "x.bin").read_bytes()
    assert index.kind == kind
    assert index.documents.tolist() == list(range(len(documents) + 1))
    found = [
        np.frombuffer(data, kind, length, pointer).tolist()
        for length, pointer in zip(index.lengths, index.pointers, strict=True)
    ]
    assert found == documents


@pytest.mark.parametrize("harm", [lambda data: b"X" + data[1:], lambda data: data[:-1], lambda data: data + b"\0"])
def test_a_damaged_index_is_refused(tmp_path: Path, harm) -> None:
    path = tmp_path / "x.idx"
    write_index(path, np.asarray([3, 1]), kind="<i4")
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(IntegrityError):
        read_index(path)


def test_ids_are_uint16_while_every_one_fits() -> None:
    assert [megatron_type(size) for size in (100, 65_536, 65_537)] == ["<u2", "<u2", "<i4"]
