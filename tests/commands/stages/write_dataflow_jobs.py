"""Write down the jobs that Dataflow would get, without a network; for test_graphs.

Its input, pickled, is the flows of stages, by name, and the ranges of a plan. Its arguments are a
folder, which gets a folder for each stage with `job.json` and `pipeline.pb`, and the options for Beam.
"""

import pickle
import sys
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.engines.graph import ReadUnits, RunFlow
from schemas.coders import register_coders

register_coders()
flows, ranges = pickle.load(sys.stdin.buffer)
for stage, flow in flows.items():
    folder = Path(sys.argv[1]) / stage
    folder.mkdir()
    places = [f"--template_location={folder}/job.json", f"--staging_location={folder}", f"--temp_location={folder}"]
    pipeline = beam.Pipeline(options=PipelineOptions([*sys.argv[2:], *places]))
    _ = pipeline | "Units" >> ReadUnits(ranges=ranges) | "Flow" >> RunFlow(flow)
    pipeline.run()
