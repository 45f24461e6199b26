"""The program of the Dataflow template: one job with one step, which runs `cppmill run` on a worker of its own.

A flex template starts exactly one job: its launcher writes the job and ends. A run is several jobs, with planning and
the build between them. So the template's job is the launcher of these jobs: its one worker plans, builds and submits.
That worker's machine type decides how much memory there is for this. If the worker dies, the service runs the step
again, and finished units are reused.
"""

from __future__ import annotations

import argparse
import logging
import shlex
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import typer
from apache_beam.options.pipeline_options import PipelineOptions, WorkerOptions

from configs.tables import PEER_FLAGS
from pipelines.cli.app import app
from schemas.errors import CppmillError
from schemas.places import is_remote
from transforms.records.versions import follow_current
from transforms.storage.urls import open_url

logger = logging.getLogger(__name__)

SOURCES, BEAM_OPTIONS = "sources", "beam_options"
"""The parameters that are no options of the command line: SOURCE, separated by semicolons, and what follows `--`."""

_FETCHED = ("--config", "--tokenizer")
"""Options that take a file or folder of this machine; what a URL names is copied there."""

_HANDED_ON = (
    "project",
    "region",
    "temp_location",
    "staging_location",
    "service_account_email",
    "subnetwork",
    "sdk_container_image",
)
"""Options of the template's job that the jobs of the run inherit, unless they are given others."""

_REPORTED_LINES = 20


def run_options() -> dict[str, Any]:
    """Return the options of `cppmill run` by the name that a template's parameter has: `vocab_size`; none of peers."""
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]  # a group
    options = (parameter for parameter in command.params if parameter.param_type_name == "option")
    named = {option.opts[0]: option for option in options if option.opts[0] not in PEER_FLAGS}
    return {name.removeprefix("--").replace("-", "_"): option for name, option in named.items()}


def split_parameters(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of `cppmill run` and the options for Beam in what the template's launcher is started with.

    Args:
        arguments: `--NAME=VALUE` for each parameter that was given, among options for Beam.

    Example:
        >>> split_parameters(["--sources=gs://a;gs://b", "--out=gs://c", "--rehash=true", "--runner=DataflowRunner"])
        (['gs://a', 'gs://b', '--engine', 'dataflow', '--out', 'gs://c', '--rehash'], ['--runner=DataflowRunner'])
    """
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    options = run_options()
    for name in (SOURCES, BEAM_OPTIONS, *options):
        parser.add_argument(f"--{name}")
    given, rest = parser.parse_known_args(arguments)
    values = {"engine": "dataflow"} | {name: value for name, value in vars(given).items() if value}
    run = [source for source in values.pop(SOURCES, "").split(";") if source]
    following = shlex.split(values.pop(BEAM_OPTIONS, ""))
    for name, value in values.items():
        run += _arguments(options[name], value)
    return [*run, *(["--", *following] if following else [])], rest


def _arguments(option: Any, value: str) -> list[str]:  # noqa: ANN401 - typer's private class
    """Return the arguments that give an option its value; several values are separated by semicolons."""
    flag = option.opts[0]
    if option.is_flag:
        return [flag] if value == "true" else list(option.secondary_opts)
    values = value.split(";") if option.multiple else [value]
    return [argument for value in values for argument in (flag, value)]


def hand_on(run: Sequence[str], options: PipelineOptions) -> list[str]:
    """Return the arguments of a run with what its jobs need to know of the template's job, in front of its own."""
    known = options.get_all_options()
    handed = [f"--{name}={known[name]}" for name in _HANDED_ON if known.get(name)]
    split = run.index("--") if "--" in run else len(run)
    return [*run[:split], "--", *handed, *run[split + 1 :]]


def run_cppmill(run: list[str]) -> None:
    """Run `cppmill run` in a process of its own and log its output.

    Raises:
        CppmillError: If it fails, with the last lines of its output.
    """
    with tempfile.TemporaryDirectory(prefix="cppmill-") as folder:
        command = [sys.executable, "-m", "pipelines.cli", "run", *_fetch(run, Path(folder))]
        lines: deque[str] = deque(maxlen=_REPORTED_LINES)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                logger.info("%s", lines[-1])
        if process.returncode:
            raise CppmillError(f"cppmill run: exit code {process.returncode}\n" + "\n".join(lines))


def _fetch(run: Sequence[str], folder: Path) -> Iterator[str]:
    """Yield the arguments of a run, with copies in place of URLs where only a local path will do."""
    for option, value in zip(["", *run], run, strict=False):
        if option in _FETCHED and is_remote(value):
            source, name = follow_current(value.rstrip("/")), folder / option.removeprefix("--")
            system, path = open_url(source)
            system.get(path, str(name), recursive=system.isdir(path))
            yield str(name)
        else:
            yield value


def main(arguments: Sequence[str] | None = None) -> None:
    """Write down the template's job, or run it where the runner is one of this machine."""
    run, rest = split_parameters(sys.argv[1:] if arguments is None else arguments)
    options = PipelineOptions(rest)
    options.view_as(WorkerOptions).max_num_workers = 1
    pipeline = beam.Pipeline(options=options)
    _ = (
        pipeline
        | "Run" >> beam.Create([hand_on(run, options)], reshuffle=False)
        | "Cppmill" >> beam.Map(run_cppmill).with_output_types(None)
    )
    pipeline.run()


if __name__ == "__main__":
    main()
