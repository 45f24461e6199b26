"""Compressed streams: everything before damage is delivered, damage is said and never raised."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.options import IngestOptions
from schemas.reasons import Dead
from tests.fuzzing import examples
from transforms.sources.document import Archive
from transforms.sources.streams import MemberStream

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": zstandard.ZstdCompressor().compress,
    "": bytes,
}
TEXT = b"".join(b"int value_%d = %d;\n" % (index, index * index % 977) for index in range(40_000))
PACKED = {codec: compress(TEXT) for codec, compress in COMPRESS.items()}
codecs = st.sampled_from(list(COMPRESS))
compressed = st.sampled_from([codec for codec in COMPRESS if codec])


def stream(data: bytes, codec: str) -> MemberStream:
    return MemberStream(Archive("a", len(data), "a", IngestOptions()), lambda: io.BytesIO(data), codec)


def drain(source: MemberStream, size: int = 100_000) -> bytes:
    parts = []
    while piece := source.read(size):
        parts.append(piece)
    return b"".join(parts)


@pytest.mark.fuzz
@given(st.lists(st.binary(max_size=300), max_size=4), codecs, st.integers(1, 700))
def test_streams_one_after_the_other_are_one(parts: list[bytes], codec: str, size: int) -> None:
    data = b"".join(map(COMPRESS[codec], parts)) or COMPRESS[codec](b"")
    source = stream(data, codec)
    assert drain(source, size) == b"".join(parts)
    assert source.damage is None


def test_a_file_with_less_than_was_listed_is_truncated() -> None:
    source = MemberStream(Archive("a", 9, "a", IngestOptions()), lambda: io.BytesIO(b"int a;\n"), "")
    assert drain(source) == b"int a;\n"
    assert source.damage is not None
    assert source.damage.reason is Dead.TRUNCATED


@pytest.mark.parametrize("codec", COMPRESS)
def test_a_long_stream_comes_out_whole_in_any_steps(codec: str) -> None:
    data = PACKED[codec]
    assert drain(stream(data, codec), 77_777) == TEXT
    source = stream(data, codec)
    assert source.skip(300_000) == 300_000
    assert source.read(50) == TEXT[300_000:300_050]
    assert source.skip(1 << 40) == len(TEXT) - 300_050


@pytest.mark.fuzz
@given(compressed, st.floats(0, 0.999))
@settings(max_examples=examples(40))
def test_a_cut_stream_delivers_a_prefix_and_says_truncated(codec: str, share: float) -> None:
    data = PACKED[codec]
    source = stream(data[: int(len(data) * share)], codec)
    found = drain(source)
    assert TEXT.startswith(found)
    assert source.damage is not None
    assert source.damage.reason == (Dead.TRUNCATED if int(len(data) * share) else Dead.NOT_AN_ARCHIVE)


@pytest.mark.parametrize("codec", ["gz", "bz2", "xz", "zst"])
def test_garbage_after_a_stream_is_damage_and_padding_is_not(codec: str) -> None:
    data = PACKED[codec]
    source = stream(data + bytes(1_000), codec)
    assert drain(source) == TEXT
    assert source.damage is None
    source = stream(data + b"no stream" * 20, codec)
    assert drain(source) == TEXT
    assert source.damage is not None
    assert source.damage.reason == Dead.CORRUPT


def test_bytes_decoded_in_the_step_of_an_error_are_delivered() -> None:
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(TEXT[:100_000]) + packer.flush(zlib.Z_SYNC_FLUSH) + b"\xff" * 50
    source = stream(data, "gz")
    found = drain(source)
    assert TEXT.startswith(found)
    assert len(found) >= 99_999  # the decoder looks one byte ahead
    assert source.damage is not None
    assert source.damage.reason == Dead.CORRUPT


def with_dictionary_of_512_mib(data: bytes) -> bytes:
    """The same xz stream, whose first block says that it has a larger dictionary."""
    end = 12 + 4 * data[12]
    header = data[12:16] + b"\x22" + data[17:end]
    return data[:12] + header + zlib.crc32(header).to_bytes(4, "little") + data[end + 4 :]


LARGE = {
    "xz": (with_dictionary_of_512_mib(COMPRESS["xz"](b"int a;\n")), 256),
    "zst": (b"\x28\xb5\x2f\xfd\x00\xa8" + (7 << 3 | 1).to_bytes(3, "little") + b"int a;\n", 128),  # a window of 2 GiB
}


@pytest.mark.parametrize("codec", LARGE)
@pytest.mark.parametrize("before", [b"", TEXT])
def test_a_stream_that_needs_too_much_memory_is_unsupported_and_not_damaged(codec: str, before: bytes) -> None:
    large, limit = LARGE[codec]
    source = stream((COMPRESS[codec](before) if before else b"") + large, codec)
    assert drain(source) == before
    assert source.damage is not None
    said = f"the {codec} stream needs more than {limit} MiB of memory to decompress"
    assert (source.damage.reason, source.damage.detail) == (Dead.UNSUPPORTED, said)


@pytest.mark.fuzz
@given(st.binary(max_size=200), compressed)
def test_any_bytes_end(data: bytes, codec: str) -> None:
    source = stream(data, codec)
    drain(source)
    assert source.damage is not None or not data or codec == "xz" or len(data) > 5


@pytest.mark.parametrize("codec", ["gz", "bz2", "xz", "zst"])
@pytest.mark.timeout(60)
def test_a_stream_with_any_byte_damaged_ends(codec: str) -> None:
    data = COMPRESS[codec](TEXT[:400])
    for place in range(len(data)):
        source = stream(data[:place] + bytes([data[place] ^ 0x81]) + data[place + 1 :], codec)
        found = drain(source)
        assert source.damage is not None or len(found) in (0, 400)


@pytest.mark.fuzz
@given(st.lists(st.binary(max_size=60), max_size=9), codecs, st.integers(1, 40))
def test_lines_are_cut_at_line_feeds_and_long_ones_only_counted(lines: list[bytes], codec: str, bound: int) -> None:
    data = b"\n".join(lines)
    source = stream(COMPRESS[codec](data), codec)
    for line in io.BytesIO(data):
        assert source.read_line(bound) == ((line if len(line) <= bound else b""), len(line), len(line) <= bound)
    assert source.read_line(bound) == (b"", 0, True)


def test_a_line_across_many_pieces_is_one() -> None:
    line = b"x" * 3_000_000 + b"\n"
    source = stream(gzip.compress(line + b"y"), "gz")
    assert source.read_line(1 << 22) == (line, len(line), True)
    assert source.read_line(1 << 22) == (b"y", 1, True)


def test_an_error_of_the_file_system_is_damage() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(errno.EIO, "input/output error")

    source = MemberStream(Archive("a", 9, "a", IngestOptions()), Failing, "gz")
    assert drain(source) == b""
    assert source.damage is not None
    assert (source.damage.reason, source.damage.detail) == (Dead.UNREADABLE, "EIO")
