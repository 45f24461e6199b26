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
