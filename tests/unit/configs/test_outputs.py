"""Files that commands write beside a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from configs.outputs import check_file, check_outside, check_parent
from schemas.errors import ConfigError


def test_a_file_needs_a_folder(tmp_path: Path) -> None:
    check_parent(tmp_path / "a.svg", option="--plot")
    with pytest.raises(ConfigError, match=r"--plot .*: there is no folder .*/no; make it, or name another"):
        check_parent(tmp_path / "no" / "a.svg", option="--plot")


def test_a_link_needs_the_folder_of_the_file_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    check_parent(tmp_path / "a", option="--out")
    (tmp_path / "c").symlink_to(tmp_path / "no" / "d")
    with pytest.raises(ConfigError, match=r"--out .*/c: there is no folder .*/no; make it, or name another"):
        check_parent(tmp_path / "c", option="--out")


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    check_file(tmp_path / "a.json", option="--out")
    with pytest.raises(ConfigError, match=r"--out .*: it is a folder; name a file in it"):
        check_file(tmp_path, option="--out")
    with pytest.raises(ConfigError, match=r"--out .*: there is no folder"):
        check_file(tmp_path / "no" / "a.json", option="--out")


@pytest.mark.parametrize("inside", ["run", "run/page.html", "other/../run/page.html"])
def test_a_file_in_the_run_is_refused(inside: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--out .*: in the run's own folder, whose receipt names every file"):
        check_outside(tmp_path / inside, str(tmp_path / "run"), option="--out")


@pytest.mark.parametrize("run", ["run", "s3://bucket/run"])
def test_a_file_beside_the_run_is_allowed(run: str, tmp_path: Path) -> None:
    check_outside(tmp_path / "run-page.html", str(tmp_path / run) if run == "run" else run, option="--out")


RECORDED = {"receipt.json": "cppmill-receipt-1", "manifest.json": "cppmill-tokenizer-1"}


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("where", ["made/a.json", "made/deep/a.json", "link/a.json", "a-link.json"])
def test_a_file_where_a_record_lists_all_files_is_refused(name: str, where: str, tmp_path: Path) -> None:
    (tmp_path / "made" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "made" / "deep")
    (tmp_path / "a-link.json").symlink_to(tmp_path / "made" / "a.json")
    check_file(tmp_path / where, option="--out")
    (tmp_path / "made" / name).write_text(json.dumps({"format": RECORDED[name]}))
    with pytest.raises(ConfigError, match=rf"--out .*: .*/made/{name} lists every file there; name another folder"):
        check_file(tmp_path / where, option="--out")


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"format": 1}', '{"format": "other"}', '{"format": "cppmill-freeze-1"}']
)
def test_a_file_beside_the_receipt_of_something_else_is_allowed(content: str, tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text(content)
    check_file(tmp_path / "a.json", option="--out")


@pytest.mark.parametrize("inside", ["a.json", "changes/v000001.json", "versions/a.json"])
def test_a_file_in_a_store_is_refused(inside: str, tmp_path: Path) -> None:
    for folder in ("versions", "changes"):
        (tmp_path / folder).mkdir()
    check_file(tmp_path / inside, option="--plot")
    (tmp_path / "current").symlink_to("versions/v000001")
    with pytest.raises(ConfigError, match=rf"--plot .*: {tmp_path} is a store of versions; name another folder"):
        check_file(tmp_path / inside, option="--plot")
