"""What benchmarks measure on: the vocabulary fits the text, and the sample is text that peers can take."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benches.lib.corpus import MAX_SAMPLE_DOCUMENT_BYTES, choose_vocab_size, documents_bytes, sample_share, write_sample
from configs.runs import RunConfig
from schemas.errors import ConfigError


def write_documents(out: Path, contents: list[bytes]) -> None:
    (out / "documents").mkdir()
    columns = {
        "doc_id": [hashlib.sha256(content).hexdigest() for content in contents],
        "project": ["p"] * len(contents),
        "content": pa.array(contents, pa.binary()),
        "num_bytes": pa.array(map(len, contents), pa.uint64()),
    }
    pq.write_table(pa.table(columns), out / "documents" / "part-0.parquet")


def sampled(path: Path) -> list[bytes]:
    contents: list[bytes] = pq.read_table(path)["content"].to_pylist()
    return contents


@pytest.mark.parametrize(
    ("text_bytes", "vocab_size"),
    [(400_000, 8192), (5_000_000, 16_384), (31_999_999, 16_384), (32_000_000, 65_536), (10**12, 65_536)],
)
def test_more_text_fills_a_larger_vocabulary(text_bytes: int, vocab_size: int) -> None:
    assert choose_vocab_size(text_bytes) == vocab_size


def test_the_sample_leaves_out_what_peers_cannot_take(tmp_path: Path) -> None:
    long = b"x" * (MAX_SAMPLE_DOCUMENT_BYTES + 1)
    write_documents(tmp_path, [b"int x;", b"\xff", "é".encode(), long])
    assert write_sample(tmp_path, tmp_path / "sample") == len("int x;é".encode())
    assert sampled(tmp_path / "sample") == [b"int x;", "é".encode()]


def test_the_sample_is_about_as_large_as_asked_and_always_the_same(tmp_path: Path) -> None:
    write_documents(tmp_path, [b"int x%06d;" % number for number in range(10_000)])
    assert documents_bytes(tmp_path) == 120_000
    num_bytes = write_sample(tmp_path, tmp_path / "sample", sample_bytes=30_000)
    assert 25_000 < num_bytes < 35_000
    first = sampled(tmp_path / "sample")
    write_sample(tmp_path, tmp_path / "sample", sample_bytes=30_000)
    assert sampled(tmp_path / "sample") == first


def test_no_text_to_compare_on_is_refused(tmp_path: Path) -> None:
    write_documents(tmp_path, [b"\xff"])
    with pytest.raises(ConfigError, match="valid UTF-8"):
        write_sample(tmp_path, tmp_path / "sample")


def test_a_limit_is_a_share_of_what_would_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_bytes(b"x" * 4000)
    (tmp_path / "notes.md").write_bytes(b"x" * 9000)
    config = RunConfig(sources=(str(tmp_path),), out=tmp_path / "out")
    assert [sample_share(config, limit) for limit in (1000, 4000, 9000, None)] == [0.25, 1.0, 1.0, 1.0]
