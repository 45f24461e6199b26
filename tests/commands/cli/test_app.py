"""The command line: what it hands to the programs, what it prints, and how it ends."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from configs.flags import Flag
from configs.runs import RunConfig
from configs.tables import DEFAULT_PROFILE, FLAGS, SEQUENCE_FLAGS, SHARD_FLAGS, RunTableOptions
from pipelines.cli.app import app
from pipelines.cli.groups import Group
from pipelines.console.failures import Failure
from pipelines.console.stage_status import StageStatus
from pipelines.console.status import RunStatus, StoreStatus
from pipelines.stages.program import PlannedUnit
from schemas.errors import (
    BadInputError,
    ConfigError,
    CppmillError,
    ExitCode,
    IntegrityError,
    LockedError,
    VocabularyConfigError,
)
from schemas.options import RunOptions
from schemas.study_options import DriftOptions

REPOSITORY = Path(__file__).parents[3]
STAGES = ("ingest", "scan", "build", "tokenize", "validate")
Install = Callable[..., types.ModuleType]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a stand-in in the place of a module of a package of `pipelines`."""

    def install(name: str, **functions: Any) -> types.ModuleType:
        package, _, leaf = f"pipelines.{name}".rpartition(".")
        module = types.ModuleType(f"{package}.{leaf}")
        vars(module).update(functions)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(importlib.import_module(package), leaf, module, raising=False)
        return module

    return install


def call(*arguments: str) -> Any:
    """Run a command in this process."""
    return CliRunner().invoke(app, list(arguments))


def call_process(*arguments: str | bytes, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "pipelines.cli", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, input=data, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("command", ["run", *STAGES])
def test_a_stage_gets_the_configuration_and_a_reporter(command: str, install: Install, tmp_path: Path) -> None:
    seen: list[tuple[RunConfig, object]] = []
    install(f"stages.{command}", run=lambda config, reporter: seen.append((config, reporter)))
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    result = call(command, str(source), "--out", str(out), "--threads", "3", "--rehash", "--", "--a=1", "--", "-b", "c")
    assert result.exit_code == 0, result.output
    ((config, reporter),) = seen
    assert (config.sources, config.out, config.threads, config.rehash) == ((str(source),), out, 3, True)
    assert config.beam_options == ("--a=1", "--", "-b", "c")
    assert all(hasattr(reporter, name) for name in ("stage_started", "progress", "stage_done", "note"))


@pytest.mark.parametrize("command", ["run", *STAGES, "plan"])
def test_every_stage_takes_every_flag_of_a_run(command: str) -> None:
    options = {name for parameter in _command(command).params for name in parameter.opts}
    assert {flag for flag in FLAGS if flag.startswith("--") and len(flag) > 2} <= options
    assert {"--config", "--quiet", "--json", "--verbose"} <= options


def test_filters_have_flags_and_any_key_can_be_set(install: Install, tmp_path: Path) -> None:
    seen: list[RunConfig] = []
    install("stages.scan", run=lambda config, reporter: seen.append(config))
    flags = ("--drop-secrets", "--no-drop-binary", "--allowed-licenses", "MIT,Apache-2.0", "--max-line-bytes", "500")
    texts = (
        "--set",
        "ingest.drop_minified=true",
        "--set",
        "scan.word_partitions=4",
        "--set",
        "ingest.drop_binary=true",
    )
    result = call("scan", "--out", str(tmp_path), *flags, *texts)
    assert result.exit_code == 0, result.output
    options = seen[0].options
    assert (options.ingest.drop_secrets, options.ingest.drop_binary, options.ingest.drop_minified) == (
        True,
        False,
        True,
    )
    assert (options.ingest.allowed_licenses, options.ingest.max_line_bytes) == (("MIT", "Apache-2.0"), 500)
    assert options.scan.word_partitions == 4


@pytest.mark.parametrize("command", ["run", *STAGES, "plan", "retokenize"])
def test_a_wrong_set_key_gets_the_same_message_as_in_a_file(command: str, tmp_path: Path) -> None:
    out = "--store" if command == "retokenize" else "--out"
    source = str(REPOSITORY / "schemas")
    result = call(command, source, out, str(tmp_path / "out"), "--set", "ingest.sample=2", "--set", "scan.patern='x'")
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first == "error: --set ingest.sample=2: not allowed; it takes a number above 0 and up to 1"
    assert second.startswith('error: --set scan.patern="x": unknown key; did you mean pattern? (known in [scan]: ')


def test_a_new_version_takes_the_options_of_a_run_and_a_store(install: Install, tmp_path: Path) -> None:
    seen: list[Any] = []
    outcome = types.SimpleNamespace(to_json=dict, changes={}, alerts=[], removed=())
    module = install("versions.retokenize", Request=types.SimpleNamespace)
    module.retokenize = lambda order, reporter: seen.append(order) or outcome  # type: ignore[attr-defined]
    arguments = ("--store", str(tmp_path), "--drop-secrets", "--set", "run.threads=2", "--keep", "4", "--json")
    arguments += ("--alert-families", "3", "--no-drift")
    result = call("retokenize", "/src", *arguments, "--", "--a=1")
    assert result.exit_code == 0, result.output
    (order,) = seen
    given = {name: value for name, value in order.flags.items() if value is not None}
    assert given == {
        **{"SOURCE": ["/src"], "--store": str(tmp_path), "--drop-secrets": True},
        **{"--set": ["run.threads=2"], "--": ["--a=1"]},
    }
    assert (order.keep, order.file) == (4, None)
    assert order.drift == DriftOptions(drift=False, alert_families=3)


@pytest.mark.parametrize(("command", "needed"), [(name, name == "ingest") for name in STAGES])
def test_only_what_reads_sources_needs_them(command: str, needed: bool, install: Install, tmp_path: Path) -> None:
    install(f"stages.{command}", run=lambda config, reporter: None)
    result = call(command, "--out", str(tmp_path))
    assert result.exit_code == (2 if needed else 0)
    assert ("error: no sources: " in result.stderr) == needed


def test_problems_are_reported_before_anything_starts(install: Install) -> None:
    install("stages.run", run=lambda config, reporter: pytest.fail("started"))
    result = call("run", "/no/such", "--threads", "0", "--sample", "2")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "error: --threads 0: not allowed; it takes a whole number from 1 to 1,024",
        "error: --sample 2: not allowed; it takes a number above 0 and up to 1",
        "error: SOURCE /no/such: no such file or folder",
        "error: no output folder: give --out DIR, or out in [run] of the --config file",
    ]


@pytest.mark.parametrize("command", ["compare", "cursors", "trial"])
def test_more_threads_than_a_number_of_64_bits_says_are_refused(command: str) -> None:
    result = call(command, "none", "--on", "none", "--threads", "99999999999999999999")
    assert result.exit_code == 2
    assert "Invalid value for '--threads'" in result.stderr


def test_an_unknown_flag_is_reported_with_the_nearest_one() -> None:
    result = call("run", "--thread", "2")
    assert result.exit_code == 2
    assert "--threads" in result.stderr


ERRORS: list[tuple[Exception, int, str]] = [
    (ConfigError("a\nb"), 2, "error: a\nerror: b\n"),
    (BadInputError("too much is dead"), 3, "error: too much is dead\n"),
    (IntegrityError("shard x differs"), 1, "error: shard x differs\n"),
    (VocabularyConfigError("id moved"), 2, "error: id moved\n"),
    (LockedError("locked"), 1, "error: locked\n"),
    (CppmillError("in a worker [while running 'Scan/Count']"), 1, "error: in a worker\n"),
    (
        RuntimeError(
            "Error processing instruction 7. Original traceback is\nTraceback (most recent call last):\n"
            '  File "x.py", line 4, in f\n'
            "schemas.errors.BadInputError: shard 5 is bad [while running 'Ingest/Read']\n\n"
        ),
        3,
        "error: shard 5 is bad\n",
    ),
    (
        RuntimeError("Traceback\ncppmill_core._native.CorruptDataError: manifest.json differs [while running 'X']\n"),
        1,
        "error: manifest.json differs\n",
    ),
]


@pytest.mark.parametrize(("error", "code", "message"), ERRORS, ids=[type(e).__name__ + str(c) for e, c, _ in ERRORS])
def test_an_error_of_ours_is_one_message_and_its_exit_code(
    error: Exception, code: int, message: str, install: Install, tmp_path: Path
) -> None:
    def fail(config: RunConfig, reporter: object) -> None:
        raise error

    install("stages.scan", run=fail)
    result = call("scan", "--out", str(tmp_path))
    assert (result.exit_code, result.stderr, result.stdout) == (code, message, "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("verify", "PATH"), ExitCode.USAGE),
        (("verify", "PATH", "--json"), ExitCode.USAGE),
        (("sweep", "PATH", "--sizes", "8192"), ExitCode.USAGE),
        (("run", "PATH", "--out", "OUT"), ExitCode.FAILED_CHECK),
        (("run", str(REPOSITORY / "native"), "--out", "PATH"), ExitCode.FAILED_CHECK),
        (("run", str(REPOSITORY / "native"), "--out", "OUT", "--vocab", "PATH"), ExitCode.FAILED_CHECK),
        (("explain", "int", "--tokenizer", "PATH"), ExitCode.FAILED_CHECK),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else None,
)
def test_a_path_that_no_file_system_takes_is_one_message(
    arguments: tuple[str, ...], code: ExitCode, tmp_path: Path
) -> None:
    words = [word.replace("PATH", 300 * "x").replace("OUT", str(tmp_path / "out")) for word in arguments]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == code, done.stderr
    assert 300 * "x" in done.stderr
    assert ": the path, or a name in it, is too long for the file system; name another" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_of_the_native_core_is_one_message(install: Install, tmp_path: Path) -> None:
    import cppmill_core

    def fail(config: RunConfig, reporter: object) -> None:
        raise cppmill_core.VocabularyError("seed cannot become one token")

    install("stages.build", run=fail)
    result = call("build", "--out", str(tmp_path))
    assert (result.exit_code, result.stderr) == (2, "error: seed cannot become one token\n")


def test_an_unexpected_error_shows_its_traceback(install: Install, tmp_path: Path) -> None:
    install("stages.scan", run=lambda config, reporter: {}["missing"])
    result = call("scan", "--out", str(tmp_path))
    assert result.exit_code == 70
    assert "Traceback (most recent call last)" in result.stderr
    assert "KeyError: 'missing'" in result.stderr
    said = json.loads(call("scan", "--out", str(tmp_path), "--json").stderr)
    assert (said["kind"], said["exit_code"]) == ("KeyError", 70)
    assert said["message"] == "unexpected KeyError: 'missing'"
    assert "KeyError: 'missing'" in said["traceback"]


def test_json_output_is_one_object_per_line_and_ends_with_the_error(install: Install, tmp_path: Path) -> None:
    def fail(config: RunConfig, reporter: Any) -> None:
        reporter.stage_started("scan", 1, 10)
        raise BadInputError("too much is dead")

    install("stages.scan", run=fail)
    result = call("scan", "--out", str(tmp_path), "--json")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events] == ["stage_started", "error"]
    assert events[-1] == {"event": "error", "message": "too much is dead", "exit_code": 3}
    assert result.exit_code == 3
    problem = {"message": "too much is dead", "option": None, "place": None}
    assert json.loads(result.stderr) == {
        **{"event": "error", "kind": "BadInputError", "message": "too much is dead", "exit_code": 3},
        "problems": [problem],
    }


@pytest.mark.parametrize(
    ("arguments", "kind", "problems"),
    [
        (
            ("run", "/no/such", "--threads", "0", "--out", "gs://b/x"),
            "ConfigError",
            [("--threads", None), ("SOURCE", "/no/such")],
        ),
        (("run", "src", "--thread", "2"), "UsageError", [("--thread", None)]),
        (("verify", "/no/such"), "UsageError", [("RUN|EXPORT|TRIAL|STORE", "/no/such")]),
        (("verify",), "UsageError", [("RUN|EXPORT|TRIAL|STORE", None)]),
        (("status", "/dev/fd"), "ConfigError", [(None, "/dev/fd")]),
        (("nothing",), "UsageError", [(None, None)]),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_with_json_wrong_usage_is_one_object_that_names_option_and_place(
    arguments: tuple[str, ...], kind: str, problems: list[tuple[str | None, str | None]]
) -> None:
    result = call(*arguments, "--json")
    said = json.loads(result.stderr)
    assert (result.exit_code, said["exit_code"], said["kind"]) == (2, 2, kind)
    assert [(problem["option"], problem["place"]) for problem in said["problems"]] == problems


def test_the_keys_of_the_json_are_documented() -> None:
    text = (REPOSITORY / "docs/reference/command-line.md").read_text()
    tables = re.findall(r"^\| key[^|\n]* \| value \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    documented = [
        {key for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.split("|")[1])} for table in tables
    ]
    run = RunStatus(out="", state="", message="")
    store = StoreStatus(
        **{"store": "", "current": None, "building": None, "versions": (), "holder": None, "attempt": None}, run=run
    )
    failure = Failure("", "", ExitCode.UNEXPECTED, trace="x")
    verified = {"out", "record", "run", "reencoded", "absent", "is_true", "differences"}
    assert documented == [
        verified,
        *(set(one.to_json()) for one in (run, store)),
        set(vars(TestPlan.UNITS[0])),
        set(failure.to_json()),
    ]
    assert set(StageStatus.__dataclass_fields__) | {"bytes_per_second"} <= set(re.findall(r"`(\w+)`", text))


def test_json_that_is_for_beam_is_not_ours() -> None:
    assert call("run", "--thread", "2", "--", "--json").stderr.startswith("Usage: ")


def test_quiet_and_json_exclude_each_other(tmp_path: Path) -> None:
    assert call("scan", "--out", str(tmp_path), "--json", "--quiet").exit_code == 2


def test_quiet_says_nothing_when_all_is_well(install: Install, tmp_path: Path) -> None:
    def work(config: RunConfig, reporter: Any) -> None:
        reporter.stage_started("scan", 1, 10)
        reporter.note("a note")

    install("stages.scan", run=work)
    result = call("scan", "--out", str(tmp_path), "--quiet")
    assert (result.exit_code, result.output) == (0, "")


class TestPlan:
    """The command `plan`."""

    UNITS = (PlannedUnit("ingest", "aa11", "run", "new"), PlannedUnit("ingest", "bb22", "skip", "up to date"))

    def test_json_is_a_line_a_unit(self, install: Install, tmp_path: Path) -> None:
        install("stages.run", plan=lambda config: list(self.UNITS))
        result = call("plan", str(REPOSITORY / "schemas"), "--out", str(tmp_path), "--json")
        assert [json.loads(line) for line in result.stdout.splitlines()] == [vars(unit) for unit in self.UNITS]

    def test_the_table_counts_stages_and_lists_what_would_run(self, install: Install, tmp_path: Path) -> None:
        install("stages.run", plan=lambda config: list(self.UNITS))
        result = call("plan", str(REPOSITORY / "schemas"), "--out", str(tmp_path))
        assert result.stdout.splitlines() == [
            "ingest           1 to run        1 to skip",
            "",
            "stage     action unit reason",
            "ingest    run    aa11 new",
        ]

    def test_a_run_with_nothing_to_do_is_said(self, install: Install, tmp_path: Path) -> None:
        install("stages.run", plan=lambda config: [self.UNITS[1]])
        result = call("plan", str(REPOSITORY / "schemas"), "--out", str(tmp_path))
        assert result.stdout.splitlines()[-1] == "nothing to do: every unit is up to date"


class TestVerify:
    """The command `verify`."""

    def test_no_difference_is_exit_code_0(self, install: Install, tmp_path: Path) -> None:
        install("versions.verify", verify=lambda *_, **__: [], record=lambda out: "receipt")
        assert call("verify", str(tmp_path)).exit_code == 0

    def test_a_missing_folder_is_wrong_usage(self, install: Install) -> None:
        install("versions.verify", verify=lambda *_, **__: pytest.fail("started"))
        result = call("verify", "/no/such")
        assert result.exit_code == 2
        assert "/no/such" in result.stderr

    def test_differences_are_exit_code_1_and_the_first_are_shown(self, install: Install, tmp_path: Path) -> None:
        found = [f"tokens/part-{i}.parquet: differs" for i in range(25)]
        install("versions.verify", verify=lambda *_, **__: found, record=lambda out: "receipt")
        result = call("verify", str(tmp_path))
        assert result.exit_code == 1
        assert result.stdout.splitlines()[0] == "tokens/part-0.parquet: differs"
        assert result.stdout.splitlines()[-1] == "… and 5 more"
        assert "25 differences" in result.stderr

    def test_one_difference_is_not_several(self, install: Install, tmp_path: Path) -> None:
        install("versions.verify", verify=lambda *_, **__: ["a: differs"], record=lambda out: "receipt")
        assert call("verify", str(tmp_path)).stderr == f"{tmp_path}: verification failed: 1 difference\n"

    @pytest.mark.parametrize("found", [[], [f"tokens/part-{i}.parquet: differs" for i in range(25)]], ids=len)
    def test_json_is_one_object_with_all_of_them(self, found: list[str], install: Install, tmp_path: Path) -> None:
        install("versions.verify", verify=lambda *_, **__: found, record=lambda out: "manifest")
        result = call("verify", str(tmp_path), "--json")
        assert (result.exit_code, result.stderr) == (int(bool(found)), "")
        assert json.loads(result.stdout) == {
            **{"out": str(tmp_path), "record": "manifest", "reencoded": 0.01, "run": None},
            **{"is_true": not found, "differences": found},
        }


class TestVocab:
    """The commands of `vocab`."""

    def test_release_hands_on_its_arguments(self, install: Install, tmp_path: Path) -> None:
        seen: list[tuple[Path, Path, str]] = []
        install("tokenizers.vocab", release=lambda *arguments: seen.append(arguments) or 48)
        result = call("vocab", "release", "1.0", "--tokenizer", str(tmp_path))
        assert result.stdout == "1.0: 48 ids newly locked\n"
        assert seen == [(REPOSITORY / "configs" / "vocab", tmp_path, "1.0")]

    @pytest.mark.parametrize(("severities", "code"), [((), 0), (("warning",), 0), (("note", "error"), 1)])
    def test_lint_fails_on_errors_alone(self, severities: tuple[str, ...], code: int, install: Install) -> None:
        findings = [types.SimpleNamespace(severity=s, rule="band", message="x.toml: wrong band") for s in severities]
        install("tokenizers.vocab", lint=lambda directory, pattern: findings)
        result = call("vocab", "lint")
        assert result.exit_code == code
        assert result.stdout.count("x.toml: wrong band") == len(findings)


class TestHelp:
    """What help says is so."""

    @pytest.mark.parametrize(
        "command", [(), ("run",), *((stage,) for stage in STAGES), ("plan",), ("verify",), ("encode",), ("decode",)]
    )
    def test_the_help_of_every_command_lists_the_exit_codes(self, command: tuple[str, ...]) -> None:
        text = " ".join(call(*command, "--help").stdout.split())
        for words in (
            "0 done",
            "1 a failed check, or a failure outside cppmill",
            "2 wrong usage",
            "3 more unusable input",
            "70 an un",
            "130",
            "143",
        ):
            assert words in text

    @pytest.mark.parametrize("group", ["", "vocab "])
    def test_the_first_line_of_each_command_fits_into_the_list(self, group: str) -> None:
        text = call(*group.split(), "--help").stdout.partition("\n  Exit codes: ")[0]
        assert [line for line in text.splitlines() if line.endswith("...")] == [
            f"Usage: cppmill {group}[OPTIONS] COMMAND [ARGS]..."
        ]

    def test_every_command_is_below_the_heading_of_its_group(self) -> None:
        commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
        homeless = [name for name, command in commands.items() if command.rich_help_panel not in list(Group)]
        assert not homeless, "name a group: @described(..., under=Group.…)"
        text = call("--help").stdout.partition("\n  Exit codes: ")[0]
        headings = re.findall(r"^([A-Z]\w+):$", text, re.MULTILINE)
        assert headings == ["Options", *Group]
        assert sorted(re.findall(r"^  ([a-z][a-z-]+) +\S", text, re.MULTILINE)) == sorted(commands)
        assert text.index("Look:") < text.index("\n  status ") < text.index("Export:") < text.index("\n  shards ")

    def test_the_defaults_are_the_real_ones(self) -> None:
        text = " ".join(call("run", "--help").stdout.split())
        options, run = RunOptions(), RunTableOptions()
        assert f"For prose: text-16k, text-32k, text-sentencepiece-1k. [default: {DEFAULT_PROFILE}]" in text
        assert f"{options.build.vocab_size:,} in {DEFAULT_PROFILE}]" in text
        assert f"{options.ingest.unit_bytes:,} (64 MiB) in {DEFAULT_PROFILE}]" in text
        assert f"[default: {options.ingest.sample}, all]" in text
        assert f"damaged. [default: {run.max_dead_fraction}]" in text
        assert f"[default: {run.engine}]" in text

    @pytest.mark.parametrize(
        ("command", "flags"), [("run", FLAGS), ("shards", SHARD_FLAGS), ("sequences", SEQUENCE_FLAGS)]
    )
    def test_it_says_what_the_models_declare(self, command: str, flags: dict[str, Flag]) -> None:
        text = "".join(call(command, "--help").stdout.split())
        for name, flag in flags.items():
            if name != "--":
                assert flag.help, name
                assert "".join(flag.help.split()) in text, name

    def test_rarer_options_come_under_their_own_headings(self) -> None:
        text = call("run", "--help").stdout
        headings = re.findall(r"^([A-Z][A-Za-z ]+):$", text, re.MULTILINE)
        assert headings == ["Arguments", "Options", "Execution", "Reading sources", "Filters", "Tokens", "Vocabulary"]
        assert text.index("--sample") < text.index("Execution:") < text.index("Filters:") < text.index("--drop-secrets")

    def test_examples_are_real_command_lines(self) -> None:
        examples = re.findall(r"^ {4}(cppmill .*)$", call("run", "--help").stdout, re.MULTILINE)
        assert len(examples) == 6
        for example in examples:
            known = {name for parameter in _command("run").params for name in parameter.opts}
            ours = example.split(" -- ")[0]
            assert set(re.findall(r" (--[a-z-]+)", ours)) <= known

    def test_the_version_is_one_line(self) -> None:
        assert re.fullmatch(r"cppmill [^\n]+ \(cppmill-core [^\n]+\)\n", call("--version").stdout)


class TestShell:
    """Completion in a real shell."""

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (("sta",), ["status"]),
            (("vocab", "wor"), ["working-set"]),
            (("run", "--drop-sec"), ["--drop-secrets"]),
            (("run", "--engine", "f"), ["flink"]),
            (("verify", "no-such"), []),
        ],
        ids=" ".join,
    )
    def test_bash_completes(self, words: tuple[str, ...], found: list[str], processes: Any, tmp_path: Path) -> None:
        processes.write_program(tmp_path / "cppmill")
        script = tmp_path / "completion.bash"
        script.write_text(call("completion", "bash").stdout)
        line = " ".join(("cppmill", *words))
        code = (
            f'. {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; $1 cppmill; printf "%s\\n" "${{COMPREPLY[@]}}"'
        )
        name = re.findall(r"^complete .*-F (\w+) cppmill$", script.read_text(), re.MULTILINE)[0]
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", code, "bash", name], env=environment, capture_output=True, text=True, check=True
        )
        assert (done.stdout.split(), done.stderr) == (found, "")

    @pytest.mark.parametrize(("shell", "begin"), [("zsh", "#compdef cppmill"), ("fish", "complete --command cppmill")])
    def test_other_shells_have_a_script(self, shell: str, begin: str) -> None:
        assert call("completion", shell).stdout.startswith(begin)

    def test_an_unknown_shell_is_refused(self) -> None:
        assert call("completion", "tcsh").exit_code == 2


class TestProcess:
    """The command line as a process."""

    @pytest.mark.parametrize(
        ("command", "left_out"),
        [
            (["run", "--help"], {"apache_beam", "pyarrow", "numpy", "pandas", "rich", "transforms", "tokenizer_build"}),
            (["status", "OUT"], {"apache_beam", "pandas", "tokenizer_build"}),
        ],
        ids=["help", "status"],
    )
    def test_a_command_loads_no_more_than_it_needs(self, command: list[str], left_out: set[str], run: Any) -> None:
        code = (
            "import sys\nfrom pipelines.cli.app import main\nsys.argv = ['cppmill', *sys.argv[1:]]\n"
            "try:\n    main()\nfinally:\n    print(*sorted({name.split('.')[0] for name in sys.modules}))"
        )
        words = [str(run.out) if word == "OUT" else word for word in command]
        done = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )
        loaded = set(done.stdout.splitlines()[-1].split())
        assert "typer" in loaded
        assert not loaded & left_out

    def test_a_source_whose_name_is_not_utf8_is_named(self) -> None:
        done = call_process("run", b"/no/such/\xff", "--out", "/tmp/out")
        assert done.returncode == 2
        assert done.stderr == b"error: SOURCE /no/such/\\udcff: no such file or folder\n"

    def test_an_argument_that_becomes_text_and_is_not_utf8_is_named(self, tmp_path: Path) -> None:
        assert call_process("vocab", "init", str(tmp_path / "vocab")).returncode == 0
        for command in (["init"], ["vocab", "add", str(tmp_path / "vocab"), "--category", "acme"]):
            done = call_process(*command, str(tmp_path).encode() + b"/a\xff")
            assert done.returncode == 2
            assert done.stderr == f"error: {tmp_path}/a\\udcff: not UTF-8\n".encode()

    def test_a_reader_that_goes_away_causes_no_traceback(self, tmp_path: Path) -> None:
        code = (
            "import sys, types, pipelines.stages\n"
            "from types import SimpleNamespace as N\n"
            "units = [N(stage='scan', unit='u' * 64, action='run', reason='new')] * 20000\n"
            "pipelines.stages.run = sys.modules['pipelines.stages.run'] = N(plan=lambda config: units)\n"
            "from pipelines.cli.app import main\nmain()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, "plan", "schemas", "--out", str(tmp_path), "--json"],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(timeout=60) == 1


def _command(name: str) -> Any:
    return typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
