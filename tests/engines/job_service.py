"""A stand-in for the job API of Google's Dataflow, which carries out what Beam's own client submits.

A submitted job names the object to which the client staged its pipeline. That pipeline is read from there and given to
Prism, with the workers of a pool in place of the container that it names. Beam's client speaks plain REST to an
endpoint whose name contains `localhost`. Of the API there is what this client uses for one batch job; a job is created,
asked for, and cancelled.
"""

from __future__ import annotations

import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2, endpoints_pb2
from apache_beam.runners.portability.prism_runner import PrismRunner

from deploy.local.processes import Processes, answers, free_ports
from pipelines.engines.cache import engine_path
from tests.json_server import JsonServer
from transforms.storage.aws_keys import SECRET_OPTION

RUNNING, DONE, FAILED, CANCELLED = (f"JOB_STATE_{name}" for name in ("RUNNING", "DONE", "FAILED", "CANCELLED"))
_CANCELLED_NUMBER = 5
"""What Beam's client writes for the name."""
QUOTA = "Project has insufficient quota(s): CPUS"


@dataclass
class Job:
    """A job that was submitted.

    Attributes:
        request: What the client sent.
        id: Its id.
        state: The state that is answered.
        messages: What is said about it, errors all.
        result: The job on Prism, while there is one.
    """

    request: dict[str, Any]
    id: str = field(default_factory=lambda: f"2026-{uuid.uuid4()}")
    state: str = RUNNING
    messages: list[str] = field(default_factory=list)
    result: Any = None

    @property
    def name(self) -> str:
        """The name that the client gave."""
        return str(self.request["name"])

    @property
    def options(self) -> dict[str, Any]:
        """Beam's options of the job."""
        options: dict[str, Any] = self.request["environment"]["sdkPipelineOptions"]["options"]
        return options

    @property
    def images(self) -> set[str]:
        """The container images that the client asked workers of."""
        pools = self.request["environment"]["workerPools"]
        return {image["containerImage"] for pool in pools for image in pool["sdkHarnessContainerImages"]}


class JobService:
    """The service; a context manager that stops it.

    Attributes:
        jobs: What was submitted, in order.
        endpoint: What `--dataflow_endpoint` takes.
        asked: Whether a client has asked for a job.
        refuse: While it is not None: the status and the message with which submissions are answered.
        before: Called with each job before it is carried out; what it raises fails the job.
    """

    def __init__(self, folder: Path, *, storage: str, pool: str) -> None:
        """Start it, and Prism.

        Args:
            folder: Gets what clients staged, and Prism's log.
            storage: The endpoint of the object store.
            pool: Where the pool of workers listens.
        """
        self.jobs: list[Job] = []
        self.asked = False
        self.refuse: tuple[int, str] | None = None
        self.before: Callable[[Job], None] = lambda job: None
        self._folder, self._storage, self._pool = folder, storage, pool
        self._processes = Processes(folder)
        [self._prism] = free_ports(1)
        command = [engine_path("prism"), "--job_port", str(self._prism), "--serve_http=false"]
        self._processes.start("prism", command)
        self._processes.wait_ready(lambda: answers(self._prism), "Prism")
        self._server = JsonServer(self._answer)
        self.endpoint = f"http://localhost:{self._server.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()
        self._processes.stop()

    def _answer(self, method: str, path: str, sent: Any) -> tuple[int, dict[str, Any]]:
        if method == "POST":
            if self.refuse:
                status, message = self.refuse
                return status, {"error": {"code": status, "message": message, "status": "RESOURCE_EXHAUSTED"}}
            return 200, _description(self._create(sent))
        job = next(job for job in self.jobs if f"/jobs/{job.id}" in path)
        if method == "PUT":
            if sent.get("requestedState") in (CANCELLED, _CANCELLED_NUMBER):
                self._cancel(job)
            return 200, _description(job)
        self.asked = True
        answers = {"messages": {"jobMessages": _messages(job)}, "metrics": {"metricTime": _now(), "metrics": []}}
        return 200, answers.get(urllib.parse.urlsplit(path).path.rpartition("/")[2]) or _description(job)

    def _create(self, request: dict[str, Any]) -> Job:
        """Take a job and begin it."""
        job = Job(request)
        self.jobs.append(job)
        threading.Thread(target=self._carry_out, args=(job,), daemon=True).start()
        return job

    def _cancel(self, job: Job) -> None:
        """End a job."""
        if job.state == RUNNING:
            job.state = CANCELLED
            if job.result is not None:
                job.result.cancel()

    def _carry_out(self, job: Job) -> None:
        try:
            self.before(job)
            if job.state != RUNNING:
                return
            proto = beam_runner_api_pb2.Pipeline.FromString(self._read(job.options["pipelineUrl"]))
            for number, environment in enumerate(proto.components.environments.values()):
                self._replace(environment, self._folder / job.id / str(number))
            words = [f"--job_endpoint=localhost:{self._prism}", f"--job_name={job.name}"]
            secret = job.options.get(SECRET_OPTION)  # what workers get with their job, here as on the service
            options = PipelineOptions([*words, *([f"--{SECRET_OPTION}={secret}"] if secret else [])])
            job.result = PrismRunner().run_portable_pipeline(proto, options)
            job.result.wait_until_finish()
        except Exception as error:  # whatever it is, the client is told
            job.messages.append(str(error))
            job.state = FAILED if job.state == RUNNING else job.state
        else:
            job.state = DONE if job.state == RUNNING else job.state

    def _replace(self, environment: beam_runner_api_pb2.Environment, folder: Path) -> None:
        """Put the pool in the place of the container, and files in the place of staged objects."""
        environment.urn = common_urns.environments.EXTERNAL.urn
        payload = beam_runner_api_pb2.ExternalPayload(endpoint=endpoints_pb2.ApiServiceDescriptor(url=self._pool))
        environment.payload = payload.SerializeToString()
        folder.mkdir(parents=True)
        for number, dependency in enumerate(environment.dependencies):
            url = beam_runner_api_pb2.ArtifactUrlPayload.FromString(dependency.type_payload).url
            file = folder / str(number)
            file.write_bytes(self._read(url))
            dependency.type_urn = common_urns.artifact_types.FILE.urn
            dependency.type_payload = beam_runner_api_pb2.ArtifactFilePayload(path=str(file)).SerializeToString()

    def _read(self, url: str) -> bytes:
        bucket, _, name = url.removeprefix("gs://").partition("/")
        place = f"{self._storage}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}?alt=media"
        with urllib.request.urlopen(place) as answer:
            content: bytes = answer.read()
        return content


def _description(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "clientRequestId": job.request["clientRequestId"],
        "currentState": job.state,
        "currentStateTime": _now(),
    }


def _messages(job: Job) -> list[dict[str, str]]:
    importance = "JOB_MESSAGE_ERROR"
    return [
        {"id": str(number), "time": _now(), "messageText": text, "messageImportance": importance}
        for number, text in enumerate(job.messages)
    ]


def _now() -> str:
    return datetime.fromtimestamp(time.time(), UTC).isoformat().replace("+00:00", "Z")
