"""Dataflow: Google's service. What its workers need is in a container image (`deploy/dataflow/`).

This module has only the options and the checks before submission. Submitting needs Google's packages.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, WorkerOptions
from apache_beam.runners.runner import PipelineRunner, create_runner

from pipelines.engines.config import EngineConfig
from pipelines.engines.engine import Engine, make_options
from schemas.errors import EngineError, StoreError
from schemas.places import is_remote, missing_package
from transforms.storage.aws_keys import SECRET_OPTION, secret_name
from transforms.storage.objects import ObjectStore

_NEEDED = ("project", "region", "temp_location")
_WRITTEN = ("temp_location", "staging_location")
"""Where Beam's client writes; of a bucket that it cannot write, it says so only after minutes of attempts."""

_AGAIN = "finished units are kept, so start the same command again"


class SecretOptions(PipelineOptions):
    """What a job tells its workers, which have no environment of one's own: where the credentials of S3 are."""

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            f"--{SECRET_OPTION}", help="Secret of Secret Manager that each worker takes the variables of AWS from."
        )


class Dataflow(Engine):
    """The service."""

    def __init__(self, config: EngineConfig) -> None:
        """Take our container, with one unit at a time in each of its processes: the native core has the threads."""
        self.flags = [
            "--sdk_location=container",
            "--experiments=use_runner_v2",
            "--number_of_worker_harness_threads=1",
        ]
        secret = secret_name()
        if secret:
            self.flags.append(f"--{SECRET_OPTION}={secret}")
        self._config = config
        self._options = make_options(config, self.flags)

    def missing(self) -> Iterator[str]:
        """Yield what keeps a pipeline from being submitted."""
        if importlib.util.find_spec("apitools") is None:
            yield "Google's packages are not installed; install cppmill with the extra dataflow"
        given: dict[str, Any] = self._options.view_as(GoogleCloudOptions).get_all_options()
        for name in _NEEDED:
            if not given.get(name):
                yield f"no --{name}: give it after --"
        if not self._options.view_as(WorkerOptions).sdk_container_image:
            yield "no --sdk_container_image: build the image of deploy/dataflow and give its name behind --"
        if not is_remote(self._config.out):
            yield f"--out {self._config.out}: workers of the service do not see it; it takes gs:// or s3://BUCKET/PREFIX"
        for name in _WRITTEN:
            if given.get(name):
                yield from _unwritable(name, given[name])

    def runner(self) -> PipelineRunner:
        """Return the runner that submits."""
        return create_runner("DataflowRunner")

    def explain(self, error: Exception) -> EngineError | None:
        """Return the service's reason, in one line, for refusing a job (a quota) or for ending it."""
        said = " ".join(str(error).split())
        if "Traceback" in said:
            return None  # a step raised it
        if _is_one(error, "google.api_core.exceptions", "GoogleAPICallError"):
            return EngineError(f"Dataflow did not take a job: {said}; {_AGAIN}")
        if _is_one(error, "apache_beam.runners.dataflow.dataflow_runner", "DataflowRuntimeException"):
            return EngineError(f"{said}; {_AGAIN}")
        return None


def _unwritable(option: str, url: str) -> Iterator[str]:
    """Yield why nothing can be written to the place that an option names."""
    bucket, slash, _ = url.removeprefix("gs://").partition("/")
    if not (url.startswith("gs://") and bucket and slash):
        yield f"--{option} {url}: it takes gs://BUCKET/PREFIX"
        return
    missing = missing_package(url)
    if missing:
        yield f"--{option} {url}: {missing}"
        return
    try:
        ObjectStore(url.rstrip("/")).check_writable()
    except StoreError as error:
        yield f"--{option} {error}"


def _is_one(error: Exception, module: str, name: str) -> bool:
    """Tell whether an error is one of a class of Google's packages, which may not be installed."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(error, kind)
