"""The platforms of a run: read from a path or a URL, and taken from OUT again."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from configs.platforms import published_platforms
from configs.runs import load_run_config
from pipelines.stages.given import check_urls
from pipelines.stages.peers import describe_run
from pipelines.stages.platforms import made_platforms, publish_platforms, read_platforms
from schemas.errors import ConfigError
from transforms.storage.folder import OutputFolder

OWN = b'[os.zenos]\nid = 113\nidentifiers = ["__ZENOS__"]\n'


@pytest.fixture
def url() -> str:
    """The URL of a file of platforms."""
    fsspec.filesystem("memory").pipe_file("/platforms/mine.toml", OWN)
    return "memory://platforms/mine.toml"


def test_a_file_is_the_same_at_a_path_and_at_a_url(url: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(OWN)
    assert read_platforms(url) == read_platforms(tmp_path / "mine.toml")
    assert read_platforms(url).size == 114
    assert read_platforms(None) == published_platforms()


def test_a_url_is_checked_before_anything_starts(url: str, tmp_path: Path) -> None:
    flags = {"--out": str(tmp_path / "out")}
    check_urls(load_run_config(flags={**flags, "--platforms": url}))
    with pytest.raises(ConfigError, match=r"--platforms memory://platforms/none\.toml: cannot be read"):
        check_urls(load_run_config(flags={**flags, "--platforms": "memory://platforms/none.toml"}))
    fsspec.filesystem("memory").pipe_file("/platforms/wrong.toml", OWN.replace(b"113", b"13"))
    with pytest.raises(ConfigError, match=r"wrong\.toml: \[os\.zenos\] id = 13: os\.aix has it; 113 is free"):
        check_urls(load_run_config(flags={**flags, "--platforms": "memory://platforms/wrong.toml"}))
    with pytest.raises(ConfigError, match="there is no kind of URL nosuch://"):
        load_run_config(flags={**flags, "--platforms": "nosuch://platforms.toml"})


def test_what_is_published_in_out_is_what_it_was_made_with(url: str, tmp_path: Path) -> None:
    out = OutputFolder(tmp_path)
    assert made_platforms(out) == published_platforms()
    for platforms in (read_platforms(url), published_platforms()):
        publish_platforms(platforms, out)
        assert made_platforms(out) == platforms


def test_peers_compare_what_is_in_their_files(url: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(OWN)
    flags = {"--out": str(tmp_path / "out")}
    runs = [
        describe_run(load_run_config(flags={**flags, "--platforms": str(file)}))
        for file in (url, tmp_path / "mine.toml")
    ]
    assert runs[0] == runs[1] != describe_run(load_run_config(flags=flags))
