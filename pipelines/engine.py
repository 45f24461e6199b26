"""Running a pipeline on an engine.

The runner is always named: Beam's default local runner would download a binary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from schemas.coders import register_coders

Construct = Callable[[beam.Pipeline], object]


def run_pipeline(construct: Construct, *, threads: int, beam_options: Sequence[str] = ()) -> None:
    """Construct a pipeline, run it on this machine and wait for its end.

    Args:
        construct: Adds the steps to the pipeline.
        threads: Workers, as threads of this process, unless `beam_options` say otherwise.
        beam_options: Beam's own options, as on a command line; they win.

    Raises:
        RuntimeError: If a step failed; the cause is in its message.
    """
    register_coders()
    workers = [
        f"--direct_num_workers={threads}",
        f"--direct_running_mode={'multi_threading' if threads > 1 else 'in_memory'}",
    ]
    options = PipelineOptions([*workers, *beam_options])
    with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
        construct(pipeline)
