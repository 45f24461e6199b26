"""The benchmark of engines on a small real tree: its rows, agreement, and the memory of a whole tree of processes."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benches.lib.harness import BenchmarkError
from benches.lib.process_tree import run_measured
from benches.speed.beam_costs import measure_beam, measure_shuffle
from benches.speed.engines import GIGABYTE, Growth
from pipelines.console.progress import Reporters

CHILD = "x = b'1' * (80 << 20); import time; time.sleep(1.2)"  # two readings of memory
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}], check=True)"
FAILING = "import sys; print('it went wrong', file=sys.stderr); sys.exit(3)"


@pytest.mark.engines
@pytest.mark.usefixtures("in_process")
def test_runs_agree_and_have_a_row_for_each_stage_with_and_without_beam(tmp_path):
    growth = Growth(Path(np.get_include()), tmp_path, vocab_size=8192, reporter=Reporters())
    comparison = growth.compare(growth.num_bytes / GIGABYTE, ["local"], rounds=1)
    assert comparison.different == ()
    units = {figure.row.unit for figure in comparison.figures}
    assert units >= {"s", "s read", "s ingest", "s scan", "s build", "s tokenize", "s validate", "s of processors"}
    assert all(figure.row.peak_bytes > 1 << 26 for figure in comparison.figures)
    beam = list(measure_beam(growth.config(), rounds=1))
    assert [[figure.row.name for figure in found.figures] for found in beam] == [
        ["Beam", "Beam", "without Beam", "without Beam"]
    ] * 2
    shuffled = {figure.row.name: figure.row.value for figure in measure_shuffle(growth.config()).figures}
    assert list(shuffled) == ["units of scan and tokenize", "candidates for duplicates", "references to counts"]
    assert all(0 < value < 100_000 for value in shuffled.values())


def test_memory_and_time_of_processes_below_count(tmp_path):
    ended = run_measured([sys.executable, "-c", PARENT], tmp_path / "log")
    assert ended.peak_bytes > 80 << 20
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}], check=True)"
    assert run_measured([sys.executable, "-c", parent], tmp_path / "log").processor_seconds > 0.2


def test_a_failed_command_is_reported_with_its_error_output(tmp_path):
    with pytest.raises(BenchmarkError, match=r"exit code 3\nit went wrong"):
        run_measured([sys.executable, "-c", FAILING], tmp_path / "log")
