"""Running a pipeline on an engine.

The runner is always named: Beam's default local runner would download a binary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from schemas.coders import register_coders
from schemas.errors import ConfigError

_ONE_WORKER = ("--direct_num_workers=1", "--direct_running_mode=in_memory")

Construct = Callable[[beam.Pipeline], object]


def run_pipeline(construct: Construct, *, beam_options: Sequence[str] = ()) -> None:
    """Construct a pipeline, run it on this machine and wait for its end.

    One worker in this process, whose units use the threads of the native core. Beam's own worker threads are not used:
    with two of them and batches above some size, elements of a GroupByKey arrive cut in two.

    Args:
        construct: Adds the steps to the pipeline.
        beam_options: Beam's own options, as on a command line; they win.

    Raises:
        ConfigError: For Beam's worker threads.
        Exception: What a step raised; from another process a RuntimeError with its text.
    """
    register_coders()
    options = PipelineOptions([*_ONE_WORKER, *beam_options])
    if options.view_as(DirectOptions).direct_running_mode == "multi_threading":
        raise ConfigError(
            "-- --direct_running_mode=multi_threading: not allowed, elements between its steps can arrive damaged; use "
            "--threads for threads, or multi_processing for processes"
        )
    with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
        construct(pipeline)
