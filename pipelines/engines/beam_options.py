"""Beam's own options: what follows `--`, checked before anything starts."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence

from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

from schemas.errors import ConfigError

_FLAGS: dict[str, tuple[str, ...]] = {
    "flink": (
        *("allow_non_restored_state", "disable_metrics", "faster_copy", "load_balance_bundles", "object_reuse"),
        *("operator_chaining", "re_iterable_group_by_key_result", "use_data_stream_for_batch"),
    ),
    "spark": ("cache_disabled", "enable_spark_metric_sinks", "load_balance_bundles"),
}
"""Options without a value that an engine's own runner has besides Beam's; Beam learns them from the job server."""

_VALUES: dict[str, tuple[str, ...]] = {
    "flink": (
        *("environment_expiration_millis", "execution_mode_for_batch", "execution_retry_delay", "flink_conf_dir"),
        *("job_check_interval_in_secs", "max_bundle_size", "max_bundle_time_mills", "number_of_execution_retries"),
        *("semi_persist_dir", "state_backend", "state_backend_storage_path"),
    ),
    "spark": ("bundle_size", "checkpoint_dir", "environment_expiration_millis", "semi_persist_dir", "storage_level"),
}
"""The same, with a value. Taken from what the job servers of `make engines` describe, without those for streams."""


def check_beam_options(beam_options: Sequence[str], *, engine: str = "local") -> None:
    """Check options for Beam before anything starts.

    Args:
        beam_options: As on a command line.
        engine: The engine; those with a job server have options of their own.

    Raises:
        ConfigError: For one that Beam does not know (with the nearest that it does), for a value that it cannot take,
            and for Beam's worker threads.
    """
    parser = _BeamArgumentParser(allow_abbrev=False, exit_on_error=False, add_help=False)
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    for name in _FLAGS.get(engine, ()):
        parser.add_argument(f"--{name}", action="store_true")
    for name in _VALUES.get(engine, ()):
        parser.add_argument(f"--{name}")
    try:
        known, unknown = parser.parse_known_args(list(beam_options))
    except argparse.ArgumentError as error:
        raise ConfigError(f"-- {' '.join(beam_options)}: {error}") from error
    if unknown:
        names = [name for action in parser._actions for name in action.option_strings]
        name = unknown[0].partition("=")[0]  # the value may be a secret
        nearest = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        raise ConfigError(f"-- {name}: no option of Beam{hint}")
    if known.direct_running_mode == "multi_threading":
        raise ConfigError(
            "-- --direct_running_mode=multi_threading: not allowed, elements between its steps can arrive damaged; use "
            "--threads for threads, or multi_processing for processes"
        )
