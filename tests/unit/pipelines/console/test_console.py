"""The console: which reporter, which logs, and whose errors."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import rich.console
import typer

from pipelines.console.bar import LiveReporter
from pipelines.console.console import (
    Output,
    command_session,
    exit_on_error,
    is_live_terminal,
    log_to_console,
    open_reporter,
)
from pipelines.console.failures import find_user_error
from pipelines.console.progress import Reporters
from pipelines.console.reporters import JsonReporter, PlainReporter
from pipelines.console.terminal import printable_output
from schemas.errors import BadInputError
from schemas.logs import module_logger
from schemas.plugins.entry_points import plugin_code
from schemas.resources import LEAST_ADDRESS_SPACE

REPOSITORY = Path(__file__).parents[4]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (Output(), PlainReporter),
        (Output(quiet=True), Reporters),
        (Output(as_json=True), JsonReporter),
        (Output(one_document=True), Reporters),
        (Output(one_document=True, as_json=True), Reporters),
    ],
)
def test_flags_choose_the_reporter(output: Output, kind: type) -> None:
    with open_reporter(output) as reporter:
        assert type(reporter) is kind


def test_a_terminal_gets_the_live_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    for output in (Output(), Output(one_document=True)):
        with open_reporter(output) as reporter:
            assert type(reporter) is LiveReporter
    monkeypatch.setenv("TERM", "dumb")
    assert not is_live_terminal(sys.stderr)


def log_everything() -> None:
    """Log as ours, as Beam, and as a third party."""
    logging.getLogger("cppmill.transforms.sources.listing").debug("our detail")
    logging.getLogger("cppmill.transforms.sources.listing").info("our note")
    logging.getLogger("cppmill.transforms.sources.listing").warning("our warning")
    logging.getLogger("apache_beam.runners").info("their detail")
    logging.getLogger("apache_beam.runners").warning("their noise")
    logging.getLogger("apache_beam.runners").error("their failure")
    logging.getLogger("fsspec").info("other detail")
    logging.getLogger("fsspec").warning("other warning")
    try:
        raise BadInputError("told anyway")
    except BadInputError:
        logging.getLogger("apache_beam.runners").exception("copy of an error")
    logging.getLogger("apache_beam.worker").error("Traceback\nschemas.errors.BadInputError: told anyway\n")


NORMAL = ["our note", "our warning", "their failure", "other warning"]


def test_our_logs_are_shown_and_noise_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with log_to_console(Output()):
        log_everything()
    assert capsys.readouterr().err.splitlines() == NORMAL


def test_quiet_leaves_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    with log_to_console(Output(quiet=True)):
        log_everything()
    assert capsys.readouterr().err.splitlines() == NORMAL[1:]


def test_verbose_shows_everything_and_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with log_to_console(Output(verbose=True)):
        log_everything()
    err = capsys.readouterr().err
    for line in (
        "DEBUG cppmill.transforms.sources.listing: our detail",
        "INFO apache_beam.runners: their detail",
        "WARNING apache_beam.runners: their noise",
        "INFO fsspec: other detail",
        "ERROR apache_beam.runners: copy of an error",
    ):
        assert line in err


def test_worker_processes_log_as_the_command_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIPELINE_OPTIONS_FILE", raising=False)
    with log_to_console(Output()):
        file = Path(os.environ["PIPELINE_OPTIONS_FILE"])
        levels = json.loads(file.read_text())
    assert "PIPELINE_OPTIONS_FILE" not in os.environ
    assert not file.exists()
    assert levels["default_sdk_harness_log_level"] == "ERROR"
    assert levels["sdk_harness_log_level_overrides"]["cppmill"] == "INFO"


def test_logging_is_as_before_after_the_command() -> None:
    root, ours = logging.getLogger(), logging.getLogger("cppmill")
    before = (root.level, list(root.handlers), ours.level, list(warnings.filters))
    with command_session(Output(verbose=True)):
        assert (root.level, root.handlers) != before[:2]
    assert (root.level, root.handlers, ours.level, warnings.filters) == before


def test_every_message_of_ours_goes_to_the_logger_of_the_project() -> None:
    packages = [REPOSITORY / name for name in ("configs", "pipelines", "schemas", "tokenizer_build", "transforms")]
    files = [file for package in packages for file in package.rglob("*.py")]
    own = re.compile(
        r"getLogger\(__name__|getLogger\(\)\.|\blogging\.(?:debug|info|warning|error|exception|critical)\("
    )
    assert [file for file in files if own.search(file.read_text())] == []
    assert module_logger("transforms.storage.lock").name == "cppmill.transforms.storage.lock"


def test_importing_beam_says_nothing() -> None:
    code = (
        "from pipelines.console.console import Output, command_session\n"
        "with command_session(Output()):\n"
        "    import apache_beam as beam\n"
        "    from apache_beam.options.pipeline_options import PipelineOptions\n"
        "    with beam.Pipeline(options=PipelineOptions(['--runner=FnApiRunner'])) as pipeline:\n"
        "        pipeline | beam.Create([1, 2]) | beam.Reshuffle() | beam.Map(lambda x: x)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_what_a_thread_of_an_engine_logs_after_an_error_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command has no handlers of its own; the error is reported once they are as they were."""
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with pytest.raises(BadInputError), log_to_console(Output()):
        raise BadInputError("shard 5 is bad")
    logging.getLogger("apache_beam.runners.common").error("shard 5 is bad [while running 'Map(fail)']")
    assert capsys.readouterr().err == ""


def test_an_error_of_ours_in_a_beam_worker_is_one_message(processes: Any) -> None:
    code = (
        "import sys\n"
        "from pipelines.console.console import Output, command_session\n"
        "from schemas.errors import BadInputError\n"
        "def fail(element):\n"
        "    raise BadInputError('shard 5 is bad')\n"
        "with command_session(Output()):\n"
        "    import apache_beam as beam\n"
        "    from apache_beam.options.pipeline_options import PipelineOptions\n"
        "    with beam.Pipeline(options=PipelineOptions(['--runner=FnApiRunner', *sys.argv[1:]])) as pipeline:\n"
        "        pipeline | beam.Create([1, 2]) | beam.Reshuffle() | beam.Map(fail)\n"
    )
    for mode, lines in (("in_memory", 1), ("multi_threading", None)):  # in threads Beam prints tracebacks itself
        options = [f"--direct_running_mode={mode}", "--direct_num_workers=2"]
        with processes.start(code, options, stderr=subprocess.PIPE) as process:
            printed = process.communicate(timeout=120)[1].splitlines()
        assert process.returncode == 3, mode
        assert printed[-1] == "error: shard 5 is bad", mode
        assert lines is None or len(printed) == lines


HOSTILE = "a\x1b]0;owned\x07b\x9b2Jc\u202ed\r\udcff"
ESCAPED = r"a\x1b]0;owned\x07b\x9b2Jc\u202ed\r\udcff"


@pytest.mark.parametrize("stream_type", [Terminal, io.StringIO])
def test_what_a_command_prints_is_escaped_on_a_terminal_and_elsewhere(
    monkeypatch: pytest.MonkeyPatch, stream_type: type[io.StringIO]
) -> None:
    out, err = stream_type(), stream_type()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(SystemExit), command_session(Output()) as reporter:
        typer.echo(HOSTILE)
        reporter.note(HOSTILE)
        logging.getLogger("cppmill.transforms.sources.listing").warning("%s", HOSTILE)
        raise BadInputError(f"{HOSTILE}: no")
    assert (sys.stdout, sys.stderr) == (out, err)
    printed = out.getvalue() + err.getvalue()
    assert printed.count(ESCAPED) == 4
    assert not any(obeyed in printed for obeyed in ("\x07", "\x9b", "\u202e", "\x1b]"))


def test_a_line_of_an_error_is_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), exit_on_error():
        raise BadInputError(f"own.toml: {'x' * 1_000_000}: choose another name\nother.toml: missing")
    first, second = capsys.readouterr().err.splitlines()
    assert len(first) < 4_100 and " … 996,031 characters … " in first
    assert first.startswith("error: own.toml: xxx") and first.endswith("xxx: choose another name")
    assert second == "error: other.toml: missing"


EARLY = (
    "import os, cppmill, cppmill.start; "
    "cppmill.start.check_packages = lambda: os.kill(os.getpid(), signal.SIGINT); cppmill.main()"
)


def test_an_interrupt_before_a_command_begins_ends_it_without_a_traceback() -> None:
    # Whoever started the tests may ignore it, as a shell makes what it starts in the background do.
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {EARLY}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=REPOSITORY)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_little_is_imported_before_ctrl_c_is_silent() -> None:
    code = "import sys; before = {*sys.modules}; import cppmill; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-Ic", code], capture_output=True, check=True, cwd=REPOSITORY, text=True)
    assert done.stdout.split() == ["__future__", "cppmill"]


def test_a_file_that_went_meanwhile_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, exit_on_error():
        (tmp_path / "part-0.parquet").read_bytes()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/part-0.parquet: it is not there any more; run again")


@pytest.mark.parametrize("text", ["{} [while running 'Fingerprint']", "Traceback\n{}\n\nTraceback\nRuntimeError"])
def test_a_file_that_went_under_a_beam_worker_is_one_line_too(text: str) -> None:
    gone = FileNotFoundError(errno.ENOENT, "there is no such object", "s3://b/out/.cache/fingerprints/a.parquet")
    found = find_user_error(RuntimeError(text.format(f"FileNotFoundError: {gone}")))
    assert found is not None
    assert found == find_user_error(gone)
    assert found.message.startswith(f"{gone.filename}: it is not there any more; run again")


def test_an_interrupt_of_a_command_without_a_session_has_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, exit_on_error():
        raise KeyboardInterrupt
    assert (ended.value.code, capsys.readouterr().err) == (130, "stopped by Ctrl-C\n")


SMALL_STACK = "import resource, cppmill; resource.setrlimit(resource.RLIMIT_STACK, (1 << 18,) * 2); cppmill.main()"


def test_a_stack_that_is_too_small_is_said_before_anything_overflows_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SMALL_STACK], capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the stack is limited to 256 kB (ulimit -s); at least 1,024 are needed\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_full_output_stream_is_named_in_one_line(as_json: bool) -> None:
    code = "from pipelines.console.console import *\nwith command_session(Output(as_json={})): print('more')"
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", code.format(as_json)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, cwd=REPOSITORY, text=True)
    (line,) = done.stderr.splitlines()
    message = json.loads(line)["message"] if as_json else line.removeprefix("error: ")
    assert done.returncode == 1
    assert message.startswith("the output stream: no space left; free some")


def test_a_full_error_stream_does_not_change_how_a_command_ends() -> None:
    code = (
        "from pipelines.console.console import *\nwith command_session(Output(as_json=True)): raise ConfigError('no')"
    )
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, check=False, cwd=REPOSITORY, text=True)
    assert (done.returncode, json.loads(done.stdout)["message"]) == (2, "no")


SMALL_ADDRESS_SPACE = f"""import resource, sys, cppmill
resource.setrlimit(resource.RLIMIT_AS, ({LEAST_ADDRESS_SPACE - 1},) * 2)
sys.argv = ["cppmill", "verify", "."]
cppmill.main()
"""


def test_no_command_begins_where_arrow_could_not_start_its_threads() -> None:
    command = [sys.executable, "-c", SMALL_ADDRESS_SPACE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: cppmill: the address space is limited to 3,221,225,471 bytes")


CLOSED_STREAMS = """import os, sys, cppmill
sys.argv = ["cppmill", "completion", "bash"]
try:
    cppmill.main()
finally:
    with open(os.environ["FILE"], "w") as file:
        file.write(f"{file.fileno() > 2} {[os.readlink(f'/proc/self/fd/{number}') for number in range(3)]}")
"""


def test_streams_that_are_closed_are_no_error_and_no_file_takes_their_place(tmp_path: Path) -> None:
    file = tmp_path / "file"
    command = ["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, CLOSED_STREAMS]
    done = subprocess.run(command, check=False, cwd=REPOSITORY, env={**os.environ, "FILE": str(file)})
    assert done.returncode == 0
    assert file.read_text() == f"True {[os.devnull] * 3}"


class TerminalOfBytes(io.TextIOWrapper):
    """A stream that looks like a terminal, over bytes."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_line_of_a_command_is_escaped_beside_a_live_display_too(encoding, monkeypatch):
    written = io.BytesIO()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, TerminalOfBytes(written, encoding=encoding))
    monkeypatch.setenv("TERM", "xterm")
    with command_session(Output()) as reporter:
        assert type(reporter) is LiveReporter
        typer.echo("a\x1b]0;b\x07 http://me:secret@host/")
    shown = written.getvalue()
    assert b"a\\x1b]0;b\\x07 http://me:***@host/" in shown
    assert b"]0;b\x07" not in shown


def test_what_a_plug_in_prints_is_not_in_the_output(capsys):
    with printable_output(), plugin_code(lambda: "a filter"):
        print("a\x1b[31m")
    with printable_output():
        print("b")
    assert capsys.readouterr() == ("b\n", "a\\x1b[31m\n")


def test_output_that_a_device_refuses_is_an_error():
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", "import cppmill; cppmill.main()", "vocab", "lint"]
        done = subprocess.run(command, check=False, cwd=REPOSITORY, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the output stream: no space left")


@pytest.mark.parametrize(("encoding", "expected"), [("ascii", b"a\\u2502b\n"), ("utf-8", "a│b\n".encode())])
def test_what_an_encoding_lacks_is_escaped(encoding, expected, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    with printable_output():
        rich.console.Console().print("a│b")
        sys.stdout.flush()
    assert written.getvalue() == expected
