"""The commands `encode` and `decode`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.tokenizers.codec import parse_ids
from schemas.errors import ConfigError

FIRST_BYTE = 10


class ByteTokenizer:
    """A stand-in whose ids are bytes, after ten control ids."""

    vocab_size = 256 + FIRST_BYTE

    @classmethod
    def from_dir(cls, path: Path) -> ByteTokenizer:
        assert (path / "manifest.json").is_file()
        return cls()

    def encode(self, data: bytes) -> pa.Array:
        return pa.array([byte + FIRST_BYTE for byte in data], pa.uint16())

    def decode(self, ids: Sequence[int], *, skip_control: bool) -> bytes:
        if any(entry < FIRST_BYTE for entry in ids) and not skip_control:
            raise cppmill_core.InvalidInputError("id 3 is a control id; pass skip_control=True to leave such ids out")
        return bytes(entry - FIRST_BYTE for entry in ids if entry >= FIRST_BYTE)


@pytest.fixture
def tokenizer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A tokenizer directory, and the stand-in that loads it."""
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "manifest.json").write_text("{}")
    monkeypatch.setattr(cppmill_core, "load_tokenizer", ByteTokenizer.from_dir)
    return tmp_path / "tokenizer"


def call(*arguments: str, data: bytes = b"") -> Any:
    """Run a command in this process."""
    return CliRunner().invoke(app, list(arguments), input=data)


ALL_BYTES = bytes(range(256)) * 300
"""More ids than are written at once, with line ends and invalid UTF-8."""


@pytest.mark.parametrize(
    "data", [b"", b"a", b"int x;\r\n", ALL_BYTES], ids=["nothing", "a byte", "a line", "all bytes"]
)
def test_decode_gives_back_the_bytes_of_encode(data: bytes, tokenizer: Path) -> None:
    encoded = call("encode", "--tokenizer", str(tokenizer), data=data)
    assert encoded.exit_code == 0
    assert json.loads(encoded.stdout) == [byte + FIRST_BYTE for byte in data]
    assert encoded.stdout.endswith("]\n")
    decoded = call("decode", "--tokenizer", str(tokenizer), "-", data=encoded.stdout_bytes)
    assert (decoded.exit_code, decoded.stdout_bytes) == (0, data)


def test_files_are_read_as_they_are(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_bytes(b"\xff\r\n")
    encoded = call("encode", "--tokenizer", str(tokenizer), str(tmp_path / "a.cpp"))
    assert json.loads(encoded.stdout) == [265, 23, 20]


BAD_ARRAYS = [
    (b"", "not JSON"),
    (b"[1, 2", "not JSON"),
    (b"\xff", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b"[" + b"9" * 6000 + b"]", "not JSON that can be read (a number has thousands of digits); a JSON array"),
    (b'{"ids": [1]}', "a JSON object; a JSON array of ids is needed"),
    (b"7", "a JSON number; "),
    (b"null", "a JSON null; "),
    (b'"x"', "a JSON string; "),
    (b"[1, 2.0]", "entry 1 is 2.0; ids are whole numbers"),
    (b"[true]", "entry 0 is true; ids are whole numbers"),
    (b"[NaN]", "entry 0 is NaN; ids are whole numbers"),
    (b'["1"]', 'entry 0 is "1"; ids are whole numbers'),
    (b"[[1]]", "entry 0 is [1]; ids are whole numbers"),
    (b"[0, -1]", "entry 1 is -1; the tokenizer has the ids 0 to 265"),
    (b"[266]", "entry 0 is 266; the tokenizer has the ids 0 to 265"),
    (b"[99999999999999999999999]", "entry 0 is 99999999999999999999999; the tokenizer has"),
]


@pytest.mark.parametrize(("data", "message"), BAD_ARRAYS, ids=[str(data[:20]) for data, _ in BAD_ARRAYS])
def test_anything_but_ids_is_a_usage_error(data: bytes, message: str, tokenizer: Path) -> None:
    result = call("decode", "--tokenizer", str(tokenizer), data=data)
    assert result.exit_code == 2
    assert result.stdout_bytes == b""
    assert result.stderr.startswith("error: standard input: ")
    assert message in result.stderr


def test_control_ids_are_an_error_unless_left_out(tokenizer: Path) -> None:
    refused = call("decode", "--tokenizer", str(tokenizer), data=b"[3, 107]")
    assert (refused.exit_code, refused.stderr) == (
        2,
        "error: id 3 is a control id; give --skip-control to leave such ids out\n",
    )
    skipped = call("decode", "--tokenizer", str(tokenizer), "--skip-control", data=b"[3, 107]")
    assert (skipped.exit_code, skipped.stdout) == (0, "a")


@pytest.mark.parametrize("command", ["encode", "decode"])
def test_a_missing_file_or_tokenizer_is_a_usage_error(command: str, tokenizer: Path) -> None:
    missing = call(command, "--tokenizer", str(tokenizer), "/no/such")
    assert (missing.exit_code, missing.stderr) == (2, "error: /no/such: cannot be read: No such file or directory\n")
    nowhere = call(command, "--tokenizer", "/no/such", data=b"[]")
    assert nowhere.exit_code == 2
    assert nowhere.stderr.startswith("error: --tokenizer /no/such: no tokenizer; ")


def test_parse_ids_names_the_file() -> None:
    with pytest.raises(ConfigError, match=r"^ids\.json: entry 2 is 4; "):
        parse_ids(b"[0, 3, 4]", vocab_size=4, where="ids.json")


@pytest.mark.parametrize("command", ["encode", "decode", "show"])
def test_a_device_without_an_end_is_not_read(command: str, tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "zeros.cpp").symlink_to("/dev/zero")
    done = call(command, str(tmp_path / "zeros.cpp"), "--tokenizer", str(tokenizer))
    assert done.exit_code == 2
    assert "zeros.cpp: cannot be read: a pipe or a device, not a file" in done.stderr
