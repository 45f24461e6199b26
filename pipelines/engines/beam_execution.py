"""Running flows on Beam: what each engine sets, the pipelines of one command, and their end.

The runner is always named: Beam's default local runner would download a binary.
"""

from __future__ import annotations

import shlex
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions

from pipelines.engines.beam_options import check_beam_options
from pipelines.engines.config import EngineConfig
from pipelines.engines.dataflow import Dataflow
from pipelines.engines.engine import Engine, make_options
from pipelines.engines.flink import Flink
from pipelines.engines.graph import ReadUnits, RunFlow
from pipelines.engines.local import Local
from pipelines.engines.prism import Prism
from pipelines.engines.spark import Spark
from schemas.coders import register_coders
from schemas.errors import ConfigError
from schemas.units import Unit
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import temporary_folder
from transforms.units.flow import Flow
from transforms.units.plan import write_plan

ENGINES: dict[str, Callable[[EngineConfig], Engine]] = {
    "local": Local,
    "flink": Flink,
    "spark": Spark,
    "prism": Prism,
    "dataflow": Dataflow,
}


@dataclass(frozen=True)
class BeamEngine:
    """An engine of Beam that is ready to run flows.

    Attributes:
        name: Its name.
        engine: What is particular to it.
        config: Its configuration.
    """

    name: str
    engine: Engine
    config: EngineConfig

    def describe(self) -> str:
        """Return the options that pipelines run with, in a line."""
        set_here = [flag for flag in self.engine.flags if not self.config.gives(flag.partition("=")[0])]
        return f"{self.name}: Beam's options are {shlex.join([*set_here, *self.config.beam_options])}"

    def run(self, flow: Flow, units: Sequence[Unit], *, out: OutputFolder, label: str) -> None:
        """Send units through a flow: plan them in the output folder, construct the pipeline and wait for its end.

        Args:
            flow: The steps.
            units: What goes through them.
            out: The output folder, which gets the plan.
            label: Names the plan, and the job where the engine shows it.

        Raises:
            CppmillError: If the engine refuses the job or ends it for a reason of its own.
            Exception: What a step raised; from another process a RuntimeError with its text.
        """
        read = ReadUnits(ranges=write_plan(out, label, units))
        register_coders()
        options = make_options(self.config, [*self.engine.flags, f"--job_name=cppmill-{label}-{uuid.uuid4().hex[:8]}"])
        pipeline = beam.Pipeline(runner=self.engine.runner(), options=options)
        _ = pipeline | "Units" >> read | "Flow" >> RunFlow(flow)
        try:
            self._run_to_end(pipeline, options.view_as(GoogleCloudOptions).job_name)
        except Exception as error:
            explained = self.engine.explain(error)
            if explained is None:
                raise
            raise explained from error

    def _run_to_end(self, pipeline: beam.Pipeline, job_name: str) -> None:
        """Run a pipeline and wait; Ctrl-C cancels its job."""
        try:
            result = pipeline.run()
        except KeyboardInterrupt:
            self.engine.cancel(job_name)
            raise
        try:
            result.wait_until_finish()
        except KeyboardInterrupt:
            self.engine.cancel(job_name)
            with suppress(Exception):
                result.cancel()
            raise


@contextmanager
def open_beam_engine(name: str, config: EngineConfig) -> Iterator[BeamEngine]:
    """As `open_engine`, for engines of Beam."""
    check_beam_options(config.beam_options, engine=name)
    engine = ENGINES[name](config)
    problems = list(engine.missing())
    if problems:
        raise ConfigError("\n".join(f"--engine {name}: {problem}" for problem in problems))
    with _removed_temporaries():
        try:
            yield BeamEngine(name, engine, config)
        finally:
            engine.stop()


@contextmanager
def _removed_temporaries() -> Iterator[None]:
    """Have this process make its temporary folders in one that goes: Beam makes some per pipeline and leaves them."""
    before = tempfile.tempdir
    with temporary_folder() as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before
