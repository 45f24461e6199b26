"""No graph grows with the corpus, and what is shuffled stays small, with a million units too."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam import coders
from apache_beam.internal.cloudpickle import cloudpickle
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.pipeline_context import PipelineContext

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.engines.cache import engine_path
from pipelines.engines.graph import ReadUnits, RunFlow
from pipelines.stages import scan as scan_program
from schemas.coders import register_coders
from schemas.options import IngestOptions
from schemas.reasons import Column
from schemas.tables import FINGERPRINTS
from schemas.units import Stage, Unit
from transforms.ingest.dedup.candidates import duplicate_candidates, duplicate_partitions
from transforms.ingest.dedup.lsh import candidate_type, choose_bands, near_candidates, near_partitions
from transforms.ingest.fingerprints import write_fingerprints
from transforms.ingest.minhash import BATCH_ROWS
from transforms.scan import merge
from transforms.scan.merge import count_groups, key_part
from transforms.storage.folder import OutputFolder
from transforms.units.chunking import MAX_FILES
from transforms.units.plan import MAX_RANGES, write_plan

MILLION = 1_000_000
PLANNED = 100_000
VOCAB_SIZE = "12288"
UNIT_BYTES = 64 << 20
MAX_ELEMENT_BYTES = 16 << 20
"""What every engine shuffles with its default memory."""
MAX_GRAPH_BYTES = 1 << 20
"""A tenth of what Dataflow takes of a request."""
ROOT = str(Path(__file__).parents[3])
DATAFLOW_OPTIONS = [
    "--runner=DataflowRunner",
    "--dataflow_endpoint=http://localhost:9",
    "--no_auth",
    "--project=project",
    "--region=us-central1",
    "--sdk_location=container",
    "--sdk_container_image=image-of-workers",
    "--experiments=use_runner_v2",
]
STAGES = ["read", "compare", "choose", "ingest", "scan", "tokenize", "validate", "drift"]


@dataclass(frozen=True)
class Units(Sequence):
    """So many units of scan, made as they are asked for."""

    number: int

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        if index >= self.number:
            raise IndexError(index)
        key = f"{index:064x}"
        shard = f"documents/part-{key}-00000.parquet"
        payload = {"kind": "file", "shard": shard, "inputs": {shard: key}}
        return Unit(stage=Stage.SCAN, key=key, num_bytes=UNIT_BYTES, label=shard, payload=payload)


@pytest.fixture(scope="module")
def ranges(tmp_path_factory):
    return write_plan(OutputFolder(tmp_path_factory.mktemp("plan")), "scan", Units(PLANNED))


@pytest.fixture(scope="module")
def dataflow_jobs(stages, ranges, tmp_path_factory):
    """The folder of the jobs that Dataflow would get, and the environment that has Google's packages."""
    folder = tmp_path_factory.mktemp("jobs")
    environment = os.environ | {
        "NO_GCE_CHECK": "true",
        "PYTHONPATH": os.pathsep.join([str(engine_path("dataflow")), ROOT]),
    }
    command = [sys.executable, f"{ROOT}/tests/commands/stages/write_dataflow_jobs.py", str(folder), *DATAFLOW_OPTIONS]
    given = cloudpickle.dumps((stages, ranges))
    done = subprocess.run(command, input=given, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return folder


@pytest.fixture(
    scope="module", params=[*STAGES, *(pytest.param(f"dataflow-{name}", marks=pytest.mark.engines) for name in STAGES)]
)
def graph(request, stages, ranges):
    """The pipeline of a stage for many units, as it is sent to an engine, and its coders by id."""
    engine, _, stage = request.param.rpartition("-")
    if engine:
        proto = beam_runner_api_pb2.Pipeline()
        proto.ParseFromString((request.getfixturevalue("dataflow_jobs") / stage / "pipeline.pb").read_bytes())
        return proto, PipelineContext(proto.components)
    register_coders()
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    _ = pipeline | "Units" >> ReadUnits(ranges=ranges) | "Flow" >> RunFlow(stages[stage])
    return pipeline.to_runner_api(return_context=True)


def grouped_coders(graph):
    """The coders of what goes into each GroupByKey, by its label."""
    proto, context = graph
    collections = proto.components.pcollections
    return {
        transform.unique_name: context.coders.get_by_id(collections[name].coder_id)
        for transform in proto.components.transforms.values()
        if transform.spec.urn == common_urns.primitives.GROUP_BY_KEY.urn
        for name in transform.inputs.values()
    }


def parts_of(coder):
    """A coder and all that it is made of."""
    yield coder
    for part in coder._get_component_coders() or ():
        yield from parts_of(part)


def test_any_number_of_units_starts_from_a_thousand_elements(ranges):
    assert len(ranges) == MAX_RANGES


def test_a_graph_is_small(graph):
    assert graph[0].ByteSize() < MAX_GRAPH_BYTES


@pytest.mark.engines
@pytest.mark.parametrize("stage", STAGES)
def test_a_job_for_dataflow_names_our_image_and_little_else(dataflow_jobs, stage):
    job = (dataflow_jobs / stage / "job.json").read_bytes()
    assert len(job) < MAX_GRAPH_BYTES
    pools = json.loads(job)["environment"]["workerPools"]
    images = {image["containerImage"] for pool in pools for image in pool["sdkHarnessContainerImages"]}
    assert images == {"image-of-workers"}


def test_there_are_no_side_inputs(graph):
    pardo = common_urns.primitives.PAR_DO.urn
    steps = [step for step in graph[0].components.transforms.values() if step.spec.urn == pardo]
    assert steps
    assert [step.unique_name for step in steps if len(step.inputs) != 1] == []


def test_nothing_is_pickled_between_workers(graph):
    found = grouped_coders(graph)
    assert found
    for label, coder in found.items():
        names = Counter(type(part).__name__ for part in parts_of(coder))
        if label.endswith("Spread/ReshufflePerKey/GroupByKey"):
            names["FastPrimitivesCoder"] -= 1  # the time of the element, which Beam's reshuffle adds
        assert not any(names[name] for name in ("FastPrimitivesCoder", "PickleCoder", "DillCoder")), (label, names)


def test_units_receipts_and_batches_have_coders_of_their_own(graph):
    proto, context = graph
    pickling = []
    for collection in proto.components.pcollections.values():
        coder = context.coders.get_by_id(collection.coder_id)
        if isinstance(coder, coders.FastPrimitivesCoder):
            pickling.append(collection.unique_name)
    assert [name for name in pickling if "Units/Ranges/" not in name] == []


def test_what_is_grouped_of_the_counts_of_a_million_shards_is_small():
    register_coders()
    groups = count_groups(MILLION)
    part = coders.registry.get_coder(merge.PartRows)
    of_shard = (f"counts/parts/words-{'0' * 64}.parquet", list(range(20)))
    parts = Counter(
        key
        for n in range(MILLION)
        for key, _ in key_part(("words-000", (f"counts/parts/words-{n:064x}.parquet", [])), groups)
    )
    assert max(parts.values()) * len(part.encode(of_shard)) < MAX_ELEMENT_BYTES // 16
    of_group = (f"{merge.GROUPS}/words-000-{'0' * 64}.parquet", list(range(1000)))
    assert groups * len(part.encode(of_group)) < MAX_ELEMENT_BYTES


def test_what_is_grouped_of_the_documents_of_a_million_units_is_small(tmp_path):
    documents = UNIT_BYTES // 5_000
    columns = {
        "project": ["some-project"] * documents,
        "path": [f"include/some/folders/of/a/project/header_{number:06}.hpp" for number in range(documents)],
        "doc_id": [sha256(b"%d" % number).hexdigest() for number in range(documents)],
        "num_bytes": [5_000] * documents,
        **dict.fromkeys(("reason", "detail"), [""] * documents),
        "column": [str(Column.KEPT)] * documents,
    }
    table = pa.table({"license": pa.nulls(documents, pa.string()), **columns}).select(FINGERPRINTS.names)
    batches = iter(table.cast(FINGERPRINTS).to_batches())
    write_fingerprints(tmp_path / "unit", "unit", batches, IngestOptions(), lambda: 0)
    partitions = duplicate_partitions([replace(Units(1)[0], num_bytes=MILLION * UNIT_BYTES)])
    sizes = [len(packed) for _, packed in duplicate_candidates(tmp_path / "unit", MILLION, partitions)]
    assert sum(sizes) * MILLION / partitions < MAX_ELEMENT_BYTES


def test_what_is_grouped_of_near_duplicates_of_a_million_units_is_small():
    documents = UNIT_BYTES // 5_000
    options = IngestOptions(near_duplicate_similarity=0.8)
    partitions = near_partitions([replace(Units(1)[0], num_bytes=MILLION * UNIT_BYTES)], options)
    signatures = np.random.default_rng(1).integers(0, 256, (documents, 256), dtype=np.uint8)
    candidates = near_candidates(MILLION, np.arange(documents, dtype=np.uint32), signatures, choose_bands(0.8, 256))
    assert candidates.nbytes * MILLION / partitions < MAX_ELEMENT_BYTES
    largest = IngestOptions(near_duplicate_similarity=0.8, near_duplicate_permutations=1024)
    assert 16 * candidate_type(largest.near_duplicate_permutations).itemsize * BATCH_ROWS < MAX_ELEMENT_BYTES


@pytest.mark.parametrize("letter", ["p", "\u8def", "\udc80"])
def test_a_unit_of_the_most_files_is_small(letter):
    register_coders()
    inputs = [[f"{number:0199}".replace("0", letter), 1000, "1" * 19, ""] for number in range(MAX_FILES)]
    unit = Unit(stage=Stage.INGEST, key="0" * 64, num_bytes=UNIT_BYTES, label="", payload={"inputs": inputs})
    assert len(coders.registry.get_coder(Unit).encode(unit)) < MAX_ELEMENT_BYTES


def test_counts_merged_in_groups_are_the_same(run, tmp_path, monkeypatch):
    monkeypatch.setattr(merge, "MAX_PARTS", 2)
    for folder in ("documents", "units/documents"):
        shutil.copytree(run.out / folder, tmp_path / folder)
    flags = {"--out": str(tmp_path), "--vocab-size": VOCAB_SIZE, "--unit-bytes": str(1 << 20)}
    scan_program.run(load_run_config(flags=flags), Reporters())
    names = sorted(path.relative_to(run.out) for path in (run.out / "counts").rglob("*") if path.is_file())
    assert count_groups(len(list((run.out / "documents").glob("part-*")))) > 2
    assert {name: (tmp_path / name).read_bytes() for name in names} == {
        name: (run.out / name).read_bytes() for name in names
    }
    assert not (tmp_path / merge.GROUPS).exists()
