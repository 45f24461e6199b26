"""The program of the Dataflow template: one job with one step, which runs a command of cppmill on a worker of its own.

The command is `cppmill run` or `cppmill retokenize`. A flex template starts exactly one job: its launcher writes the
job and ends. A run is several jobs, with planning and the build between them. So the template's job is the launcher of
these jobs: its one worker plans, builds and submits. That worker's machine type decides how much memory there is for
this. If the worker dies, the service runs the step again, and finished units are reused.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import apache_beam as beam
import typer
from apache_beam.options.pipeline_options import PipelineOptions, WorkerOptions

from configs.tables import PEER_FLAGS
from pipelines.cli.app import app
from pipelines.console.console import exit_on_error
from pipelines.engines.dataflow import SecretOptions
from schemas.errors import ConfigError, CppmillError, ExitCode
from schemas.logs import module_logger
from schemas.places import is_remote
from transforms.records.versions import follow_current
from transforms.storage.aws_keys import SECRET_VARIABLE
from transforms.storage.scratch import temporary_folder
from transforms.storage.urls import open_url

logger = module_logger(__name__)

COMMANDS = {"run": "out", "retokenize": "store"}
"""What the template can do, each with the parameter that it needs."""

DEFAULT_COMMAND = "run"

COMMAND, SOURCES, BEAM_OPTIONS = "command", "sources", "beam_options"
"""The parameters that are no options of the command line: one of `COMMANDS`, SOURCE, separated by semicolons, and what
follows `--`. A fourth, the name of a secret, is an option of Beam's (`SecretOptions`).
"""

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
_WELL: dict[object, str] = {
    ExitCode.NOTHING_TO_DO: "cppmill {}: nothing new, so no version was made",
    ExitCode.DRIFTED: "cppmill {}: there is a new version, and its drift exceeds a threshold",
}
"""What to say of the exit codes that are no failure: a job that failed would be run again."""


@cache
def command_options(command: str) -> Mapping[str, Any]:
    """Return the options of a command by the name that a template's parameter has: `vocab_size`; none of peers.

    Raises:
        ConfigError: If the template has no such command.
    """
    if command not in COMMANDS:
        raise ConfigError(f"command={command}: not allowed; it takes {' or '.join(COMMANDS)}")
    parameters = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]  # a group
    options = (parameter for parameter in parameters if parameter.param_type_name == "option")
    named = {option.opts[0]: option for option in options if option.opts[0] not in PEER_FLAGS}
    return {name.removeprefix("--").replace("-", "_"): option for name, option in named.items()}


def all_options() -> Mapping[str, Any]:
    """Return the options of all commands by the name of their parameter."""
    return {name: option for command in COMMANDS for name, option in command_options(command).items()}


def split_parameters(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of cppmill and the options for Beam in what the template's launcher is started with.

    Args:
        arguments: `--NAME=VALUE` for each parameter that was given, among options for Beam.

    Raises:
        ConfigError: For a command that there is not, for parameters of the other command, and without the needed one.

    Example:
        >>> split_parameters(["--sources=gs://a;gs://b", "--out=gs://c", "--rehash=true", "--region=europe-west3"])
        (['run', 'gs://a', 'gs://b', '--engine', 'dataflow', '--out', 'gs://c', '--rehash'], ['--region=europe-west3'])
    """
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    for name in (COMMAND, SOURCES, BEAM_OPTIONS, *all_options()):
        parser.add_argument(f"--{name}")
    given, rest = parser.parse_known_args(arguments)
    values = {"engine": "dataflow"} | {name: value for name, value in vars(given).items() if value}
    command = values.pop(COMMAND, DEFAULT_COMMAND)
    words = [command, *(source for source in values.pop(SOURCES, "").split(";") if source)]
    following = shlex.split(values.pop(BEAM_OPTIONS, ""))
    options = command_options(command)
    _check_names(command, values, options)
    for name, value in values.items():
        words += _arguments(options[name], value)
    return [*words, *(["--", *following] if following else [])], rest


def _check_names(command: str, values: Mapping[str, str], options: Mapping[str, Any]) -> None:
    """Refuse parameters that a command does not have, or the lack of the one that it needs."""
    foreign = [name for name in values if name not in options]
    if foreign:
        raise ConfigError(f"{', '.join(foreign)}: not allowed with command={command}; leave it out, or change command")
    if COMMANDS[command] not in values:
        raise ConfigError(f"{COMMANDS[command]}: missing; command={command} needs it")


def _arguments(option: Any, value: str) -> list[str]:  # noqa: ANN401 - typer's private class
    """Return the arguments that give an option its value; several values are separated by semicolons."""
    flag = option.opts[0]
    if option.is_flag:
        return [flag] if value == "true" else list(option.secondary_opts)
    values = value.split(";") if option.multiple else [value]
    return [argument for value in values for argument in (flag, value)]


def hand_on(words: Sequence[str], options: PipelineOptions) -> list[str]:
    """Return the arguments of cppmill with what its jobs need to know of the template's job, in front of its own."""
    known = options.get_all_options()
    handed = [f"--{name}={known[name]}" for name in _HANDED_ON if known.get(name)]
    split = words.index("--") if "--" in words else len(words)
    return [*words[:split], "--", *handed, *words[split + 1 :]]


def run_cppmill(words: list[str], *, secret: str | None = None) -> None:
    """Run a command of cppmill in a process of its own and log its output; "nothing to do" and drift are no failures.

    Args:
        words: The command and its arguments.
        secret: The secret with the credentials of S3, if there is one.

    Raises:
        CppmillError: If it fails, with the last lines of its output.
    """
    environment = os.environ | ({SECRET_VARIABLE: secret} if secret else {})
    lines: deque[str] = deque(maxlen=_REPORTED_LINES)
    with temporary_folder() as folder:
        command = [sys.executable, "-m", "pipelines.cli", *_fetch(words, Path(folder))]
        pipe, together = subprocess.PIPE, subprocess.STDOUT
        with subprocess.Popen(command, env=environment, stdout=pipe, stderr=together, text=True) as process:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                logger.info("%s", lines[-1])
    if process.returncode in _WELL:
        logger.info("%s", _WELL[process.returncode].format(words[0]))
    elif process.returncode:
        raise CppmillError(f"cppmill {words[0]}: exit code {process.returncode}\n" + "\n".join(lines))


def _fetch(words: Sequence[str], folder: Path) -> Iterator[str]:
    """Yield the arguments of cppmill, with copies in place of URLs where only a local path will do."""
    for option, value in zip(["", *words], words, strict=False):
        if option in _FETCHED and is_remote(value):
            source, name = follow_current(value.rstrip("/")), folder / option.removeprefix("--")
            system, path = open_url(source)
            system.get(path, str(name), recursive=system.isdir(path))
            yield str(name)
        else:
            yield value


def main(arguments: Sequence[str] | None = None) -> None:
    """Write down the template's job, or run it where the runner is one of this machine."""
    words, options, secret = _parse(arguments)
    options.view_as(WorkerOptions).max_num_workers = 1
    pipeline = beam.Pipeline(options=options)
    _ = (
        pipeline
        | "Run" >> beam.Create([words], reshuffle=False)
        | "Cppmill" >> beam.Map(run_cppmill, secret=secret).with_output_types(None)
    )
    pipeline.run()


def run_here(arguments: Sequence[str] | None = None) -> None:
    """Run the command in this process, with the same parameters; "nothing to do" and drift are no failures.

    Raises:
        SystemExit: With the exit code of the command, if it fails.
    """
    words, _, secret = _parse(arguments)
    if secret:
        os.environ[SECRET_VARIABLE] = secret
    with temporary_folder() as folder:
        try:
            app(list(_fetch(words, Path(folder))), prog_name="cppmill")
        except SystemExit as ended:
            if ended.code not in _WELL:
                raise
            typer.echo(_WELL[ended.code].format(words[0]))


def _parse(arguments: Sequence[str] | None) -> tuple[list[str], PipelineOptions, str | None]:
    """Return cppmill's arguments, Beam's options and the name of the secret in what the launcher was started with.

    Raises:
        SystemExit: If the parameters are wrong, after a message.
    """
    with exit_on_error():
        words, rest = split_parameters(sys.argv[1:] if arguments is None else arguments)
    options = PipelineOptions(rest)
    return hand_on(words, options), options, options.view_as(SecretOptions).s3_secret


if __name__ == "__main__":
    main()
