"""The program of the build, where the machine refuses something."""

import resource

import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.stages.build import install_tokenizer
from pipelines.stages.session import open_session
from schemas.errors import ResourceError


def test_a_tokenizer_that_outgrows_a_limit_is_named(copied_run, tmp_path, limited):
    config = load_run_config(
        flags={"SOURCE": (), "--out": str(tmp_path / "other"), "--tokenizer": str(copied_run.out / "tokenizer")},
        needs_sources=False,
    )
    limited(resource.RLIMIT_FSIZE, 1000)
    with pytest.raises(ResourceError) as found, open_session(config, Reporters()) as session:
        install_tokenizer(session, copied_run.out / "tokenizer")
    assert str(found.value) == (
        f"{tmp_path}/other/tokenizer: a file may have no more bytes here (ulimit -f: 1,000); raise that, and run again"
    )
