"""The template takes what the command line takes, and its job runs it."""

import json
import logging
import os
import subprocess
import sys

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.cli.template import BEAM_OPTIONS, SOURCES, hand_on, main, run_cppmill, run_options, split_parameters
from pipelines.cli.template_metadata import metadata
from pipelines.engines.cache import engine_path
from schemas.errors import CppmillError

LAUNCHED = ["--runner=DataflowRunner", "--project=p", "--region=r", "--temp_location=gs://t", "--job_name=j"]


@pytest.fixture(scope="module")
def parameters(repository):
    metadata = json.loads((repository / "deploy/dataflow/metadata.json").read_bytes())
    return {parameter.pop("name"): parameter for parameter in metadata["parameters"]}


def test_the_template_has_each_parameter_of_the_command_line(parameters):
    assert sorted(parameters) == sorted([SOURCES, BEAM_OPTIONS, *run_options()])
    assert all(parameter["label"] and parameter["helpText"] for parameter in parameters.values())
    assert [name for name, parameter in parameters.items() if not parameter.get("isOptional")] == ["out"]


def test_the_metadata_is_that_of_the_options(repository):
    made = f"{json.dumps(metadata(), indent=2, ensure_ascii=False)}\n"
    advice = "run python -m pipelines.cli.template_metadata > deploy/dataflow/metadata.json"
    assert (repository / "deploy/dataflow/metadata.json").read_text() == made, advice


def test_a_whole_number_is_checked_before_the_job_starts(parameters):
    for name in ("vocab_size", "threads", "memory_bytes", "unit_bytes", "limit", "max_line_bytes"):
        assert parameters[name]["regexes"] == ["^[0-9]+$"]
    assert parameters["out"]["regexes"] == ["^[a-z0-9]+://.+$"]
    assert "regexes" not in parameters["sample"]


def test_a_filter_is_switched_off_and_several_keys_are_set():
    run, _ = split_parameters(
        ["--drop_binary=false", "--drop_secrets=true", "--set=scan.word_partitions=4;run.threads=2"]
    )
    assert run[:2] == ["--engine", "dataflow"]
    assert sorted(run[2:]) == sorted(
        ["--no-drop-binary", "--drop-secrets", "--set", "scan.word_partitions=4", "--set", "run.threads=2"]
    )


def test_flags_of_the_template_are_true_or_false(parameters):
    flags = {name for name, option in run_options().items() if option.is_flag}
    assert {name for name, found in parameters.items() if found.get("regexes") == ["^(true|false)$"]} == flags


def test_every_parameter_becomes_its_argument():
    given = {name: "true" if option.is_flag else "7" for name, option in run_options().items()}
    given |= {SOURCES: "gs://a/*.tar;gs://b", BEAM_OPTIONS: "--max_num_workers=5 --worker_zone='a b'"}
    run, rest = split_parameters([*(f"--{name}={value}" for name, value in given.items()), *LAUNCHED])
    assert rest == LAUNCHED
    assert run[:2] == ["gs://a/*.tar", "gs://b"]
    assert run[-3:] == ["--", "--max_num_workers=5", "--worker_zone=a b"]
    for option in run_options().values():
        place = run.index(option.opts[0])
        assert option.is_flag or run[place + 1] == "7"


def test_what_is_not_given_is_left_to_the_command_line_but_the_engine():
    run, _ = split_parameters(["--sources=s", "--out=o", "--rehash=false", "--limit=", *LAUNCHED])
    assert run == ["s", "--engine", "dataflow", "--out", "o"]


def test_the_jobs_of_a_run_are_where_the_template_is_by_default():
    run = hand_on(["s", "--out", "o", "--", "--region=x"], PipelineOptions(LAUNCHED))
    assert run[:4] == ["s", "--out", "o", "--"]
    assert run[4:] == ["--project=p", "--region=r", "--temp_location=gs://t", "--region=x"]
    assert PipelineOptions(run[4:]).get_all_options()["region"] == "x"


def test_the_job_runs_the_command(run, tmp_path, caplog):
    sources, tokenizer = f"{run.sources}/numpy", f"file://{run.out}/tokenizer"
    with caplog.at_level(logging.INFO, "pipelines.cli.template"):
        main(
            [
                f"--sources={sources}",
                f"--out={tmp_path}/out",
                f"--tokenizer={tokenizer}",
                "--engine=local",
                "--json=true",
            ]
            + ["--runner=FnApiRunner"]
        )
    assert (tmp_path / "out" / "receipt.json").is_file()
    assert json.loads((tmp_path / "out" / "receipt.json").read_bytes())["tokenizer"] == run.receipt["tokenizer"]
    assert '"stage_done"' in caplog.text


def test_a_failed_run_fails_the_job_with_its_output(tmp_path):
    with pytest.raises(CppmillError, match=r"exit code 2\n(.*\n)*.*no-such-folder"):
        run_cppmill([f"{tmp_path}/no-such-folder", "--out", f"{tmp_path}/out"])


@pytest.mark.engines
def test_the_templates_job_has_one_worker_and_one_step(repository, tmp_path):
    command = [sys.executable, "deploy/dataflow/launcher.py", "--sources=gs://b/in", "--out=gs://b/out", *LAUNCHED]
    command += ["--no_auth", "--dataflow_endpoint=http://localhost:9", "--sdk_container_image=our-image"]
    command += [f"--template_location={tmp_path}/job.json", f"--staging_location={tmp_path}"]
    command[command.index("--temp_location=gs://t")] = f"--temp_location={tmp_path}"
    environment = os.environ | {"NO_GCE_CHECK": "true", "PYTHONPATH": f"{engine_path('dataflow')}:{repository}"}
    subprocess.run(command, env=environment, cwd=repository, check=True, capture_output=True)
    [pool] = json.loads((tmp_path / "job.json").read_bytes())["environment"]["workerPools"]
    assert pool["autoscalingSettings"]["maxNumWorkers"] == 1
    assert (tmp_path / "pipeline.pb").stat().st_size < 1 << 16
