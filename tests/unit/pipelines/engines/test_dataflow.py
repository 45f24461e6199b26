"""What Dataflow's client raises is told in one line; an error of a step is left as it is."""

import sys
from types import ModuleType

import pytest

from pipelines.engines import beam_execution
from pipelines.engines.config import EngineConfig
from pipelines.engines.dataflow import Dataflow
from pipelines.engines.engine import make_options
from schemas.errors import EngineError
from transforms.storage.aws_keys import SECRET_VARIABLE
from transforms.storage.folder import OutputFolder


class GoogleAPICallError(Exception):
    pass


class TooManyRequests(GoogleAPICallError):  # noqa: N818 - Google's name
    pass


class DataflowRuntimeException(Exception):  # noqa: N818 - Beam's name
    pass


@pytest.fixture(autouse=True)
def google(monkeypatch):
    """Google's packages, as far as their errors go."""
    for name, error in {
        "google.api_core.exceptions": GoogleAPICallError,
        "apache_beam.runners.dataflow.dataflow_runner": DataflowRuntimeException,
    }.items():
        module = ModuleType(name)
        setattr(module, error.__name__, error)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a pipeline on Dataflow whose client raises an error."""
    engine = Dataflow(EngineConfig(out="gs://bucket/run", log_folder=tmp_path, cpus=1))

    def run(error):
        def fail(*_):
            raise error

        monkeypatch.setattr(beam_execution.BeamEngine, "_run_to_end", fail)
        opened = beam_execution.BeamEngine("dataflow", engine, engine._config)
        opened.run((), [], out=OutputFolder(tmp_path), label="nothing")

    monkeypatch.setattr(engine, "runner", lambda: None)
    return run


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (TooManyRequests("429 insufficient\nquota(s): CPUS"), "Dataflow did not take a job: 429 insufficient quota"),
        (DataflowRuntimeException("State: FAILED, Error:\nthe disk is full"), "State: FAILED, Error: the disk is full"),
    ],
)
def test_a_reason_of_the_service_is_one_line_that_says_what_to_do(run, error, message):
    with pytest.raises(EngineError) as raised:
        run(error)
    assert str(raised.value).startswith(message)
    assert str(raised.value).endswith("finished units are kept, so start the same command again")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "error",
    [
        DataflowRuntimeException("State: FAILED, Error:\nTraceback (most recent call last):\nno such thing"),
        ValueError("no such thing"),
    ],
)
def test_an_error_of_a_step_is_left_as_it_is(run, error):
    with pytest.raises(type(error), match="no such thing"):
        run(error)


def test_jobs_name_the_secret_of_their_launcher_to_workers(tmp_path, monkeypatch):
    config = EngineConfig(out="s3://bucket/run", log_folder=tmp_path, cpus=1)
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    assert not [flag for flag in Dataflow(config).flags if "secret" in flag]
    monkeypatch.setenv(SECRET_VARIABLE, "projects/p/secrets/s")
    options = make_options(config, Dataflow(config).flags)
    assert options.get_all_options()["s3_secret"] == "projects/p/secrets/s"
