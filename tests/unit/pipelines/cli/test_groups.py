"""The command line is made whole only where it is needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from pipelines.cli.app import app
from pipelines.cli.groups import ASKED, narrowed
from pipelines.console import console


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "SOURCE", "--out", "OUT"], ["run"]),
        (["prove-absent"], ["prove-absent"]),
        (["vocab", "lint"], ["vocab"]),
        (["rnu"], None),
        (["--help"], None),
        ([], None),
    ],
)
def test_one_command_is_made_if_the_first_word_names_it(
    words: list[str], expected: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ASKED, raising=False)
    found = narrowed(app, words)
    if expected is None:
        assert found is app
    else:
        assert list(typer.main.get_command(found).commands) == expected  # type: ignore[attr-defined]  # a group
        assert len(app.registered_commands) > 1, "the command line itself stays whole"
    monkeypatch.setenv(ASKED, "complete_bash")
    assert narrowed(app, words) is app


def test_an_argument_is_refused_without_its_password(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["trace", "https://me:hush@host/checkpoint"])
    assert "https://me:***@host/checkpoint" in capsys.readouterr().err


def test_a_signal_as_a_command_begins_ends_it_with_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(console, "printable_output", lambda: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(SystemExit) as ended:
        app(["lengths", str(tmp_path)])
    assert (ended.value.code, capsys.readouterr().err) == (143, "stopped by SIGTERM\n")


def run_with(words: list[str], *, is_buffered: bool, **streams: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if is_buffered else "1"}
    command = [sys.executable, "-m", "cppmill", *words]
    return subprocess.run(command, text=True, check=False, env=environment, **streams)


@pytest.mark.parametrize("is_buffered", [False, True])
@pytest.mark.parametrize("word", ["--version", "--help"])
def test_a_full_output_stream_ends_help_and_version_in_one_line(word: str, is_buffered: bool) -> None:
    with Path("/dev/full").open("w") as full:
        done = run_with([word], is_buffered=is_buffered, stdout=full, stderr=subprocess.PIPE)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("error: the output stream: no space left; free some")


@pytest.mark.parametrize("is_buffered", [False, True])
@pytest.mark.parametrize("words", [["verify"], ["verify", "--json"]])
def test_a_full_error_stream_does_not_change_how_wrong_arguments_end(words: list[str], is_buffered: bool) -> None:
    with Path("/dev/full").open("w") as full:
        assert run_with(words, is_buffered=is_buffered, stdout=full, stderr=full).returncode == 2


def test_an_output_stream_that_nobody_reads_leaves_the_code_of_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        words = ["run", "/no/such", "--out", "out/none", "--json"]
        done = run_with(words, is_buffered=True, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
