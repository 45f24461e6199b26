"""Runs a transform for real, on the in-process runner, with explicit options."""

import pickle
import tempfile
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from schemas.coders import register_coders


@pytest.fixture
def run_transform(tmp_path):
    """Return `run(transform, elements=None)`: what the transform gives, in any order.

    Without elements the transform is applied to the pipeline itself.
    """
    register_coders()

    def run(transform, elements=None, options=("--direct_running_mode=in_memory", "--direct_num_workers=1")):
        folder = tempfile.mkdtemp(dir=tmp_path)

        def keep(element):
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(pickle.dumps(element))

        with beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions(list(options))) as pipeline:
            source = pipeline if elements is None else pipeline | beam.Create(elements, reshuffle=False)
            _ = source | "Tested" >> transform | "Keep" >> beam.Map(keep)
        return [pickle.loads(path.read_bytes()) for path in Path(folder).iterdir()]

    return run
