"""`cppmill lengths` on a real run."""

import json
import os
import resource
import subprocess
import sys

import pyarrow.parquet as pq
import pytest


def test_the_table_is_of_the_tokens_of_the_run(run, cppmill):
    found = json.loads(cppmill("lengths", run.out, "--json").stdout)
    tokens = pq.read_table(run.out / "tokens", columns=["num_tokens"])["num_tokens"].to_pylist()
    assert (found["documents"], found["tokens"], found["longest"]) == (len(tokens), sum(tokens), max(tokens))
    assert found["tokens"] == run.receipt["dataset"]["tokens"]
    (kept,) = [row for row in found["kept"] if row["length"] == 2048]
    assert kept["tokens_cut"] == pytest.approx(sum(min(count, 2048) for count in tokens) / sum(tokens))
    assert f"{kept['tokens_cut']:.2%}" in cppmill("lengths", run.out).stdout


def test_equal_lengths_give_equal_plots(run, cppmill, tmp_path):
    for name in ("one.svg", "two.svg"):
        cppmill("lengths", run.out, "--plot", tmp_path / name)
    drawn = (tmp_path / "one.svg").read_text()
    assert "sequence length, tokens" in drawn
    assert drawn == (tmp_path / "two.svg").read_text()


@pytest.mark.parametrize(("name", "message"), [("a.txt", "its name ends with"), ("no/a.svg", "there is no folder")])
def test_a_plot_that_cannot_be_drawn_is_refused_first(run, cppmill, tmp_path, name, message):
    done = cppmill("lengths", run.out, "--plot", tmp_path / name, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("moment", ["yesterday", "253402300800", "9" * 5000])
def test_a_moment_that_is_no_number_or_has_no_date_is_refused_first(run, cppmill, tmp_path, monkeypatch, moment):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", moment)
    done = cppmill("lengths", run.out, "--plot", tmp_path / "a.svg", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: SOURCE_DATE_EPOCH={moment[:99]}")
    assert ": not a whole number of seconds since 1970, before the year 10000; " in done.stderr


def test_a_backend_that_matplotlib_does_not_have_is_refused_first(run, tmp_path):
    program = [sys.executable, "-m", "cppmill", "lengths", run.out, "--plot", tmp_path / "a.svg"]  # nothing is imported
    environment = {**os.environ, "MPLBACKEND": "nonsense"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: MPLBACKEND=nonsense: matplotlib has no such backend")


def test_a_plot_is_written_whole_or_not_at_all(run, cppmill, tmp_path, limited):
    drawn = tmp_path / "a.svg"
    drawn.write_text("before")
    limited(resource.RLIMIT_FSIZE, 1000)
    done = cppmill("lengths", run.out, "--plot", drawn, check=False)
    assert (done.returncode, drawn.read_text()) == (1, "before")
    assert str(drawn) in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == [drawn]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_shard_that_is_another_or_missing_is_named(is_there, copied_run, cppmill):
    first, *_, last = sorted((copied_run.out / "tokens").glob("part-*"))
    first.unlink()
    if is_there:
        first.write_bytes(last.read_bytes())
    done = cppmill("lengths", copied_run.out, check=False)
    assert done.returncode == 1
    assert f"{first}: " in done.stderr and "the receipt" in done.stderr


def test_a_missing_shard_is_one_line_of_error(copied_run, cppmill, tmp_path):
    first = sorted((copied_run.out / "tokens").glob("part-*"))[0]
    first.unlink()
    for command in (
        ["sequences", copied_run.out, "--out", tmp_path / "sequences", "--length", "64"],
        ["shards", copied_run.out, "--out", tmp_path / "shards"],
        ["trace", "--data", copied_run.out, "--step", "1", "--batch-rows", "2"],
    ):
        done = cppmill(*command, check=False)
        assert (done.returncode, f"{first}: missing" in done.stderr) == (1, True), done.stderr
