"""The template takes what the command line takes, and its job runs it."""

import json
import logging
import os
import shutil
import subprocess
import sys

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from configs.tables import DRIFT_FLAGS
from pipelines.cli.template import (
    BEAM_OPTIONS,
    COMMAND,
    COMMANDS,
    SOURCES,
    all_options,
    command_options,
    hand_on,
    main,
    run_cppmill,
    run_here,
    split_parameters,
)
from pipelines.cli.template_metadata import metadata
from pipelines.engines.cache import engine_path
from pipelines.engines.dataflow import SecretOptions
from schemas.errors import ConfigError, CppmillError
from transforms.storage import s3
from transforms.storage.aws_keys import SECRET_OPTION, SECRET_VARIABLE

LAUNCHED = ["--runner=DataflowRunner", "--project=p", "--region=r", "--temp_location=gs://t", "--job_name=j"]
SECRET = "projects/p/secrets/s"


@pytest.fixture(scope="module")
def parameters(repository):
    metadata = json.loads((repository / "deploy/dataflow/metadata.json").read_bytes())
    return {parameter.pop("name"): parameter for parameter in metadata["parameters"]}


def test_the_template_has_each_parameter_of_its_commands(parameters):
    assert sorted(parameters) == sorted([COMMAND, SOURCES, BEAM_OPTIONS, SECRET_OPTION, *all_options()])
    assert all(parameter["label"] and parameter["helpText"] for parameter in parameters.values())
    assert parameters[COMMAND]["regexes"] == ["^(run|retokenize)$"]


def test_a_parameter_of_one_command_alone_says_so(parameters):
    only = {name: found["helpText"].rpartition(" Only with ")[2] for name, found in parameters.items()}
    of_one = {name: text for name, text in only.items() if text.startswith("command=")}
    of_drift = {flag.key for flag in DRIFT_FLAGS.values()}
    assert of_one == {"out": "command=run.", **dict.fromkeys({"store", "keep", *of_drift}, "command=retokenize.")}


def test_the_metadata_is_that_of_the_options(repository):
    made = f"{json.dumps(metadata(), indent=2, ensure_ascii=False)}\n"
    advice = "run python -m pipelines.cli.template_metadata > deploy/dataflow/metadata.json"
    assert (repository / "deploy/dataflow/metadata.json").read_text() == made, advice


def test_a_whole_number_is_checked_before_the_job_starts(parameters):
    for name in ("vocab_size", "threads", "memory_bytes", "unit_bytes", "limit", "max_line_bytes", "keep"):
        assert parameters[name]["regexes"] == ["^[0-9]+$"]
    assert parameters["out"]["regexes"] == parameters["store"]["regexes"] == ["^[a-z0-9]+://.+$"]
    assert "regexes" not in parameters["sample"]


def test_a_filter_is_switched_off_and_several_keys_are_set():
    run, _ = split_parameters(
        ["--out=o", "--drop_binary=false", "--drop_secrets=true", "--set=scan.word_partitions=4;run.threads=2"]
    )
    assert run[:5] == ["run", "--engine", "dataflow", "--out", "o"]
    assert sorted(run[5:]) == sorted(
        ["--no-drop-binary", "--drop-secrets", "--set", "scan.word_partitions=4", "--set", "run.threads=2"]
    )


def test_flags_of_the_template_are_true_or_false(parameters):
    flags = {name for name, option in all_options().items() if option.is_flag}
    assert {name for name, found in parameters.items() if found.get("regexes") == ["^(true|false)$"]} == flags


@pytest.mark.parametrize("command", COMMANDS)
def test_every_parameter_becomes_its_argument(command):
    options = command_options(command)
    given = {COMMAND: command} | {name: "true" if option.is_flag else "7" for name, option in options.items()}
    given |= {SOURCES: "gs://a/*.tar;gs://b", BEAM_OPTIONS: "--max_num_workers=5 --worker_zone='a b'"}
    words, rest = split_parameters([*(f"--{name}={value}" for name, value in given.items()), *LAUNCHED])
    assert rest == LAUNCHED
    assert words[:3] == [command, "gs://a/*.tar", "gs://b"]
    assert words[-3:] == ["--", "--max_num_workers=5", "--worker_zone=a b"]
    for option in options.values():
        place = words.index(option.opts[0])
        assert option.is_flag or words[place + 1] == "7"


def test_what_is_not_given_is_left_to_the_command_line_but_the_engine():
    words, _ = split_parameters(["--sources=s", "--out=o", "--rehash=false", "--limit=", *LAUNCHED])
    assert words == ["run", "s", "--engine", "dataflow", "--out", "o"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--out=o", "--keep=3"], "keep: not allowed with command=run; leave it out, or change command"),
        (["--command=run", "--out=o", "--store=s", "--keep=3"], "store, keep: not allowed with command=run; leave"),
        (["--command=retokenize", "--store=s", "--out=o"], "out: not allowed with command=retokenize; leave it out"),
        (["--command=retokenize"], "store: missing; command=retokenize needs it"),
        ([], "out: missing; command=run needs it"),
        (["--command=scan"], "command=scan: not allowed; it takes run or retokenize"),
    ],
)
def test_parameters_that_do_not_fit_the_command_are_refused_in_one_line(given, message, capsys):
    with pytest.raises(ConfigError, match=message):
        split_parameters(given)
    with pytest.raises(SystemExit) as ended:
        main([*given, *LAUNCHED])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {message}")


def test_the_jobs_of_a_run_are_where_the_template_is_by_default():
    words = hand_on(["run", "s", "--out", "o", "--", "--region=x"], PipelineOptions(LAUNCHED))
    assert words[:5] == ["run", "s", "--out", "o", "--"]
    assert words[5:] == ["--project=p", "--region=r", "--temp_location=gs://t", "--region=x"]
    assert PipelineOptions(words[5:]).get_all_options()["region"] == "x"


@pytest.mark.usefixtures("forked_workers")
def test_the_job_runs_the_command(run, tmp_path, caplog):
    sources, tokenizer = f"{run.sources}/numpy", f"file://{run.out}/tokenizer"
    with caplog.at_level(logging.INFO, "cppmill.pipelines.cli.template"):
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
        run_cppmill(["run", f"{tmp_path}/no-such-folder", "--out", f"{tmp_path}/out"])


def test_a_retokenization_with_nothing_new_ends_well_and_says_so(run, tmp_path, caplog, capsys):
    """As a schedule does it: each time the same parameters, the tokenizer of the first version among them."""
    given = ["--command=retokenize", f"--sources={run.sources}/numpy", f"--store={tmp_path}/store", "--keep=2"]
    given += [f"--tokenizer=file://{run.out}/tokenizer", "--engine=local"]
    with pytest.raises(SystemExit) as ended:
        run_here(given)
    assert ended.value.code == 0
    assert "v000001 is complete" in capsys.readouterr().out
    nothing_new = "cppmill retokenize: nothing new, so no version was made"
    run_here(given)
    assert capsys.readouterr().out.splitlines()[-1] == nothing_new
    with caplog.at_level(logging.INFO, "cppmill.pipelines.cli.template"):
        main([*given, "--runner=FnApiRunner"])
    assert caplog.records[-1].getMessage() == nothing_new
    assert [path.name for path in (tmp_path / "store/versions").iterdir()] == ["v000001"]


def test_a_version_beyond_a_threshold_of_drift_ends_well_and_says_so(run, tmp_path, caplog, capsys):
    """A job that failed would be run again, and find nothing to do."""
    sources = tmp_path / "sources"
    (sources / "numpy").mkdir(parents=True)
    for header in sorted((run.sources / "numpy").rglob("*.h"))[:8]:
        shutil.copy(header, sources / "numpy")
    given = ["--command=retokenize", f"--sources={sources}", f"--store={tmp_path}/store", "--engine=local"]
    given += [f"--tokenizer=file://{run.out}/tokenizer", "--alert_died=1"]
    with pytest.raises(SystemExit):
        run_here(given)
    drifted = "cppmill retokenize: there is a new version, and its drift exceeds a threshold"
    remove_largest(sources / "numpy")
    capsys.readouterr()
    run_here(given)
    assert capsys.readouterr().out.splitlines()[-1] == drifted
    remove_largest(sources / "numpy")
    with caplog.at_level(logging.INFO, "cppmill.pipelines.cli.template"):
        run_cppmill(split_parameters(given)[0])
    assert caplog.records[-1].getMessage() == drifted
    assert (tmp_path / "store/current").readlink().name == "v000003"


def remove_largest(folder):
    max(folder.iterdir(), key=lambda path: path.stat().st_size).unlink()


def test_the_secret_is_named_to_the_templates_job_and_to_the_command(tmp_path, monkeypatch, capsys):
    given = ["--sources=s3://bucket/sources", f"--out={tmp_path}/out", f"--s3_secret={SECRET}"]
    _, rest = split_parameters([*given, *LAUNCHED])
    assert PipelineOptions(rest).view_as(SecretOptions).s3_secret == SECRET
    monkeypatch.setenv(SECRET_VARIABLE, "")
    s3._open_system.cache_clear()  # a process reads the secret once, and an earlier test may have opened S3
    with pytest.raises(SystemExit) as ended:
        run_here([*given, "--engine=local"])
    assert ended.value.code == 2
    assert SECRET in capsys.readouterr().err


def test_a_command_that_fails_without_a_job_has_its_exit_code(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run_here(["--command=retokenize", f"--sources={tmp_path}/none", f"--store={tmp_path}/store", "--engine=local"])
    assert ended.value.code == 2
    assert f"{tmp_path}/none: no such file or folder" in capsys.readouterr().err


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
