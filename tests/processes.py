"""Processes that begin with everything imported: a server imports it once and forks a process for each command.

Importing Beam takes seconds, a fork milliseconds. A forked process is one of its own, with arguments, environment,
streams, signals and exit code; nothing of a test is in it. The server has one thread and runs no command itself.
"""

import atexit
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMAND_LINE = "from cppmill import main; main()"
NEEDS_TORCH = "pipelines.trial.cells"
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    code, arguments = {command_line!r}, sys.argv
    if not code:
        _, flag, code, *rest = arguments
        arguments = [flag, *rest]
        code = code if flag == "-c" else {module!r} % code
    order = [code, arguments, os.getcwd(), dict(os.environ), None]
    data = json.dumps(order).encode()
    socket.send_fds(server, [len(data).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(data)
    answers = server.makefile("rb")
    answers.readline()
    code = int(answers.readline())
os._exit(code if code >= 0 else 128 - code)
"""
"""A program that has its command run by the server; without a command line in it, `python` with `-c` or `-m`."""
MODULE = """import runpy, warnings
warnings.simplefilter("ignore")  # of modules that are imported already
runpy.run_module(%r, run_name="__main__", alter_sys=True)
"""


class ForkedProcess:
    """A process that the server forked, with what tests use of `subprocess.Popen`; standard input is empty."""

    def __init__(self, address, code, arguments=(), *, cwd=ROOT, env=None, stdout=None, stderr=None, ignored=None):
        """Start code as `python -c` does; streams are PIPE, DEVNULL, a descriptor or those of this process."""
        self.returncode = self._read = None
        self.stdout, out = self._stream(stdout, 1)
        self.stderr, err = self._stream(stderr, 2)
        order = [code, ["-c", *map(str, arguments)], str(cwd), dict(os.environ if env is None else env), ignored]
        data = json.dumps(order).encode()
        nothing = os.open(os.devnull, os.O_RDONLY)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(str(address))
        socket.send_fds(self._server, [len(data).to_bytes(8, "big")], [nothing, out, err])
        self._server.sendall(data)
        for number in {nothing, out, err} - {1, 2, stdout, stderr}:
            os.close(number)
        self._answers = b""
        self.pid = int(self._answer())

    @staticmethod
    def _stream(wanted, own):
        """Return the end to read from, if there is one, and the descriptor to write to."""
        if wanted == subprocess.PIPE:
            reading, writing = os.pipe()
            return os.fdopen(reading, encoding="utf-8"), writing
        if wanted == subprocess.DEVNULL:
            return None, os.open(os.devnull, os.O_WRONLY)
        return None, own if wanted is None else wanted

    def _answer(self):
        """Return the next line of the server."""
        while b"\n" not in self._answers:
            more = self._server.recv(1 << 10)
            assert more, "the server of processes ended"
            self._answers += more
        line, _, self._answers = self._answers.partition(b"\n")
        return line

    def wait(self, timeout=None):
        """Return the exit code, that of a signal below 0, when the process has ended."""
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                self.returncode = int(self._answer())
            except TimeoutError:
                raise subprocess.TimeoutExpired("a forked process", timeout) from None
            self._server.close()
        return self.returncode

    def poll(self):
        """Return the exit code, None while the process runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0.001)

    def communicate(self, timeout=None):
        """Read both streams to their ends, wait, and return what was read; kill what does not end in time."""
        if self._read is None:
            with ThreadPoolExecutor(2) as readers:
                reading = [stream and readers.submit(stream.read) for stream in (self.stdout, self.stderr)]
                try:
                    self._read = tuple(one and one.result(timeout) for one in reading)
                    self.wait(timeout)
                except TimeoutError:
                    self.kill()
                    raise subprocess.TimeoutExpired("a forked process", timeout) from None
            self._close()
        return self._read

    def send_signal(self, number):
        """Send a signal if the process still runs."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self):
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def _close(self):
        for stream in (self.stdout, self.stderr):
            if stream:
                stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._close()
        self.wait()


class ProcessServer:
    """The server of one worker of the tests."""

    def __init__(self, folder):
        self.address = folder / "server"
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, __file__, str(self.address)]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """End the server, which would outlive this process and hold its output open."""
        self.process.terminate()
        self.process.communicate()

    def start(self, code, arguments=(), **options):
        """Start Python code in a process; options are those of `ForkedProcess`."""
        return ForkedProcess(self.address, code, arguments, **options)

    def command(self, *arguments, **options):
        """Start a command of cppmill."""
        return self.start(COMMAND_LINE, arguments, **options)

    def write_program(self, path, command_line=COMMAND_LINE):
        """Write a program that runs as `cppmill` does; with an empty command line, as `python` with `-c` or `-m`."""
        fields = {"python": sys.executable, "address": str(self.address), "module": MODULE}
        text = CLIENT.format(command_line=command_line, **fields)
        path.write_text(text)
        path.chmod(0o755)
        return path


@pytest.fixture(scope="session")
def processes(tmp_path_factory):
    """The server of processes of this worker."""
    with ProcessServer(tmp_path_factory.mktemp("processes")) as server:
        yield server


@pytest.fixture
def forked_workers(processes, tmp_path, monkeypatch):
    """Let the worker processes that Beam starts be forked."""
    monkeypatch.setattr(sys, "executable", str(processes.write_program(tmp_path / "python", "")))


def reap(*_):
    """Wait for the processes that have ended, so that their time counts."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def serve(address):
    """Fork a process for each order, and return in it the code that it shall run."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    signal.signal(signal.SIGCHLD, reap)
    print("ready", flush=True)
    while True:
        client, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            return watch(client)
        client.close()


def watch(client):
    """Fork the process and tell the client its id and exit code; return in the process itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(client, 8, 3)
    order = json.loads(client.makefile("rb").read(int.from_bytes(head, "big")))
    process = os.fork()
    if process == 0:
        client.close()
        return become(order, streams)
    client.sendall(b"%d\n" % process)
    for number in streams:
        os.close(number)
    for number in range(3):  # whoever reads what the process wrote waits for the last that could write
        os.close(number)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with suppress(BrokenPipeError):
        client.sendall(b"%d\n" % code)
    os._exit(0)


def become(order, streams):
    """Take over the streams, arguments, folder and environment of an order; return its code."""
    code, arguments, folder, environment, ignored = order
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv[:] = arguments
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore either
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    logging.getLogger().handlers.clear()  # a library that warned at import gave it one
    if ignored:
        signal.signal(ignored, signal.SIG_IGN)
    return code


def import_everything():
    """Import what commands do, those that they import late too, and nothing that starts a thread."""
    import functools
    import gc
    import importlib
    import pkgutil

    import apache_beam.runners.portability.fn_api_runner.fn_runner  # noqa: F401
    import typer.main

    for package in ("configs", "pipelines", "schemas", "tokenizer_build", "transforms"):
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not module.name.endswith("__main__") and module.name != NEEDS_TORCH:
                importlib.import_module(module.name)
    typer.main.get_command = functools.cache(typer.main.get_command)  # the tree of all commands, for each process
    typer.main.get_command(sys.modules["pipelines.cli.app"].app)
    gc.freeze()  # what was imported is not visited when a process collects or ends
    assert threading.active_count() == 1, "what is forked would lack the other threads"


def run(code):
    """Run code and end as Python does, but do not clear the modules, which would copy nearly every page."""
    status = None
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as ended:
        status = ended.code
        if isinstance(status, str):
            raise
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(status)  # Python says what it always says of a stream that is gone, and nothing of a closed one
    os._exit(int(status or 0) & 0xFF)


if __name__ == "__main__":
    import_everything()
    run(serve(sys.argv[1]))
