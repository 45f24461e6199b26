"""What both programs set before they import anything large."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from cppmill import start
sys.argv = ["cppmill", "--help"]
try:
    start.{function}()
except SystemExit:
    pass
import numpy
print(len(os.listdir("/proc/self/task")))
"""

ENDING = """
import atexit, threading, time
import pipelines.cli.app
from cppmill import start

def main():
    threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
    atexit.register(print, "exit function")
    raise SystemExit({code})

pipelines.cli.app.main = main
start.run_commands()
"""


def count_threads(function: str) -> int:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(function=function)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.splitlines()[-1])


def test_numpy_starts_no_threads() -> None:
    assert count_threads("run_commands") == 1


@pytest.mark.parametrize(("code", "expected"), [("None", 0), ("0", 0), ("7", 7), ("'because'", 1)])
@pytest.mark.parametrize("name", ["cppmill", "other.py"])
def test_the_program_ends_as_python_does_but_with_an_interpreter_for_threads_of_libraries(
    tmp_path: Path, name: str, code: str, expected: int
) -> None:
    (tmp_path / name).write_text(ENDING.format(code=code))
    program = [sys.executable, "-v", tmp_path / name]  # which says what is taken down
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (expected, ["thread", "exit function"])
    assert ("\nbecause\n" in done.stderr) == (expected == 1)
    assert ("# cleanup" in done.stderr) == (name != "cppmill")
