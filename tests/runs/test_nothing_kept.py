"""Sources of which nothing is kept end a run with one line that says what was filtered, and why."""

import pytest


@pytest.mark.parametrize("given", [False, True], ids=["built", "given"])
def test_a_folder_of_other_files_is_one_clear_error_again_and_again(run, cppmill, tmp_path, given):
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "notes.txt").write_text("no code\n")
    arguments = ["--tokenizer", run.out / "tokenizer"] if given else []
    for _ in range(2):
        done = cppmill("run", sources, "--out", tmp_path / "out", *arguments, check=False)
        assert done.returncode == 3
        said = done.stderr.splitlines()[-1]
        assert f"SOURCE {sources}: none of 1 documents is kept: filtered[extension] 1" in said
        assert "--extensions" in said
    assert not (tmp_path / "out/receipt.json").exists()


def test_an_empty_table_is_said_to_have_none(run, cppmill, tmp_path):
    (tmp_path / "rows.jsonl").touch()
    arguments = ["--out", tmp_path / "out", "--tokenizer", run.out / "tokenizer"]
    done = cppmill("run", tmp_path / "rows.jsonl", *arguments, check=False)
    assert done.returncode == 3
    assert "none of 0 documents is kept: it has none; " in done.stderr


def test_a_pattern_in_a_folder_that_is_not_there_matches_none(run, cppmill, tmp_path):
    pattern = tmp_path / "no" / "**" / "*.cpp"
    done = cppmill("run", pattern, "--out", tmp_path / "out", "--tokenizer", run.out / "tokenizer", check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"source '{pattern}' is no regular file and matches none" in done.stderr


def test_stages_of_which_nothing_is_kept_say_so_too(run, cppmill, tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "notes.txt").write_text("no code\n")
    given = ["--tokenizer", run.out / "tokenizer"]
    for stage, *arguments in (["ingest"], ["scan"], ["tokenize", *given], ["ingest"]):
        done = cppmill(stage, sources, "--out", tmp_path / "out", *arguments, check=False)
        assert (stage, done.returncode) == (stage, 3)
        assert f"SOURCE {sources}: none of 1 documents is kept: filtered[extension] 1" in done.stderr.splitlines()[-1]


def test_a_source_without_files_beside_others_is_an_error(copied_run, cppmill, tmp_path):
    (tmp_path / "unmounted").mkdir()
    receipt = copied_run.receipt
    done = cppmill(*copied_run.command, tmp_path / "unmounted", check=False)
    assert (done.returncode, copied_run.receipt) == (2, receipt)
    assert f"SOURCE {tmp_path / 'unmounted'}: there is no regular file in it" in done.stderr


def test_the_advice_is_about_what_drops_most(run, cppmill, tmp_path):
    (tmp_path / "sources").mkdir()
    for name in ("a.cpp", "b.cpp", "notes.txt"):
        (tmp_path / "sources" / name).write_text(f"int {name[0]};\n")
    done = cppmill("ingest", tmp_path / "sources", "--out", tmp_path / "out", "--max-document-bytes", "1", check=False)
    assert done.returncode == 3
    assert "filtered[extension] 1" in done.stderr
    assert "--extensions names" not in done.stderr
    done = cppmill("scan", "--out", tmp_path / "out", check=False)
    assert f"error: {tmp_path / 'out'}: none of 3 documents is kept" in done.stderr
