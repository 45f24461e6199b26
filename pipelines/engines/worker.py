"""The program of a worker process, `cppmill-worker`: what a PROCESS environment of Flink or Spark starts.

It gets what Beam gives to the first program of a container, and continues as that one does: it asks the engine for
the endpoints and the options of the job, and becomes a harness of the Python SDK in this very environment. What it
writes goes to a file of its own; nothing goes to the standard output, which no engine reads. It ends with the
connection to the engine, so none is left when an engine dies.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from apache_beam.portability.api.org.apache.beam.model.fn_execution.v1.beam_provision_api_pb2 import ProvisionInfo

LOG_FOLDER_VARIABLE = "CPPMILL_WORKER_LOGS"

_ENDPOINTS = ("control_endpoint", "logging_endpoint")
_ANSWER_SECONDS = 60.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the worker until the engine ends it.

    Args:
        arguments: `--id`, `--provision_endpoint`, and the endpoints where the engine does not provision them.
    """
    parser = argparse.ArgumentParser(prog="cppmill-worker", description=__doc__)
    parser.add_argument("--id", required=True)
    for name in ("provision_endpoint", *_ENDPOINTS):
        parser.add_argument(f"--{name}", default="")
    given, _ = parser.parse_known_args(arguments)
    write_output_to(log_file(given.id))
    os.environ.update(container_environment(given))
    os.environ.pop("PIPELINE_OPTIONS_FILE", None)  # of the launcher's own workers; these have the job's options

    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main([])


def log_file(worker_id: str) -> Path:
    """Return a worker's log file, in the folder that the launcher named or else in the one for temporary files."""
    folder = Path(os.environ.get(LOG_FOLDER_VARIABLE) or tempfile.gettempdir())
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"worker-{worker_id.replace('/', '-')}-{os.getpid()}.log"


def write_output_to(path: Path) -> None:
    """Send the standard output and the error stream of this process to a file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)


def container_environment(given: argparse.Namespace) -> dict[str, str]:
    """Return the environment variables that describe the job to the SDK's harness, as in a container.

    Args:
        given: The arguments; endpoints that are not among them are provisioned.
    """
    from apache_beam.portability.api import endpoints_pb2
    from google.protobuf import json_format, text_format

    info = provision(given.provision_endpoint, given.id)
    endpoints = {
        name: endpoints_pb2.ApiServiceDescriptor(url=getattr(given, name) or getattr(info, name).url)
        for name in _ENDPOINTS
    }
    return {
        "WORKER_ID": given.id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
        **{
            f"{name.removesuffix('_endpoint').upper()}_API_SERVICE_DESCRIPTOR": text_format.MessageToString(endpoint)
            for name, endpoint in endpoints.items()
        },
    }


def provision(endpoint: str, worker_id: str) -> ProvisionInfo:
    """Ask the engine what it knows of the job."""
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc

    with grpc.insecure_channel(endpoint) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        response = stub.GetProvisionInfo(
            request, metadata=[("worker_id", worker_id)], wait_for_ready=True, timeout=_ANSWER_SECONDS
        )
    return cast("ProvisionInfo", response.info)


if __name__ == "__main__":
    main()
