"""The command `byte-tables` on a real run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cppmill_core import Tokenizer
from cppmill_core.byte_tables import ByteTables

from pipelines.exports.byte_tables import check_byte_tables, write_byte_tables
from schemas.errors import ConfigError, IntegrityError
from tests.signing import seal


def test_the_tables_count_the_bytes_of_every_document_of_a_run(run: Any, cppmill: Any, tmp_path: Path) -> None:
    file = tmp_path / "tables.npz"
    done = cppmill("byte-tables", "--tokenizer", run.out / "tokenizer", "--out", file, "--check", run.out)
    corpus, dataset = run.receipt["corpus"], run.receipt["dataset"]
    checked = f"{corpus['documents']:,} documents: {corpus['bytes']:,} bytes in {dataset['tokens']:,} tokens"
    assert f"correct for each of {checked}" in done.stdout
    tables = ByteTables.load(file, tokenizer=Tokenizer.from_dir(run.out / "tokenizer"))
    assert tables.vocab_size == run.receipt["tokenizer"]["vocab_size"]


def test_wrong_tables_are_found_and_not_written(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer.from_dir(run.out / "tokenizer")
    right = ByteTables.of(tokenizer)
    counts = right.base_bytes.copy()
    counts[tokenizer.encode(";")[0].as_py()] += 1
    wrong = ByteTables(
        base_bytes=counts,
        has_leading_space=right.has_leading_space,
        is_boundary=right.is_boundary,
        tokenizer=right.tokenizer,
        convention=right.convention,
    )
    assert np.count_nonzero(wrong.base_bytes != right.base_bytes) == 1
    monkeypatch.setattr(ByteTables, "of", lambda tokenizer: wrong)
    with pytest.raises(IntegrityError, match=r"bytes, the byte tables count [\d,]+; do not use them"):
        list(write_byte_tables(run.out / "tokenizer", tmp_path / "wrong.npz", run=str(run.out)))
    assert not (tmp_path / "wrong.npz").exists()


def test_a_run_with_another_tokenizer_is_refused(run: Any, copied_run: Any) -> None:
    tables = ByteTables.of(Tokenizer.from_dir(run.out / "tokenizer"))
    receipt = run.receipt | {"tokenizer": run.receipt["tokenizer"] | {"digest": "ab"}}
    seal(receipt)
    (copied_run.out / "receipt.json").write_text(json.dumps(receipt))
    with pytest.raises(ConfigError, match=f"made with tokenizer ab, but these tables are of {tables.tokenizer}"):
        check_byte_tables(tables, str(copied_run.out))


def test_a_tokenizer_json_is_taken(run: Any, tmp_path: Path) -> None:
    list(write_byte_tables(run.out / "tokenizer" / "tokenizer.json", tmp_path / "a.npz", run=None))
    found, whole = ByteTables.load(tmp_path / "a.npz"), ByteTables.of(Tokenizer.from_dir(run.out / "tokenizer"))
    text = ~whole.is_boundary
    assert np.array_equal(found.base_bytes[text], whole.base_bytes[text])


def test_tables_replace_a_file_and_do_not_change_it(run: Any, tmp_path: Path) -> None:
    file, before = tmp_path / "a.npz", tmp_path / "before.npz"
    file.write_bytes(b"older")
    before.hardlink_to(file)
    list(write_byte_tables(run.out / "tokenizer", file, run=None))
    assert before.read_bytes() == b"older"
    assert ByteTables.load(file).vocab_size == run.receipt["tokenizer"]["vocab_size"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.model", b""),
        ("a.model", b"text\n"),
        ("a.model", b"\x0a\x05\x0a\x03abc\xff\xff"),
        ("a.json", b"{}"),
        ("a.json", b"no"),
    ],
)
def test_files_that_are_no_tokenizer_are_a_usage_error(name: str, content: bytes, cppmill: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    done = cppmill("byte-tables", "--tokenizer", tmp_path / name, "--out", tmp_path / "a.npz", check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert str(tmp_path / name) in done.stderr
    assert not (tmp_path / "a.npz").exists()


def test_what_cannot_be_used_is_a_usage_error(run: Any, cppmill: Any, tmp_path: Path) -> None:
    for arguments, said in [
        (("--tokenizer", tmp_path, "--out", tmp_path / "a.npz"), "no tokenizer; it takes a directory"),
        (("--tokenizer", run.out / "tokenizer", "--out", tmp_path / "no" / "a.npz"), "there is no folder"),
        (("--tokenizer", run.out / "tokenizer", "--out", tmp_path / "a.npz", "--check", tmp_path), "no receipt.json"),
    ]:
        done = cppmill("byte-tables", *arguments, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_tokens_that_are_not_those_of_the_receipt_are_refused(copied_run: Any, cppmill: Any, tmp_path: Path) -> None:
    first, *_, last = sorted((copied_run.out / "tokens").glob("part-*"))
    first.write_bytes(last.read_bytes())
    for command in (
        ["byte-tables", "--tokenizer", copied_run.out / "tokenizer", "--out", tmp_path / "b.npz", "--check"],
        ["vocab", "working-set", "--out", tmp_path / "w.json", "--coverage", "0.9"],
    ):
        done = cppmill(*command, copied_run.out, check=False)
        assert (done.returncode, "not the file that the receipt names" in done.stderr) == (1, True), done.stderr
