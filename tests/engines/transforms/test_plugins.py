"""Filters and readers of others decide on the workers of engines as they do here: the same receipt, byte for byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cppmill
from tests.example_package import install_example

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

OPTIONS = '[ingest]\nunit_bytes = 131072\nreaders = ["sections"]\n[ingest.filters.mostly_comments]\nmost = 0.5\n'


def carry_out(engine: str, folder: Path, tokenizer: Path) -> cppmill.Run:
    """Run in a process of its own, whose workers find the package as it does: on the path of its environment."""
    out, environment = folder / engine, {**os.environ, "PYTHONPATH": str(folder / "site")}
    words = ["run", folder / "sources", "--out", out, "--tokenizer", tokenizer, "--config", folder / "run.toml"]
    command = [sys.executable, "-m", "cppmill", *words, "--engine", engine, "--quiet"]
    command += ["--", "--parallelism=1"] if engine == "flink" else []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return cppmill.open_run(out)


@pytest.mark.parametrize("engine", ["prism", "flink"])
def test_plugins_decide_on_workers_of_an_engine(engine: str, sources: Path, tmp_path: Path, run: cppmill.Run) -> None:
    install_example(tmp_path / "site")
    (tmp_path / "run.toml").write_text(OPTIONS)
    (tmp_path / "sources").mkdir()
    shutil.copytree(sources / "numpy", tmp_path / "sources" / "numpy")
    (tmp_path / "sources" / "some.sections").write_text("==== a.cpp\nint a;\n==== b.cpp\n// nothing but a comment\n")
    here, there = (carry_out(name, tmp_path, Path(run.out) / "tokenizer") for name in ("local", engine))
    assert here.receipt == there.receipt
    assert here.receipt["code"].keys() >= {"cppmill.filters:mostly_comments", "cppmill.readers:sections"}
    rejects = there.table("rejects", ["path", "reason"])
    dropped = rejects.loc[rejects["reason"] == "mostly_comments", "path"].tolist()
    assert "some.sections/b.cpp" in dropped
    assert "some.sections/a.cpp" in there.table("documents", ["path"])["path"].tolist()
