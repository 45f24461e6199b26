"""What both programs set before they import anything large."""

from __future__ import annotations

import os
import subprocess
import sys

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
