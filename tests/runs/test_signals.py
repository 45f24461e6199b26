"""Ctrl-C, SIGTERM and SIGHUP, sent to real processes that run a stand-in program through the real command line."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pipelines.console.signals import GRACE_SECONDS, RESUME_ADVICE, descendants
from tests.processes import ForkedProcess, ProcessServer

REPOSITORY = Path(__file__).parents[2]

STAND_IN = """
import hashlib, subprocess, sys, threading, time, types
from pathlib import Path
import pipelines.stages
from transforms.storage.folder import OutputFolder

def run(config, reporter):
    reporter.stage_started("scan", 3, 300)
    BODY

pipelines.stages.scan = sys.modules["pipelines.stages.scan"] = types.SimpleNamespace(run=run)
from pipelines.cli.app import main
main()
"""

READY = "reporter.note('ready')"

BODIES = {
    "sleeps": f"{READY}; time.sleep(600)",
    "holds a lock": f"lock = threading.Lock(); lock.acquire(); {READY}; lock.acquire()",
    "has a thread that complains": f"""
    from pipelines.console.signals import is_stopping
    def complain():
        while not is_stopping():
            time.sleep(0.01)
        print("Traceback (most recent call last):", file=sys.stderr)
        complained.set()
    complained = threading.Event()
    threading.Thread(target=complain, daemon=True).start(); {READY}
    try:
        time.sleep(600)
    finally:
        complained.wait()""",
    "is in a native call": f"{READY}; hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)",
    "has other threads": f"threading.Thread(target=time.sleep, args=(600,)).start(); {READY}; time.sleep(600)",
    "swallows the interrupt": f"""{READY}
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            pass""",
    "makes another error of it": f"""{READY}
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        raise RuntimeError("pipeline failed") from None""",
    "ends well in spite of it": f"""{READY}
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        pass""",
}


@contextmanager
def running(
    processes: ProcessServer, body: str, out: Path, *arguments: str, ignored: signal.Signals | None = None
) -> Iterator[ForkedProcess]:
    """Run a stand-in and wait until it is at work."""
    code, arguments = STAND_IN.replace("BODY", body), ("scan", "--out", str(out), *arguments)
    process = processes.start(code, arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, ignored=ignored)
    assert process.stderr is not None
    try:
        while "ready" not in (line := process.stderr.readline()):
            assert line, "ended before it was ready"
        yield process
    finally:
        process.kill()
        process.communicate()


def stop(process: ForkedProcess | subprocess.Popen[str], number: signal.Signals) -> tuple[int | None, str]:
    """Send a signal; return exit code and what was said. What has not ended after a minute fails."""
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


CASES = [
    *((name, signal.SIGINT, 130) for name in BODIES),
    ("sleeps", signal.SIGTERM, 143),
    ("sleeps", signal.SIGHUP, 129),
]


@pytest.mark.parametrize(("name", "number", "code"), CASES)
def test_a_signal_ends_the_process_and_says_how_to_continue(
    name: str, number: signal.Signals, code: int, processes: ProcessServer, tmp_path: Path
) -> None:
    with running(processes, BODIES[name], tmp_path) as process:
        returned, said = stop(process, number)
    assert returned == code
    assert said.rstrip().endswith(RESUME_ADVICE)
    assert "Traceback" not in said
    assert said.count(RESUME_ADVICE) == 1


@pytest.mark.parametrize("name", ["sleeps", "is in a native call"])
def test_a_stopped_command_leaves_nothing_in_the_temporary_folder(
    name: str, processes: ProcessServer, tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    body = f"""import tempfile
    from transforms.storage.scratch import scratch_folder
    tempfile.tempdir = {str(temporary)!r}
    (scratch_folder() / "copy").write_bytes(b"x")
    {BODIES[name]}"""
    with running(processes, body, tmp_path / "out") as process:
        assert len(list(temporary.glob("*/*/copy"))) == 1
        assert stop(process, signal.SIGTERM)[0] == 143
    assert list(temporary.iterdir()) == []


def test_an_interrupted_command_leaves_no_temporary_file_and_no_lock(processes: ProcessServer, tmp_path: Path) -> None:
    body = f"""folder = OutputFolder(config.out)
    lock = folder.store.lock()
    def write(path):
        path.write_bytes(b"half")
        {READY}
        time.sleep(600)
    folder.publish("counts/part.parquet", write)"""
    with running(processes, body, tmp_path) as process:
        assert any((tmp_path / ".cache/tmp").iterdir())
        assert stop(process, signal.SIGTERM)[0] == 143
    assert not any((tmp_path / ".cache/tmp").iterdir())
    assert not (tmp_path / "counts").exists()
    with running(processes, f"OutputFolder(config.out).store.lock(); {READY}; time.sleep(600)", tmp_path) as process:
        assert stop(process, signal.SIGTERM)[0] == 143


def test_worker_processes_end_with_the_command(processes: ProcessServer, tmp_path: Path) -> None:
    body = f"""child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    {READY}
    time.sleep(600)"""
    with running(processes, body, tmp_path) as process:
        deadline = time.monotonic() + 120
        while len(children := descendants(process.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(children) == 2
        assert stop(process, signal.SIGTERM)[0] == 143
    deadline = time.monotonic() + 60
    while any(_alive(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(child) for child in children)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_done_and_waits_for_a_thread_ends_at_once(
    number: signal.Signals, processes: ProcessServer, tmp_path: Path
) -> None:
    body = """import signal
    def wait():
        for _ in range(500):
            if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # the command has ended
                break
            time.sleep(0.01)
        print("ready", file=sys.__stderr__, flush=True)
        time.sleep(600)
    threading.Thread(target=wait).start()"""
    with running(processes, body, tmp_path) as process:
        assert stop(process, number) == (-number, "")


def test_a_signal_that_was_ignored_from_the_start_stays_ignored(processes: ProcessServer, tmp_path: Path) -> None:
    with running(processes, BODIES["sleeps"], tmp_path, ignored=signal.SIGINT) as process:
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_SECONDS + 1)
        assert stop(process, signal.SIGTERM)[0] == 143


def test_json_output_stays_json_when_it_is_stopped(processes: ProcessServer, tmp_path: Path) -> None:
    body = "print('ready', file=sys.stderr, flush=True); time.sleep(600)"
    with running(processes, body, tmp_path, "--json") as process:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    assert out.startswith('{"event": "stage_started"')


@pytest.mark.parametrize("name", ["sleeps", "is in a native call"])
def test_a_terminal_is_as_it_was(name: str, processes: ProcessServer, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = processes.start(
        STAND_IN.replace("BODY", BODIES[name]),
        ["scan", "--out", tmp_path],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    said = b""
    while b"ready" not in said:
        said += os.read(ours, 1 << 16)
    process.send_signal(signal.SIGINT)
    with suppress(OSError):  # a terminal that nobody writes to any more
        while more := os.read(ours, 1 << 16):
            said += more
    os.close(ours)
    assert process.wait(timeout=60) == 130
    assert RESUME_ADVICE.encode() in said
    assert said.rindex(b"\x1b[?25h") > said.rindex(b"\x1b[?25l")  # the cursor is shown again


DIRECT = """
import os, signal, sys, time
from pipelines.console.signals import stop_on_signals
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
BODY
"""


def run_direct(body: str) -> subprocess.Popen[str]:
    """Run Python code that uses the context manager itself."""
    return subprocess.Popen(
        [sys.executable, "-c", DIRECT.replace("BODY", body)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_second_signal_ends_at_once() -> None:
    body = """
with stop_on_signals(grace_seconds=600):
    word = "ready"
    while True:
        try:
            print(word, flush=True)
            time.sleep(600)
        except KeyboardInterrupt:
            word = "stopping"
"""
    process = run_direct(body)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "stopping\n"
    assert process.poll() is None
    returned, _ = stop(process, signal.SIGINT)
    assert returned == 143  # the first signal is what stopped it


def test_a_signal_that_no_block_sees_ends_the_process_too() -> None:
    body = """
from pipelines.console.signals import end_if_stopped
beginning = stop_on_signals(advice="go on")
beginning.__enter__()
try:
    signal.raise_signal(signal.SIGTERM)
except KeyboardInterrupt as error:
    end_if_stopped()
"""
    process = run_direct(body)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.splitlines()[-1]) == (143, "stopped by SIGTERM: go on")


def test_a_forked_child_has_its_own_signals() -> None:
    body = """
with stop_on_signals():
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(7)
    time.sleep(0.3)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    time.sleep(0.3)
    print("goes on", os.WTERMSIG(status), flush=True)
"""
    process = run_direct(body)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said) == (0, "goes on 15\n", "")


def test_a_signal_where_python_ignores_exceptions_says_only_that_it_stops() -> None:
    body = """
class Released:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(600)

with stop_on_signals(advice="go on"):
    Released()
"""
    process = run_direct(body)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (
        143,
        "\nSIGTERM: stopping (once more to end at once)\nstopped by SIGTERM: go on\n",
    )


def test_handlers_are_put_back_after_the_block() -> None:
    body = """
before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
for _ in range(3):
    with stop_on_signals():
        assert signal.getsignal(signal.SIGTERM) != before[1]
assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
assert signal.set_wakeup_fd(-1) == -1
assert len(os.listdir("/proc/self/fd")) <= 4, os.listdir("/proc/self/fd")
import threading
assert threading.active_count() == 1
os.kill(os.getpid(), signal.SIGTERM)
"""
    process = run_direct(body)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (-signal.SIGTERM, "")


def test_other_threads_run_the_block_as_it_is() -> None:
    body = """
import threading
ran = []
def work():
    with stop_on_signals():
        ran.append(True)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert ran
"""
    process = run_direct(body)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")


def _alive(process: int) -> bool:
    """Tell whether a process runs; one that ended and waits for its parent does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        os.kill(process, 0)
    except (OSError, IndexError):
        return False
    return state != "Z"
