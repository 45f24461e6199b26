"""Options of a run reach the files: policy, prefix, vocabulary size, filters, sample and limit."""

import json
import shutil

import pyarrow.parquet as pq
import pytest


@pytest.fixture
def small_run(sources, cppmill, tmp_path):
    """Run over headers, numpy's by default, with the tokenizer of the other run and a run file; gives its folder."""

    def run(tokenizer, toml="", *options, sources=sources / "numpy"):
        file = tmp_path / "run.toml"
        file.write_text(toml)
        out = tmp_path / "out"
        cppmill("run", sources, "--out", out, "--config", file, "--tokenizer", tokenizer, *options)
        return out

    return run


def token_rows(out):
    return [row for path in (out / "tokens").glob("part-*.parquet") for row in pq.read_table(path).to_pylist()]


def ledger(out):
    return json.loads((out / "receipt.json").read_bytes())["ledger"]["documents"]


def test_the_platform_comment_goes_into_a_column_of_its_own(run, small_run, checker, cppmill):
    import cppmill_core

    tokenizer = cppmill_core.Tokenizer.from_dir(run.out / "tokenizer")
    out = small_run(run.out / "tokenizer", "[tokenize]\nplatform_prefix = true\nbos = false\neos = false\n")
    rows = token_rows(out)
    rendered = [tokenizer.decode(row["prefix_token_ids"]).decode() for row in rows]
    assert any(rendered)
    for row, line in zip(rows, rendered, strict=True):
        labels = {label for category in json.loads(row["platform_info"]).values() for label in category}
        assert line == (f"// platform: {', '.join(sorted(labels))}\n" if labels else "")
        assert bool(labels) == bool(row["platform_ids"])
    assert not checker(out)
    assert cppmill("verify", out).returncode == 0


def test_a_sample_and_a_limit_are_counted_in_the_ledger(run, small_run, sources, checker):
    out = small_run(run.out / "tokenizer", "", "--sample", "0.5", "--limit", "3")
    counted = ledger(out)
    assert counted["kept"] == 3
    assert counted["in"] == sum(1 for path in (sources / "numpy").rglob("*") if path.is_file())
    assert {"sample", "limit"} <= counted["filtered"].keys()
    assert not checker(out)


def test_filters_that_are_asked_for_are_applied(run, small_run):
    out = small_run(run.out / "tokenizer", "[ingest]\nmax_line_bytes = 100\nmin_unique_line_ratio = 0.5\n")
    assert ledger(out)["filtered"]["long_lines"] > 0


def test_duplicates_are_kept_when_asked(run, small_run, tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in ("npy_math.h", "halffloat.h"):
        shutil.copy(run.sources / "numpy" / "numpy" / name, sources)
    assert ledger(small_run(run.out / "tokenizer", "", sources=sources))["duplicate"] == 0
    shutil.copy(sources / "npy_math.h", sources / "copy_of_math.h")
    assert ledger(small_run(run.out / "tokenizer", "", sources=sources))["duplicate"] == 1
    kept = small_run(run.out / "tokenizer", "[ingest]\ndrop_duplicates = false\n", sources=sources)
    assert ledger(kept)["duplicate"] == 0


def test_a_tokenizer_without_a_manifest_is_refused(sources, cppmill, tmp_path):
    (tmp_path / "tokenizer").mkdir()
    options = ("--out", tmp_path / "out", "--tokenizer", tmp_path / "tokenizer")
    done = cppmill("run", sources / "numpy", *options, check=False)
    assert done.returncode == 2
    assert "manifest" in done.stderr


def test_the_error_for_too_small_a_vocabulary_names_the_least_size(sources, cppmill, tmp_path):
    done = cppmill("run", sources, "--out", tmp_path / "out", "--vocab-size", "7199", check=False)
    assert done.returncode == 2
    assert "--vocab-size 7199: not allowed" in done.stderr
    assert "7,200" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_least_vocabulary_holds_every_fixed_token(sources, cppmill, checker, tmp_path):
    cppmill("run", sources, "--out", tmp_path / "out", "--vocab-size", "7200")
    assert not checker(tmp_path / "out")


def test_validate_refuses_other_options_than_those_of_the_run(run, small_run, sources, cppmill):
    out = small_run(run.out / "tokenizer", "[tokenize]\nbos = false\n")
    before = (out / "receipt.json").read_bytes()
    done = cppmill("validate", "--out", out, check=False)
    assert done.returncode == 2
    assert "tokenize.bos = true" in done.stderr
    assert "was made with false" in done.stderr
    assert (out / "receipt.json").read_bytes() == before


def test_damage_to_the_cache_only_costs_reading_again(run, small_run):
    out = small_run(run.out / "tokenizer", "")
    before = (out / "receipt.json").read_bytes()
    (out / ".cache" / "digests.json").write_text("{")
    receipt = next((out / "units/tokens").glob("_unit-*.json"))
    cached = [*(out / ".cache" / "stages").iterdir(), *(out / ".cache" / "duplicates").glob("*.parquet")]
    assert len(cached) > 3
    for path in (receipt, *cached):
        path.write_bytes(path.read_bytes()[:-3])
    small_run(run.out / "tokenizer", "")
    assert (out / "receipt.json").read_bytes() == before


def test_a_folder_that_cannot_be_written_is_named(sources, cppmill):
    done = cppmill("run", sources / "numpy", "--out", "/proc/cppmill", check=False)
    assert done.returncode == 2
    assert "/proc/cppmill: cannot be written" in done.stderr


@pytest.mark.parametrize("name", ["documents/thesis.odt", "tokens/mine.parquet", "tokenizer/train.py"])
def test_a_folder_with_foreign_files_is_refused_and_left_alone(cppmill, sources, tmp_path, name):
    precious = tmp_path / "home" / name
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    done = cppmill("run", sources / "numpy", "--out", tmp_path / "home", check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"it holds {name}, which no run wrote" in done.stderr
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == [precious]


def test_files_beside_those_of_a_run_are_kept_and_named_by_its_receipt(copied_run, cppmill):
    (copied_run.out / "notes.txt").write_text("precious")
    cppmill(*copied_run.command)
    assert "notes.txt" in copied_run.receipt["files"]
    assert (copied_run.out / "notes.txt").read_text() == "precious"


@pytest.mark.parametrize(
    "url", ["ftp://me:5ecret pa55@", "http://5ecret pa55@", "https://127.0.0.1:1/b?token=5ecret pa55#"]
)
@pytest.mark.parametrize("command", [["verify"], ["verify", "--json"], ["report"], ["run", "sources", "--out"]])
def test_a_password_with_white_space_is_in_no_message(cppmill, command, url):
    done = cppmill(*command, f"{url}127.0.0.1:1/a", check=False)
    assert done.returncode == 2
    assert "127.0.0.1" in done.stderr
    assert "5ecret" not in done.stdout + done.stderr
    assert "pa55" not in done.stdout + done.stderr


@pytest.mark.parametrize("json", [[], ["--json"]])
@pytest.mark.parametrize("words", [["{}"], ["run", "{}"], ["vocab", "{}"], ["vocab", "init", "{}"]])
@pytest.mark.parametrize("bad", ["--no\u202e", "--no\x1b]0;a\x07", "--http://me:5ecret@b/c"])
def test_what_the_parser_refuses_is_escaped_and_without_a_password(cppmill, words, bad, json):
    done = cppmill(*(word.format(bad) for word in words), *json, check=False)
    said = done.stdout + done.stderr
    assert (done.returncode, "No such option" in said) == (2, True), said
    assert not [character for character in ("\u202e", "\x1b", "\x07", "5ecret") if character in said]
