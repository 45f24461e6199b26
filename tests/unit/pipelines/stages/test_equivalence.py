"""What a comparison of engines replaces, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.console.progress import Reporters
from pipelines.stages.equivalence import Way, compare_ways
from schemas.errors import ConfigError


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_that_is_not_of_a_run_is_not_replaced(tmp_path: Path, is_link: bool) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").touch()
    (tmp_path / "out").mkdir()
    if is_link:
        (tmp_path / "out/local").symlink_to(tmp_path / "mine")
    else:
        (tmp_path / "mine").rename(tmp_path / "out/local")
    runs = compare_ways([Way(name="local", engine="local")], [__file__], tmp_path / "out", Reporters(), required=True)
    with pytest.raises(ConfigError, match=r"out/local is not of a run, and would be replaced; name another folder"):
        next(runs)
    assert (tmp_path / "out/local/thesis.txt").exists()
