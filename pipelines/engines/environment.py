"""The PROCESS environment: the worker program that Flink and Spark start, and what can be checked here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from pipelines.engines.config import EngineConfig
from pipelines.engines.worker import LOG_FOLDER_VARIABLE

WORKER_COMMAND = "cppmill-worker"


def process_environment(config: EngineConfig) -> list[str]:
    """Return the flags that make an engine start a program: `cppmill-worker` of this environment, or the user's.

    Nothing if the user chose another type of environment.
    """
    if config.gives("--environment_type"):
        return []
    if config.gives("--environment_config"):
        return ["--environment_type=PROCESS"]
    process = {"command": str(worker_command()), "env": {LOG_FOLDER_VARIABLE: str(config.log_folder)}}
    return ["--environment_type=PROCESS", f"--environment_config={json.dumps(process)}"]


def worker_command() -> Path:
    """Return the path of the worker program: beside the Python that runs this."""
    return Path(sys.executable).parent / WORKER_COMMAND


def missing_worker(options: PipelineOptions) -> Iterator[str]:
    """Yield what is wrong with the worker program, for an engine on this machine."""
    portable = options.view_as(PortableOptions)
    if portable.environment_type != "PROCESS":
        return
    try:
        command = str(json.loads(portable.environment_config or "{}")["command"])
    except (ValueError, KeyError, TypeError):
        yield f"--environment_config={portable.environment_config}: no JSON with a command; leave it out for our own"
        return
    if not os.access(command, os.X_OK) or Path(command).is_dir():
        yield (
            f"{command}: the worker program is not there or not executable; install cppmill in that environment, or "
            "leave out --environment_config for this one"
        )
