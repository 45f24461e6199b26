"""The hostile corpus: nothing in it is lost without a counted reason, and nothing stops a run.

`make check` holds the same run to `expect.json` with the independent checker.
"""

import json
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.prepared import write_hostile


def command(run, corpus, out):
    """The arguments that run the hostile corpus with the tokenizer of the other run."""
    options = ("--tokenizer", run.out / "tokenizer", "--max-dead-fraction", "1")
    return ["run", corpus / "files", corpus / "archives", "--out", out, *options]


@pytest.fixture(scope="module")
def hostile(run, cppmill, hostile_corpus, tmp_path_factory):
    """A run over the hostile corpus."""
    out = tmp_path_factory.mktemp("hostile") / "out"
    cppmill(*command(run, hostile_corpus, out))
    return out


def peak_memory_bytes(pid):
    """The highest resident memory of a process so far; what `wait4` returns would start with pytest's own."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return 1024 * int(lines[0]) if lines else 0


def test_every_broken_archive_is_in_the_ledger(hostile):
    rejects = [
        row for path in (hostile / "documents").glob("rejects-*.parquet") for row in pq.read_table(path).to_pylist()
    ]
    dead = {row["path"].split("/")[0]: row["reason"] for row in rejects if row["column"] == "dead"}
    broken = {"truncated.tar.gz", "not_a.tar", "bad_crc.zip", "truncated.zip", "bad_lines.jsonl", "truncated.jsonl.gz"}
    assert broken | {"wrong_column.parquet", "corrupt.parquet"} <= dead.keys()
    assert not {"good.tar.gz", "good.parquet", "traversal.zip"} & dead.keys()


@pytest.mark.engines
def test_memory_stays_below_two_gigabytes(run, processes, tmp_path):
    """With a line of 50 MB and a bomb of 1 GB, which take seconds to make; those of the pipeline's test are smaller."""
    corpus = write_hostile(tmp_path / "corpus", "--big")
    process = processes.command(*command(run, corpus, tmp_path / "out"))
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_memory_bytes(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0
    assert peak > 1e8, "the peak was not read"
    assert peak < 2e9


def test_control_text_is_counted(hostile):
    counted = json.loads((hostile / "receipt.json").read_bytes())["policy"]["control_text"]
    assert counted == {
        "<EOS>": 1,
        "<BOS>": 1,
        "<FIM_PREFIX>": 1,
        "<PAD>": 1,
        "<CODE_START>": 1,
        "<THINK_START>": 1,
        "<UNK>": 1,
    }


def test_too_much_bad_input_ends_with_code_3_and_its_rejects_written(hostile_corpus, cppmill, tmp_path):
    options = ("--out", tmp_path / "out", "--max-dead-fraction", "0.001")
    done = cppmill("ingest", hostile_corpus / "archives", *options, check=False)
    assert done.returncode == 3, done.stderr
    assert "--max-dead-fraction" in done.stderr
    assert list((tmp_path / "out" / "documents").glob("rejects-*.parquet"))


def test_a_vocabulary_that_cannot_be_filled_fails_with_the_possible_size(hostile_corpus, cppmill, tmp_path):
    done = cppmill("run", hostile_corpus / "files", "--out", tmp_path / "out", "--vocab-size", "65536", check=False)
    assert done.returncode in (1, 2)
    assert "65536" in done.stderr.replace(",", "")
    assert "vocab" in done.stderr


def test_a_name_of_several_lines_is_never_a_line_of_its_own(run, cppmill, tmp_path):
    sources, out, tokenizer = tmp_path / "sources", tmp_path / "out", run.out / "tokenizer"
    project = sources / "project\nforged 1"
    project.mkdir(parents=True)
    (project / "a\nforged 2.cpp").write_text("int a;\n")
    (project / "link\nforged 3.cpp").symlink_to("a.cpp")
    (sources / "broken\nforged 4.tar.gz").write_bytes(b"\x1f\x8b")
    given = (sources, "--out", out, "--tokenizer", tokenizer)
    allowed = (*given, "--max-dead-fraction", "1")
    said = [
        cppmill("plan", *allowed),
        cppmill("run", *given, check=False),
        cppmill("run", *allowed),
        cppmill("trace", "--data", out, "--step", "0", "--batch-rows", "1"),
        cppmill("compare", f"a={tokenizer}", "--on", out, "--verbose"),
        cppmill("provenance", out, "--out", tmp_path / "card", "--date", "2026-01-01"),
    ]
    assert [done.returncode for done in said] == [0, 3, 0, 0, 0, 0]
    printed = [done.stdout + done.stderr for done in said]
    assert not [text for text in printed if any(line.startswith("forged") for line in text.splitlines())]
    shown = [sum(f"\\nforged {number}" in text for text in printed) for number in (1, 2, 3, 4)]
    assert all(shown), shown
