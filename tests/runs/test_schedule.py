"""The recipes for schedulers: they are well-formed, and the commands in them make versions and say so by exit codes."""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import subprocess
import sys
import types
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from configs.runs import load_run_config
from configs.tables import STORE_FLAGS
from pipelines.engines.beam_options import check_beam_options

PROGRAM = str(Path(sys.executable).parent / "cppmill")


@pytest.fixture(scope="module")
def recipes(repository):
    return repository / "deploy" / "schedule"


@dataclass(frozen=True)
class Task:
    """A task of the DAG: what its operator was given."""

    given: dict

    def __rshift__(self, later):
        ORDER.append((self.given["task_id"], later.given["task_id"]))


ORDER: list[tuple[str, str]] = []


@pytest.fixture
def dag(recipes, monkeypatch):
    """The DAG file, loaded with stand-ins for the two classes of Airflow that it uses: its settings and tasks."""
    settings, tasks = {}, {}

    @contextmanager
    def make_dag(**given):
        settings.update(given)
        yield

    def operator(*, task_id, bash_command, env, append_env, skip_on_exit_code=99):
        tasks[task_id] = Task({"task_id": task_id, "command": bash_command, "env": env, "skip": skip_on_exit_code})
        return tasks[task_id]

    modules = {
        "airflow": {},
        "airflow.sdk": {"DAG": make_dag},
        "airflow.providers": {},
        "airflow.providers.standard": {},
        "airflow.providers.standard.operators": {},
        "airflow.providers.standard.operators.bash": {"BashOperator": operator},
    }
    for name, members in modules.items():
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(**members))
    ORDER.clear()
    runpy.run_path(str(recipes / "airflow_dag.py"))
    return settings, tasks


@pytest.fixture(scope="module")
def places(run, cppmill, processes, tmp_path_factory):
    """The variables that every recipe has, and a store with a version of some headers."""
    folder = tmp_path_factory.mktemp("places")
    (folder / "sources").mkdir()
    for path in sorted((run.sources / "numpy").rglob("*.h"))[:5]:
        shutil.copy(path, folder / "sources")
    program = processes.write_program(folder / "cppmill")
    made = {"SOURCES": str(folder / "sources"), "STORE": str(folder / "store")}
    cppmill("retokenize", made["SOURCES"], "--store", made["STORE"], "--tokenizer", run.out / "tokenizer")
    return {"CPPMILL": str(program), **made, "KEEP": "2"}


def change(places):
    """Add a source."""
    name = f"added_{uuid.uuid4().hex}"
    (Path(places["SOURCES"]) / f"{name}.h").write_text(f"int {name}();\n")


def current(places):
    return (Path(places["STORE"]) / "current").readlink()


def shell(command, places):
    return subprocess.run(
        ["bash", "-c", command], env={**os.environ, **places}, capture_output=True, text=True, check=False
    )


def test_the_command_of_the_crontab_makes_versions_and_is_quiet_when_all_is_well(recipes, places):
    lines = [line for line in (recipes / "crontab").read_text().splitlines() if not line.startswith("#")]
    assert {line.partition("=")[0] for line in lines[:-1]} == places.keys()
    *when, command = lines[-1].split(maxsplit=5)
    assert [len(field) for field in when] == [1] * 5
    assert "%" not in command, "cron takes it for a newline"
    done = shell(command, places)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    change(places)
    version = current(places)
    assert shell(command, places).returncode == 0
    assert current(places) != version
    failed = shell(command, {**places, "CPPMILL": PROGRAM, "SOURCES": "/no/such/folder"})
    assert failed.returncode != 0
    assert "no such file or folder" in failed.stderr


def test_the_tasks_of_the_airflow_dag_run_in_order_and_skip_needless_work(dag, places):
    settings, tasks = dag
    assert (settings["max_active_runs"], settings["catchup"]) == (1, False)
    assert ORDER == [("retokenize", "verify")]
    for task in tasks.values():
        assert task.given["env"].keys() == places.keys()
    change(places)
    retokenize, verify = (tasks[name].given for name in ("retokenize", "verify"))
    assert shell(retokenize["command"], places).returncode == 0
    assert shell(retokenize["command"], places).returncode == retokenize["skip"]
    assert "everything matches the receipt" in shell(verify["command"], places).stdout


def unit_file(recipes, name):
    """The settings of a unit file, values of one key together."""
    found: dict[str, list[str]] = {}
    for line in (recipes / "systemd" / name).read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_the_command_of_the_systemd_service_ends_as_the_service_expects(recipes, places):
    service = unit_file(recipes, "cppmill-retokenize.service")
    assert {value.partition("=")[0] for value in service["Environment"]} == places.keys() - {"CPPMILL"}
    [command] = service["ExecStart"]
    program, *arguments = shlex.split(command)
    assert program == "/opt/cppmill/bin/cppmill"
    assert arguments[0] == "retokenize"
    change(places)
    replaced = command.replace(program, places["CPPMILL"])
    assert shell(replaced, places).returncode == 0
    assert str(shell(replaced, places).returncode) in service["SuccessExitStatus"][0].split()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_finds_nothing_wrong_with_service_and_timer(recipes, tmp_path):
    names = ("cppmill-retokenize.service", "cppmill-retokenize.timer")
    for name in names:
        text = (recipes / "systemd" / name).read_text()
        (tmp_path / name).write_text(text.replace("/opt/cppmill/bin/cppmill", PROGRAM))
    command = ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    [calendar] = unit_file(recipes, names[1])["OnCalendar"]
    subprocess.run(["systemd-analyze", "calendar", calendar], check=True, capture_output=True)


def test_the_dataflow_command_is_one_that_the_command_line_takes(recipes, tmp_path):
    shown = tmp_path / "shown"
    shown.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    shown.chmod(0o755)
    places = {"CPPMILL": str(shown), "SOURCES": "gs://sources/*.tar.zst", "STORE": "s3://bucket/store"}
    service = {name: name.lower() for name in ("PROJECT", "REGION", "TEMP_LOCATION", "IMAGE")}
    done = shell(str(recipes / "dataflow.sh"), {**places, **service})
    words = done.stdout.splitlines()
    split = words.index("--")
    command, beam_options = words[:split], words[split + 1 :]
    check_beam_options(beam_options, engine="dataflow")
    flags = dict(zip(command[2::2], command[3::2], strict=True))
    assert flags.pop("--keep") == "3"
    config = load_run_config(flags={"SOURCE": (command[1],), "--": tuple(beam_options), **flags}, names=STORE_FLAGS)
    assert (config.engine, config.worker_threads, config.out) == ("dataflow", 4, "s3://bucket/store")
    unset = shell(str(recipes / "dataflow.sh"), places)
    assert unset.returncode != 0
    assert "PROJECT" in unset.stderr
