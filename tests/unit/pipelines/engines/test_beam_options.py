"""Beam's options are checked before anything starts."""

import re

import pytest

from pipelines.engines.beam_options import check_beam_options
from schemas.errors import ConfigError


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--direct_running_mode=multi_threading", "multi_threading: not allowed"),
        ("--direct_runing_mode=in_memory", "no option of Beam; did you mean --direct_running_mode?"),
        ("--direct_num_workers=two", "invalid int value"),
        ("--object_reuse", "no option of Beam"),
    ],
)
def test_options_that_beam_cannot_use_are_refused(option, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        check_beam_options([option])


def test_every_option_that_beam_knows_is_taken():
    check_beam_options(["--direct_running_mode=multi_processing", "--direct_num_workers=2", "--job_name=x"])


@pytest.mark.parametrize("option", ["--object_reuse", "--execution_mode_for_batch=BATCH_FORCED"])
def test_options_of_the_engine_itself_are_taken(option):
    check_beam_options([option], engine="flink")


def test_the_value_of_an_unknown_option_is_not_repeated():
    with pytest.raises(ConfigError, match="--azure_secret: no option of Beam") as found:
        check_beam_options(["--azure_secret=hush"])
    assert "hush" not in str(found.value)
