"""A pipeline runs in this process unless Beam's options say otherwise, and never without what its engine needs."""

import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from pipelines.engines.beam_execution import open_beam_engine
from pipelines.engines.cache import ENGINES_VARIABLE
from pipelines.engines.config import EngineConfig
from pipelines.engines.execution import open_engine
from schemas.errors import ConfigError
from schemas.units import Stage, Unit
from tests.stores import new_prefix
from transforms.storage.folder import OutputFolder
from transforms.units.flow import FlatMap


def make_setting(tmp_path, *options):
    return EngineConfig(out=str(tmp_path / "out"), log_folder=tmp_path / "logs", cpus=2, beam_options=options)


def keep_process(unit, folder):
    (folder / unit.label).write_text(str(os.getpid()))
    yield unit


def processes(tmp_path, *options):
    units = [Unit(stage=Stage.SCAN, key=label, num_bytes=1, label=label, payload={}) for label in "abcdefgh"]
    (tmp_path / "processes").mkdir()
    keep = FlatMap(name="Keep", function=partial(keep_process, folder=tmp_path / "processes"), gives=Unit)
    with open_engine("local", make_setting(tmp_path, *options)) as engine:
        engine.run((keep,), units, out=OutputFolder(tmp_path / "out"), label="keep")
    found = {path.name: path.read_text() for path in (tmp_path / "processes").iterdir()}
    assert sorted(found) == [unit.label for unit in units]
    return set(found.values())


def test_it_runs_in_this_process(tmp_path):
    assert processes(tmp_path) == {str(os.getpid())}


def test_temporary_folders_of_beam_go_with_its_engine(tmp_path):
    before = tempfile.gettempdir()
    with open_beam_engine("local", make_setting(tmp_path)):
        left = Path(tempfile.mkdtemp())
    assert not left.exists()
    assert tempfile.gettempdir() == before


@pytest.mark.usefixtures("forked_workers")
def test_beams_options_win(tmp_path):
    found = processes(tmp_path, "--direct_running_mode=multi_processing", "--direct_num_workers=2")
    assert str(os.getpid()) not in found


@pytest.mark.parametrize("options", [[], ["--direct_running_mode=in_memory"]])
def test_a_step_that_fails_fails_the_run(options, tmp_path):
    unit = Unit(stage=Stage.SCAN, key="k", num_bytes=1, label="l", payload={})
    flow = (FlatMap(name="Fail", function=fail, gives=Unit),)
    with (
        open_engine("local", make_setting(tmp_path, *options)) as engine,
        pytest.raises(ValueError, match="no such thing"),
    ):
        engine.run(flow, [unit], out=OutputFolder(tmp_path / "out"), label="fail")


def fail(unit):
    raise ValueError("no such thing")


_SELDOM_NEEDED = (
    *("apache_beam", "pandas", "fsspec", "psutil", "sentencepiece", "tokenizers", "rich", "jinja2", "sqlite3"),
    *("tarfile", "backports.zstd.tarfile", "backports.zstd.zipfile", "cppmill_core.adoption"),
    *("tokenizer_build.training", "tokenizer_build.lint", "tokenizer_build.own"),
)


def test_a_run_loads_nothing_that_few_runs_need():
    loaded = "import sys, pipelines.cli.app, pipelines.stages.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert not set(_SELDOM_NEEDED) & set(done.stdout.split())


@pytest.mark.parametrize(
    ("engine", "options", "messages"),
    [
        ("prism", [], ["prism is missing; fetch it with `make engines`"]),
        (
            "flink",
            ["--flink_master=127.0.0.1:1", "--job_server_java_launcher=no-java"],
            ["flink is missing", "no-java: no Java", "http://127.0.0.1:1: no Flink answers there"],
        ),
        (
            "spark",
            ["--spark_master_url=spark://127.0.0.1:1"],
            ["spark is missing", "spark-home is missing", "spark://127.0.0.1:1: no master answers there"],
        ),
        ("spark", ["--spark_master_url=http://127.0.0.1:1"], ["it is not spark://HOST:PORT or local[N]"]),
        ("dataflow", [], ["no --project", "no --region", "no --temp_location", "no --sdk_container_image", "s3://"]),
        ("flink", ['--environment_config={"command": "/no/worker"}', "--environment_type=PROCESS"], ["/no/worker: "]),
        ("flink", ["--environment_config=x", "--environment_type=PROCESS"], ["no JSON with a command"]),
        ("flink", ['--environment_config={"command": "/no/worker"}'], ["/no/worker: "]),
        ("spark", ['--environment_config={"command": "/no/worker"}'], ["/no/worker: "]),
        ("flink", ["--flink_job_server_jar=/no/jar"], ["--flink_job_server_jar=/no/jar: there is no such file"]),
    ],
)
def test_everything_that_an_engine_lacks_is_reported_at_once(engine, options, messages, tmp_path, monkeypatch):
    monkeypatch.setenv(ENGINES_VARIABLE, str(tmp_path / "no engines"))
    with pytest.raises(ConfigError) as raised, open_engine(engine, make_setting(tmp_path, *options)):
        pass
    lines = str(raised.value).splitlines()
    assert all(line.startswith(f"--engine {engine}: ") for line in lines)
    for message in messages:
        assert re.search(re.escape(message), str(raised.value))


def test_a_worker_program_is_beside_this_python(tmp_path, monkeypatch):
    monkeypatch.setenv(ENGINES_VARIABLE, str(tmp_path))
    with pytest.raises(ConfigError) as raised, open_engine("flink", make_setting(tmp_path)):
        pass
    assert "worker program" not in str(raised.value)


@pytest.mark.engines
def test_a_place_that_the_client_of_dataflow_cannot_write_is_one_line_before_anything_is_submitted(
    start_store, tmp_path
):
    bucket, _, _ = new_prefix(start_store("gs")).rpartition("/")
    needed = ["--project=p", "--region=r", "--sdk_container_image=image"]
    places = ["--temp_location=gs://no-such-bucket/tmp", f"--staging_location={bucket}/staging/"]
    assert said_of_places(make_setting(tmp_path, *needed, *places)) == [
        "--temp_location gs://no-such-bucket/tmp: there is no such bucket; create it first"
    ]
    places = [f"--temp_location={bucket}/tmp", f"--staging_location={bucket}"]
    assert said_of_places(make_setting(tmp_path, *needed, *places)) == [
        f"--staging_location {bucket}: it takes gs://BUCKET/PREFIX"
    ]


def said_of_places(config):
    """The lines about places that Dataflow's client writes to; a local output folder keeps the rest from starting."""
    with pytest.raises(ConfigError) as raised, open_engine("dataflow", config):
        pass
    lines = [line.removeprefix("--engine dataflow: ") for line in str(raised.value).splitlines()]
    return [line for line in lines if "_location" in line]
