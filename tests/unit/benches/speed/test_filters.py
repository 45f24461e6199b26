"""The benchmark of the filters on a small real tree: a row each, with what is planted in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benches.speed.filters import app


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    shutil.copytree(np.get_include(), folder / "numpy")
    (folder / "table.h").write_text("{" + "0x12, 0x34,\n" * 200 + "}")
    (folder / "tagged.h").write_text("// SPDX-License-Identifier: GPL-3.0-only\nint tagged;\n")
    return folder


def test_every_filter_has_a_row_and_finds_what_is_planted(corpus: Path) -> None:
    benchmark = str(corpus / "numpy/numpy/npy_math.h")
    done = CliRunner().invoke(app, [str(corpus), "--benchmark", benchmark, "--show"])
    assert done.exit_code == 0, done.output
    rows = {
        cells[1]: int(cells[2])
        for line in done.stdout.splitlines()
        if len(cells := _cells(line)) > 6 and cells[2].isdigit()
    }
    assert rows == {
        "drop_generated": 0,
        "max_line_bytes = 10_000": 0,
        "min_unique_line_ratio = 0.2": 1,
        'allowed_licenses, "keep"': 1,
        'allowed_licenses, "drop"': int(done.stdout.split(" documents")[0]),
        "drop_minified": 1,
        "drop_secrets": 0,
        "decontaminate": 1,
    }
    assert "table.h: 1.000 of it are numbers" in done.stdout
    assert "npy_math.h: 13 words of npy_math.h:" in done.stdout


def test_a_folder_without_sources_is_refused(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, [str(tmp_path)]).exit_code == 2


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]
