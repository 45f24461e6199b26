"""Processes that the server forks are processes of their own: exit codes, streams, environment, folder, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PIPE = subprocess.PIPE
WAITING = "import time; print('ready', flush=True); time.sleep(600)"


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("pass", 0),
        ("raise SystemExit(11)", 11),
        ("import os; os._exit(7)", 7),
        ("raise ValueError", 1),
        ("import os; os.abort()", -signal.SIGABRT),
    ],
)
def test_the_exit_code_is_that_of_the_code(processes, code, exit_code):
    assert processes.start(code, stderr=subprocess.DEVNULL).wait(timeout=60) == exit_code


def test_the_streams_are_apart_and_the_input_is_empty(processes):
    code = "import sys; print('out', sys.stdin.read()); print('err', file=sys.stderr)"
    with processes.start(code, stdout=PIPE, stderr=PIPE) as process:
        assert process.communicate(timeout=60) == ("out \n", "err\n")
    joined = processes.start(code, stdout=PIPE, stderr=sys.__stderr__.fileno())
    assert joined.communicate(timeout=60) == ("out \n", None)


def test_more_than_a_pipe_holds_is_read_from_both_streams(processes):
    code = "import sys; sys.stdout.write('o' * 300_000); sys.stderr.write('e' * 300_000)"
    out, err = processes.start(code, stdout=PIPE, stderr=PIPE).communicate(timeout=60)
    assert (len(out), len(err)) == (300_000, 300_000)


def test_arguments_environment_and_folder_are_those_that_were_given(processes, tmp_path):
    code = "import os, sys; print(sys.argv[1:], os.getcwd(), sorted(os.environ))"
    process = processes.start(code, ["a b", 1], cwd=tmp_path, env={"ONLY": "this"}, stdout=PIPE)
    assert process.communicate(timeout=60)[0] == f"['a b', '1'] {tmp_path} ['ONLY']\n"


def test_a_process_inherits_the_environment_as_it_is_now(processes, monkeypatch):
    monkeypatch.setenv("CPPMILL_TEST", "now")
    process = processes.start("import os; print(os.environ['CPPMILL_TEST'])", stdout=PIPE)
    assert process.communicate(timeout=60)[0] == "now\n"


def test_a_process_waits_for_its_threads_and_then_does_what_was_registered_for_its_end(processes):
    thread = "threading.Thread(target=lambda: (time.sleep(0.01), print('thread'))).start()"
    code = f"import atexit, threading, time; atexit.register(print, 'end'); {thread}; raise SystemExit(3)"
    with processes.start(code, stdout=PIPE) as process:
        assert process.communicate(timeout=60) == ("thread\nend\n", None)
        assert process.returncode == 3


def test_nothing_of_one_process_is_left_in_the_next(processes):
    assert processes.start("import os, configs; configs.left = os.environ['LEFT'] = 'x'").wait(timeout=60) == 0
    code = "import os, configs; raise SystemExit(hasattr(configs, 'left') or 'LEFT' in os.environ)"
    assert processes.start(code).wait(timeout=60) == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_it_is_sent_to_and_no_other(processes, number):
    """Python ends with KeyboardInterrupt on SIGINT, also if whoever started the tests ignores it."""
    with processes.start(WAITING, stdout=PIPE) as other:
        with processes.start(WAITING, stdout=PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout.readline() == other.stdout.readline() == "ready\n"
            assert process.poll() is None
            process.send_signal(number)
            assert process.wait(timeout=60) == -number
        assert other.poll() is None
        os.kill(other.pid, 0)
        other.kill()


def test_a_signal_is_ignored_from_the_start_if_it_is_to_be(processes):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert processes.start(code, ignored=signal.SIGTERM).wait(timeout=60) == 0


def test_a_process_that_does_not_end_in_time_is_reported_and_can_be_killed(processes):
    process = processes.start(WAITING, stdout=PIPE)
    assert process.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.01)
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL
    assert process.communicate() == ("", None)


def test_a_program_runs_like_the_command_line_with_its_streams_and_exit_code(processes, tmp_path):
    program = processes.write_program(tmp_path / "cppmill")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert (done.stdout.split()[0], done.stderr) == ("cppmill", "")
    refused = subprocess.run([program, "verify", "nothing"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "nothing: no such folder" in refused.stderr


def test_a_program_without_a_command_runs_code_modules_and_ends_as_a_shell_says_of_a_signal(processes, tmp_path):
    python = processes.write_program(tmp_path / "python", "")
    done = subprocess.run(
        [python, "-c", "import sys; print(sys.argv)", "a"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['-c', 'a']\n"
    file = tmp_path / "file.json"
    file.write_text("{}")
    done = subprocess.run([python, "-m", "json.tool", file], capture_output=True, text=True, check=True)
    assert done.stdout == "{}\n"
    killed = subprocess.run([python, "-c", "import os; os.kill(os.getpid(), 9)"], check=False)
    assert killed.returncode == 128 + signal.SIGKILL
