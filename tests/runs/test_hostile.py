"""The hostile corpus: nothing in it is lost without a counted reason, and nothing stops a run.

`make check` holds the same run to `expect.json` with the independent checker.
"""

import json
import runpy
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]


def write_corpus(folder, *flags):
    """Write the hostile corpus into a new folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["hostile_corpus.py", str(folder), *flags])
        runpy.run_path(str(ROOT / "checks" / "hostile_corpus.py"), run_name="__main__")
    return folder


@pytest.fixture(scope="module")
def hostile(run, processes, tmp_path_factory):
    """A run over the hostile corpus with the tokenizer of the other run, and its peak memory in bytes."""
    folder = tmp_path_factory.mktemp("hostile")
    corpus, out = write_corpus(folder / "corpus", "--big"), folder / "out"
    options = ("--tokenizer", run.out / "tokenizer", "--max-dead-fraction", "1")
    process = processes.command("run", corpus / "files", corpus / "archives", "--out", out, *options)
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_memory_bytes(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0
    assert peak > 1e8, "the peak was not read"
    return corpus, out, peak


@pytest.fixture(scope="module")
def small_corpus(tmp_path_factory):
    """The hostile corpus without its two big files."""
    return write_corpus(tmp_path_factory.mktemp("small") / "corpus")


def peak_memory_bytes(pid):
    """The highest resident memory of a process so far; what `wait4` returns would start with pytest's own."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return 1024 * int(lines[0]) if lines else 0


def test_every_broken_archive_is_in_the_ledger(hostile):
    _, out, _ = hostile
    rejects = [row for path in (out / "documents").glob("rejects-*.parquet") for row in pq.read_table(path).to_pylist()]
    dead = {row["path"].split("/")[0]: row["reason"] for row in rejects if row["column"] == "dead"}
    broken = {"truncated.tar.gz", "not_a.tar", "bad_crc.zip", "truncated.zip", "bad_lines.jsonl", "truncated.jsonl.gz"}
    assert broken | {"wrong_column.parquet", "corrupt.parquet"} <= dead.keys()
    assert not {"good.tar.gz", "good.parquet", "traversal.zip"} & dead.keys()


def test_memory_stays_below_two_gigabytes(hostile):
    assert hostile[2] < 2e9


def test_control_text_is_counted(hostile):
    _, out, _ = hostile
    counted = json.loads((out / "receipt.json").read_bytes())["policy"]["control_text"]
    assert counted == {
        "<EOS>": 1,
        "<BOS>": 1,
        "<FIM_PREFIX>": 1,
        "<PAD>": 1,
        "<CODE_START>": 1,
        "<THINK_START>": 1,
        "<UNK>": 1,
    }


def test_too_much_bad_input_ends_with_code_3_and_its_rejects_written(small_corpus, cppmill, tmp_path):
    options = ("--out", tmp_path / "out", "--max-dead-fraction", "0.001")
    done = cppmill("ingest", small_corpus / "archives", *options, check=False)
    assert done.returncode == 3, done.stderr
    assert "--max-dead-fraction" in done.stderr
    assert list((tmp_path / "out" / "documents").glob("rejects-*.parquet"))


def test_a_vocabulary_that_cannot_be_filled_fails_with_the_possible_size(small_corpus, cppmill, tmp_path):
    done = cppmill("run", small_corpus / "files", "--out", tmp_path / "out", "--vocab-size", "65536", check=False)
    assert done.returncode in (1, 2)
    assert "65536" in done.stderr.replace(",", "")
    assert "vocab" in done.stderr
