"""`cppmill sweep`: the size of the run itself gives the run's own figures, and the costs follow from the sizes."""

from __future__ import annotations

import json
import shutil

import pytest

from pipelines.tokenizers.sweep import parse_sizes
from schemas.errors import ConfigError

SIZES = (8192, 12_288)


@pytest.fixture(scope="module")
def swept(run, cppmill):
    """The records of two sizes on the run's documents."""
    before = run.tree()
    done = cppmill("sweep", run.out, "--sizes", "12288,8192", "--on", run.out, "--models", "64x2,768x12", "--json")
    assert run.tree() == before
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event for event in events if event.get("record") == "size"]


def test_sizes_are_built_in_order(swept):
    assert [row["vocab_size"] for row in swept] == [*SIZES]
    assert swept[0]["tokens"] > swept[1]["tokens"]
    assert [row["superwords"] for row in swept] == [0, 0]


def test_the_size_of_the_run_has_the_tokens_of_its_dataset(run, swept):
    dataset = run.receipt["dataset"]
    assert swept[1]["tokens"] == dataset["tokens"] - 2 * dataset["documents"]
    assert swept[1]["bytes_per_token"] == dataset["bytes"] / swept[1]["tokens"]


def test_never_used_ids_are_those_that_compare_reports(run, swept, cppmill):
    done = cppmill("compare", run.out / "tokenizer", "--on", run.out, "--json")
    assert json.loads(done.stdout.splitlines()[1])["never_used"]["ids"] == swept[1]["never_used"]


def test_costs_are_of_the_embedding_and_of_the_work(swept):
    for row in swept:
        small, large = row["models"]
        assert small["embedding_parameters"] == 64 * row["vocab_size"]
        assert small["embedding_bytes"] == 2 * small["embedding_parameters"]
        assert (small["body_parameters"], large["body_parameters"]) == (98_304, 84_934_656)
        parameters = 84_934_656 + 768 * row["vocab_size"]
        assert large["operations_per_byte"] == pytest.approx(6 * parameters * row["tokens"] / row["bytes"])


def test_there_is_a_row_per_size_and_a_table_per_model(run, swept, cppmill):
    done = cppmill("sweep", run.out, "--sizes", "8192,12288", "--on", run.out, "--models", "64x2,768x12", "--quiet")
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("8,192 ", "12,288 "))]
    assert [row[0] for row in rows] == ["8,192", "12,288"] * 3
    assert [row[1] for row in rows[:2]] == [f"{row['bytes_per_token']:.3f}" for row in swept]


def test_the_plot_is_the_same_each_time(run, cppmill, tmp_path):
    arguments = ("sweep", run.out, "--sizes", "8192,12288", "--on", run.sources / "numpy", "--quiet", "--plot")
    for name in ("one.svg", "two.svg"):
        cppmill(*arguments, tmp_path / name)
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    assert "bytes per token" in drawn
    assert "12,288" in drawn
    done = cppmill(*arguments, tmp_path / "none.txt", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--plot" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--sizes", "8k"), 2, "--sizes 8k: not a list of sizes"),
        (("--sizes", "0"), 2, "--sizes 0: Input should be greater than or equal to 1"),
        (("--sizes", "100"), 2, "vocab_size = 100: too small"),
        (("--sizes", "1000000"), 2, "merges could be learned from the words of the text"),
        (("--sizes", "8192", "--models", "64"), 2, "--models 64: not a list of models"),
    ],
)
def test_what_cannot_be_swept_is_said(run, cppmill, arguments, code, message):
    done = cppmill("sweep", run.out, "--on", run.out, *arguments, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr.splitlines()[-1]


def test_counts_that_differ_from_the_receipt_are_refused(copied_run, cppmill):
    (copied_run.out / "counts/terms.parquet").write_bytes(b"changed")
    done = cppmill("sweep", copied_run.out, "--sizes", "8192", "--on", copied_run.out, check=False)
    assert done.returncode == 1
    assert "counts/terms.parquet: it differs from the run's receipt" in done.stderr
    shutil.rmtree(copied_run.out / "counts")
    done = cppmill("sweep", copied_run.out, "--sizes", "8192", "--on", copied_run.out, check=False)
    assert done.returncode == 1


def test_sizes_are_read_as_they_are_written():
    assert parse_sizes("65536,16_384, 16384") == [16_384, 65_536]
    with pytest.raises(ConfigError, match="not a list of sizes"):
        parse_sizes("1e5")
