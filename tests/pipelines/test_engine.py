"""A pipeline runs in this process unless Beam's options say otherwise, and never on Beam's worker threads."""

import os
import re

import apache_beam as beam
import pytest

from pipelines.engine import check_beam_options, run_pipeline
from schemas.errors import ConfigError


def keep_process(element, folder):
    (folder / str(element)).write_text(str(os.getpid()))


def processes(tmp_path, *options):
    def construct(pipeline):
        return pipeline | beam.Create(range(8)) | beam.Map(keep_process, tmp_path)

    run_pipeline(construct, beam_options=options)
    return {path.read_text() for path in tmp_path.iterdir()}


def test_it_runs_in_this_process(tmp_path):
    assert processes(tmp_path) == {str(os.getpid())}


def test_beams_options_win(tmp_path):
    found = processes(tmp_path, "--direct_running_mode=multi_processing", "--direct_num_workers=2")
    assert str(os.getpid()) not in found


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--direct_running_mode=multi_threading", "multi_threading: not allowed"),
        ("--direct_runing_mode=in_memory", "no option of Beam; did you mean --direct_running_mode?"),
        ("--direct_num_workers=two", "invalid int value"),
    ],
)
def test_options_that_beam_cannot_use_are_refused(option, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        check_beam_options([option])


def test_every_option_that_beam_knows_is_taken():
    check_beam_options(["--direct_running_mode=multi_processing", "--direct_num_workers=2", "--job_name=x"])


def test_a_step_that_fails_fails_the_run():
    with pytest.raises(ValueError, match="no such thing"):
        run_pipeline(lambda pipeline: pipeline | beam.Create([1]) | beam.Map(fail))


def fail(element):
    raise ValueError("no such thing")
