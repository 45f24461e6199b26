"""A pipeline runs in this process unless Beam's options say otherwise, and never on Beam's worker threads."""

import os

import apache_beam as beam
import pytest

from pipelines.engine import run_pipeline
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


def test_beams_worker_threads_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="multi_threading: not allowed"):
        processes(tmp_path, "--direct_running_mode=multi_threading", "--direct_num_workers=2")
    assert not list(tmp_path.iterdir())


def test_a_step_that_fails_fails_the_run():
    with pytest.raises(ValueError, match="no such thing"):
        run_pipeline(lambda pipeline: pipeline | beam.Create([1]) | beam.Map(fail))


def fail(element):
    raise ValueError("no such thing")
