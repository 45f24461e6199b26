"""Write down the jobs that Dataflow would get, without a network; for test_graphs.

Its input, pickled, is what stages add to a pipeline of units, by name, and the ranges of a plan. Its arguments are a
folder, which gets a folder for each stage with `job.json` and `pipeline.pb`, and the options for Beam.
"""

import pickle
import sys
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from schemas.coders import register_coders
from transforms.scan import count
from transforms.units.plan import ReadUnits

register_coders()
count.MAX_PARTS = 1  # so that groups of counts are merged, as a million units need it
constructs, ranges = pickle.load(sys.stdin.buffer)
for stage, construct in constructs.items():
    folder = Path(sys.argv[1]) / stage
    folder.mkdir()
    places = [f"--template_location={folder}/job.json", f"--staging_location={folder}", f"--temp_location={folder}"]
    pipeline = beam.Pipeline(options=PipelineOptions([*sys.argv[2:], *places]))
    construct(pipeline | "Units" >> ReadUnits(ranges=ranges))
    pipeline.run()
