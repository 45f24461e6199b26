"""The program of `cppmill lineage`: a run's receipt as OpenLineage events, for catalogues that collect them.

One event for the start of the run and one for its end, https://openlineage.io/spec, made of the types of OpenLineage's
own client. The id of the run follows from the receipt, so events that are sent again are the same run. Times come from
the event log in OUT, because a receipt has none.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.outputs import check_file, check_outside
from pipelines.console.events import DONE, log_names, read_events
from schemas.errors import ConfigError, StoreError
from schemas.files import write_file
from transforms.records.croissant import MEANINGS, table_schemas
from transforms.records.in_toto import is_built_in, products
from transforms.records.receipts import read_receipt
from transforms.storage.folder import OutputFolder

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

NAMESPACE = "cppmill"
PRODUCER = "urn:cppmill"


def write_events(run: str, file: Path, *, name: str, time: str | None) -> Iterator[str]:
    """Write the events of a run into a file, a JSON object per line, and yield lines about it.

    Args:
        run: The run's folder, or its URL.
        file: Where to write.
        name: What the dataset is called.
        time: When the run ended, if OUT has no event log.

    Raises:
        ConfigError: If the folder of the file does not exist, or is in the run.
    """
    check_outside(file, run, option="--out")
    check_file(file, option="--out")
    events = make_events(run, name=name, time=time)
    from openlineage.client.serde import Serde  # it is installed, as the events were made

    write_file(file, "".join(f"{Serde.to_json(event)}\n" for event in events).encode())
    yield f"{file}: {len(events)} OpenLineage events of run {events[0].run.runId}"


def send_events(run: str, url: str, *, name: str, time: str | None) -> Iterator[str]:
    """Send the events of a run to a server, and yield lines about it; arguments as of `write_events`.

    Raises:
        ConfigError: If it is no URL of a server.
        StoreError: If the server fails or refuses them.
    """
    events = make_events(run, name=name, time=time)
    from openlineage.client import OpenLineageClient  # it is installed, as the events were made
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    try:
        client = OpenLineageClient(transport=HttpTransport(HttpConfig.from_dict({"type": "http", "url": url})))
    except ValueError as error:
        raise ConfigError(f"--send {url}: no URL of a server; it takes one such as http://localhost:5000") from error
    try:
        for event in events:
            client.emit(event)
    except OSError as error:  # those of `requests` are
        raise StoreError(
            f"{url}: it did not take the events: {' '.join(str(error).split())}; send them again"
        ) from error
    yield f"{url}: {len(events)} OpenLineage events of run {events[0].run.runId}"


def check_client() -> None:
    """Check that OpenLineage's client is installed.

    Raises:
        ConfigError: Saying what to install.
    """
    try:
        import openlineage.client  # noqa: F401
    except ImportError as error:
        raise ConfigError("openlineage-python is not installed: pip install 'cppmill[lineage]'") from error


def make_events(run: str, *, name: str, time: str | None) -> list[RunEvent]:
    """Return the events of a run: its start and its end.

    Raises:
        ConfigError: If it is not known when that was, or the client is not installed.
    """
    check_client()
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import job_type_job, processing_engine_run

    out = OutputFolder(run)
    receipt = read_receipt(out)
    started, ended = _times(out, time)
    engine = processing_engine_run.ProcessingEngineRunFacet(
        version=receipt["code"]["cppmill"], name=NAMESPACE, producer=PRODUCER
    )
    kind = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="CPPMILL", jobType="RUN", producer=PRODUCER)
    described: dict[str, Any] = {
        "run": Run(runId=run_id(receipt), facets={"processing_engine": engine}),
        "job": Job(namespace=NAMESPACE, name=name, facets={"jobType": kind}),
        "inputs": _inputs(receipt, name),
        "producer": PRODUCER,
    }
    return [
        RunEvent(eventTime=started, eventType=RunState.START, **described),
        RunEvent(eventTime=ended, eventType=RunState.COMPLETE, outputs=_outputs(receipt, name), **described),
    ]


def run_id(receipt: dict[str, Any]) -> str:
    """Return the id of a run: a UUID made from the digest of its receipt."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{PRODUCER}:receipt:{receipt['digest']}"))


def _times(out: OutputFolder, time: str | None) -> tuple[str, str]:
    """Return when a run began and ended: what the newest finished log says, else the time that is given."""
    for log in reversed(log_names(out)):
        try:
            events = read_events(out, log)
        except FileNotFoundError:
            continue  # a run removed it meanwhile, as it keeps the newest alone
        if events and events[-1].get("outcome") == DONE:
            return events[0]["time"], events[-1]["time"]
    if time is None:
        raise ConfigError(f"{out.root}: no event log says when the run ended; give --time")
    return time, time


def _inputs(receipt: dict[str, Any], name: str) -> list[Any]:
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.facet_v2 import input_statistics_input_dataset as statistics

    corpus = receipt["corpus"]
    read = statistics.InputStatisticsInputDatasetFacet(
        rowCount=corpus["documents"], size=corpus["bytes"], producer=PRODUCER
    )
    found = [
        InputDataset(
            namespace=NAMESPACE,
            name=f"{name}/corpus",
            facets={"version": _version(corpus["digest"])},
            inputFacets={"inputStatistics": read},
        )
    ]
    if not is_built_in(receipt):
        found.append(InputDataset(namespace=NAMESPACE, name=f"{name}/tokenizer", facets=_tokenizer_facets(receipt)))
    return found


def _outputs(receipt: dict[str, Any], name: str) -> list[Any]:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics
    from openlineage.client.facet_v2 import schema_dataset

    found = []
    digests = {"documents": receipt["corpus"]["digest"], "tokens": receipt["dataset"]["digest"]}
    for table, columns in table_schemas(receipt).items():
        fields = [
            schema_dataset.SchemaDatasetFacetFields(
                name=field.name, type=str(field.type), description=MEANINGS[field.name]
            )
            for field in columns
        ]
        written = statistics.OutputStatisticsOutputDatasetFacet(
            rowCount=receipt["dataset"]["documents"], fileCount=len(products(receipt, table)), producer=PRODUCER
        )
        found.append(
            OutputDataset(
                namespace=NAMESPACE,
                name=f"{name}/{table}",
                facets={
                    "version": _version(digests[table]),
                    "schema": schema_dataset.SchemaDatasetFacet(fields=fields, producer=PRODUCER),
                },
                outputFacets={"outputStatistics": written},
            )
        )
    if is_built_in(receipt):
        found.append(OutputDataset(namespace=NAMESPACE, name=f"{name}/tokenizer", facets=_tokenizer_facets(receipt)))
    return found


def _tokenizer_facets(receipt: dict[str, Any]) -> dict[str, Any]:
    return {"version": _version(receipt["tokenizer"]["digest"])}


def _version(digest: str) -> Any:  # noqa: ANN401 - a type of an optional package
    from openlineage.client.facet_v2 import dataset_version_dataset

    return dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=digest, producer=PRODUCER)
