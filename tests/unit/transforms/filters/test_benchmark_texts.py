"""Texts of benchmarks: what is read as it is, and what is no plain text and refused by name."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from schemas.errors import ConfigError
from transforms.filters.benchmark_texts import read_texts

TEXT = b"int a = 1;\n"
ENCODED = {
    "a.jsonl.xz": lzma.compress(TEXT),
    "a.jsonl.bz2": bz2.compress(TEXT),
    "a.txt.gz": gzip.compress(TEXT),
    "a.json": b'{"a": "int\\n"}',
    "a.ipynb": b"{}",
    "binary": b"int\0a",
}
WIDE = {f"a{number}.txt": TEXT.decode().encode(codec) for number, codec in enumerate(("utf-16", "utf-32"))}
WIDE |= {"b.txt": b"\xfe\xff" + TEXT.decode().encode("utf-16-be"), "c.cpp": b"\0\0\xfe\xff" + b"\0\0\0a"}


@pytest.mark.parametrize("name", [*ENCODED, *WIDE])
def test_a_benchmark_that_is_no_plain_text_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes((ENCODED | WIDE)[name])
    with pytest.raises(ConfigError, match=rf"{name}: no plain text; unpack or convert it"):
        list(read_texts(str(tmp_path / name)))
    if name in WIDE:
        with pytest.raises(ConfigError, match=rf"{name}: no plain text; unpack or convert it"):
            list(read_texts(str(tmp_path)))


@pytest.mark.parametrize("name", ["a.cpp", "a.txt", "a.md", "noext"])
def test_any_other_file_is_a_text_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(TEXT)
    assert [text.content for text in read_texts(str(tmp_path / name))] == [TEXT]
