"""Running a pipeline on an engine.

The runner is always named: Beam's default local runner would download a binary.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser
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
        Exception: What a step raised; from another process a RuntimeError with its text.
    """
    register_coders()
    options = PipelineOptions([*_ONE_WORKER, *beam_options])
    with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
        construct(pipeline)


def check_beam_options(beam_options: Sequence[str]) -> None:
    """Check options for Beam before anything starts.

    Raises:
        ConfigError: For one that Beam does not know (with the nearest that it does), for a value that it cannot take,
            and for Beam's worker threads.
    """
    parser = _BeamArgumentParser(allow_abbrev=False, exit_on_error=False, add_help=False)
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    try:
        known, unknown = parser.parse_known_args(list(beam_options))
    except argparse.ArgumentError as error:
        raise ConfigError(f"-- {' '.join(beam_options)}: {error}") from error
    if unknown:
        names = [name for action in parser._actions for name in action.option_strings]
        nearest = difflib.get_close_matches(unknown[0].partition("=")[0], names, n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        raise ConfigError(f"-- {unknown[0]}: no option of Beam{hint}")
    if known.direct_running_mode == "multi_threading":
        raise ConfigError(
            "-- --direct_running_mode=multi_threading: not allowed, elements between its steps can arrive damaged; use "
            "--threads for threads, or multi_processing for processes"
        )
